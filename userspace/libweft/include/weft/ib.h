// SPDX-License-Identifier: MIT
// Links of weft_ib: settings, receive queues, and why the last one was refused. Source of all
// values: the generic netlink family weft_ib (<weft/weft_ib.h>), in the network namespace of the
// caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/netlink.h>
#include <weft/result.h>
#include <weft/weft_ib.h>

namespace weft {

struct Link {
    std::string name; // of the RDMA device
    std::string netdev;
    uint32_t ifindex = 0;
    uint32_t rx_queues = 0;
    std::chrono::microseconds rx_wait{}; // rx-usecs
    uint32_t rx_frames = 0;
    weft_ib_icrc icrc = WEFT_IB_ICRC_AUTO;
    weft_ib_shortcut shortcut = WEFT_IB_SHORTCUT_ON;
    weft_ib_gsi gsi = WEFT_IB_GSI_OWN;
    weft_ib_provider provider = WEFT_IB_PROVIDER_NONE;
    uint32_t qps = 0;                                        // without the GSI QP
    weft_ib_placement placement = WEFT_IB_PLACEMENT_ORDERED; // of QPs that are made from now on
};

// What is empty stays as it is.
struct LinkSettings {
    std::optional<uint32_t> rx_queues;
    std::optional<std::chrono::microseconds> rx_wait;
    std::optional<uint32_t> rx_frames;
    std::optional<weft_ib_icrc> icrc;
    std::optional<weft_ib_shortcut> shortcut;
    std::optional<weft_ib_placement> placement;
};

// Counters run from the creation of the link.
struct RxQueue {
    uint32_t ifindex = 0; // of the link's netdev
    uint32_t index = 0;
    uint32_t cpu = 0;
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint64_t polls = 0;
    uint64_t moderated = 0;
    uint64_t drops = 0;
    uint64_t qp_services = 0;
};

struct Refusal {
    std::string name;
    std::string netdev;
    int error = 0; // errno
    std::string text;
};

class Ib {
public:
    static Result<Ib> open();

    Result<std::vector<Link>> links();
    // By the name of the RDMA device, else of its netdev. ENODEV: there is none in this namespace.
    Result<Link> find(std::string_view name);
    // All of it or nothing; the error is the kernel's own text.
    Status set(const Link& link, const LinkSettings& settings);
    // Of one link, or of all.
    Result<std::vector<RxQueue>> queues(const Link* link = nullptr);
    // Needs CAP_NET_ADMIN in the initial user namespace. Empty: none was refused so far.
    Result<std::optional<Refusal>> last_refusal();

private:
    explicit Ib(Netlink netlink)
        : netlink_(std::move(netlink)) {}
    Netlink netlink_;
};

} // namespace weft
