// SPDX-License-Identifier: MIT
// What the measuring programs share: owners of verbs objects, an RC QP from RESET to RTS, a clock.
//
// They use libibverbs and nothing else, so that one binary runs in each guest root.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace weft::bench {

// Prints what failed with errno's text, and ends the program with exit code 1.
[[noreturn]] void die(const std::string& what);

// A number of a command line within bounds; usage error (exit code 2) otherwise.
std::uint64_t number(const char* option, const char* text, std::uint64_t least, std::uint64_t most);

std::int64_t now_ns(); // CLOCK_MONOTONIC

// All that is mapped comes into memory. Where guest time is instructions, the clock of a machine
// that waits for a file leaps: a page of the program must not be missing while something is
// measured.
void settle();

template <auto release>
struct Release {
    template <typename T>
    void operator()(T* handle) const {
        release(handle);
    }
};
using ContextPtr = std::unique_ptr<ibv_context, Release<ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Release<ibv_dealloc_pd>>;
using MrPtr = std::unique_ptr<ibv_mr, Release<ibv_dereg_mr>>;
using ChannelPtr = std::unique_ptr<ibv_comp_channel, Release<ibv_destroy_comp_channel>>;
using CqPtr = std::unique_ptr<ibv_cq, Release<ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Release<ibv_destroy_qp>>;

// An open device with a protection domain, and the address that it is known by.
struct Device {
    Device(const char* name, int gid_index);

    ContextPtr context;
    PdPtr pd;
    ibv_gid gid = {};
    int gid_index;
    ibv_mtu mtu = IBV_MTU_1024;
};

// Registered memory.
struct Buffer {
    Buffer(const Device& device, size_t bytes);

    [[nodiscard]] std::uint64_t address() const {
        return reinterpret_cast<std::uintptr_t>(memory.data());
    }
    [[nodiscard]] std::uint32_t key() const { return mr->lkey; }

    std::vector<std::uint8_t> memory;
    MrPtr mr;
};

// A CQ; `wait` sleeps until it has something, which needs the channel.
struct Completions {
    Completions(const Device& device, int entries, bool events);

    // Up to as many as there is room for, at once.
    int poll(std::span<ibv_wc> into) const;
    // At least one: sleeps with events, spins without. 0 after `ms` milliseconds (-1: waits for
    // ever).
    int wait(std::span<ibv_wc> into, int ms = -1) const;

    ChannelPtr channel;
    CqPtr cq;
};

struct Depth {
    std::uint32_t send = 1, recv = 1;
};

// What a QP must know of its peer, and what is agreed for both.
struct Peer {
    ibv_gid gid;
    std::uint32_t qpn, psn;
};
struct Agreed {
    ibv_mtu mtu = IBV_MTU_1024;
    std::uint8_t timeout = 14, retry = 7, rnr_retry = 7, min_rnr = 12;
};

// RC, every request signalled.
class Qp {
public:
    Qp(const Device& device, const Completions& completions, Depth depth);

    [[nodiscard]] Peer me() const;
    void connect(const Peer& peer, const Agreed& agreed) const;
    void reset() const; // deaf and silent from now on
    void write(const Buffer& from, std::uint32_t bytes, std::uint64_t to, std::uint32_t rkey,
               std::uint64_t id) const;
    void send(const Buffer& from, std::uint32_t bytes) const;
    void recv(const Buffer& into) const;

private:
    const Device* device_;
    QpPtr qp_;
};

} // namespace weft::bench
