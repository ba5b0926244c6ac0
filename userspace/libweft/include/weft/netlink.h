// SPDX-License-Identifier: MIT
// Generic netlink: one request, its replies, and the kernel's own words when it refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weft/result.h>

struct nl_msg;
struct nl_sock;
struct nlattr;

namespace weft {

// Attributes of one request, in the order of the calls.
class Request {
public:
    explicit Request(uint8_t command, bool dump = false);

    Request& u32(int attribute, uint32_t value);
    Request& string(int attribute, std::string_view value);

private:
    friend class Netlink;
    struct Free {
        void operator()(nl_msg* message) const;
    };
    uint8_t command_;
    bool dump_;
    std::unique_ptr<nl_msg, Free> message_;
};

// Attributes of one reply; what the kernel left out reads as 0 or "".
class Reply {
public:
    explicit Reply(const nlattr* const* attributes, int max)
        : attributes_(attributes)
        , max_(max) {}

    uint32_t u32(int attribute) const;
    uint64_t u64(int attribute) const;
    std::string string(int attribute) const;

private:
    const nlattr* find(int attribute) const;
    const nlattr* const* attributes_;
    int max_;
};

// A socket that speaks to one family. Not for use from several threads at once.
class Netlink {
public:
    // ENOENT: the module of the family is not loaded.
    static Result<Netlink> open(const char* family, int version);

    // Sends the request and calls on_reply for each reply; returns when the kernel has
    // acknowledged.
    Status send(Request request, const std::function<void(const Reply&)>& on_reply);

private:
    struct Close {
        void operator()(nl_sock* socket) const;
    };
    Netlink(std::unique_ptr<nl_sock, Close> socket, int family, int version);

    std::unique_ptr<nl_sock, Close> socket_;
    int family_;
    int version_;
};

} // namespace weft
