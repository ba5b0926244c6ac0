// SPDX-License-Identifier: MIT
// RNR and ACK timers of a requester against what the specification makes of their codes.
//
//   weft_bench_timers rnr CODE TRIES A GID-INDEX B GID-INDEX NETDEV
//   weft_bench_timers timeout CODE RETRIES A GID-INDEX B GID-INDEX
//
// A sends to B; B is a device of this process, too. rnr: B has no receive, and asks to be tried
// again after CODE; NETDEV, A's, is tapped, and from each NAK to the request that follows it is
// measured. timeout: B goes deaf; measured is from the post to the completion in error.
// Prints one JSON record; exit code 1 if the thing itself went another way.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs.h"

namespace {

using namespace weft::bench;

constexpr auto usage = "usage: weft_bench_timers rnr CODE TRIES A GID-INDEX B GID-INDEX NETDEV\n"
                       "       weft_bench_timers timeout CODE RETRIES A GID-INDEX B GID-INDEX\n";

// Microseconds by code of the RNR NAK timer field.
constexpr std::array<std::uint32_t, 32> rnr_us = {
    655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
constexpr double ack_unit_us = 4.096;

// Where the fields are: Ethernet, IPv4, UDP, BTH, AETH.
constexpr size_t ip_at = 14, udp_at = ip_at + 20, bth_at = udp_at + 8, aeth_at = bth_at + 12;
constexpr int roce_port = 4791;
constexpr std::uint8_t send_only = 0x04, acknowledge = 0x11;

struct Seen {
    std::int64_t ns;
    bool nak; // an RNR NAK, else a SEND
};

// The netdev's frames with the kernel's time stamps.
class Tap {
public:
    explicit Tap(const char* netdev)
        : fd_(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) {
        sockaddr_ll where = {};
        where.sll_family = AF_PACKET;
        where.sll_protocol = htons(ETH_P_ALL);
        where.sll_ifindex = static_cast<int>(if_nametoindex(netdev));
        const int on = 1;
        if (fd_ < 0 || !where.sll_ifindex ||
            bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof(where)) ||
            setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
            die(std::string("tap on ") + netdev);
    }
    Tap(const Tap&) = delete;
    Tap& operator=(const Tap&) = delete;
    ~Tap() { close(fd_); }

    // The next SEND or RNR NAK; nothing once `ms` milliseconds went by without a frame.
    [[nodiscard]] std::optional<Seen> next(int ms) const {
        for (;;) {
            pollfd ready = {.fd = fd_, .events = POLLIN, .revents = 0};
            if (poll(&ready, 1, ms) <= 0)
                return {};
            std::array<std::uint8_t, 128> frame = {};
            alignas(cmsghdr) std::array<char, 128> control = {};
            iovec piece = {.iov_base = frame.data(), .iov_len = frame.size()};
            msghdr message = {};
            message.msg_iov = &piece;
            message.msg_iovlen = 1;
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            const ssize_t bytes = recvmsg(fd_, &message, MSG_DONTWAIT);
            if (bytes < static_cast<ssize_t>(aeth_at + 4))
                continue;
            const auto what = judge(frame);
            const cmsghdr* stamp = CMSG_FIRSTHDR(&message);
            if (!what || !stamp || stamp->cmsg_type != SCM_TIMESTAMPNS)
                continue;
            timespec at = {};
            std::memcpy(&at, CMSG_DATA(stamp), sizeof(at));
            return Seen{.ns = at.tv_sec * INT64_C(1000000000) + at.tv_nsec, .nak = *what};
        }
    }

private:
    // Of a RoCE frame over IPv4 without options: RNR NAK or SEND, or neither.
    static std::optional<bool> judge(const std::array<std::uint8_t, 128>& frame) {
        if (frame[12] != 0x08 || frame[13] != 0 || frame[ip_at] != 0x45 || frame[ip_at + 9] != 17 ||
            frame[udp_at + 2] * 256 + frame[udp_at + 3] != roce_port)
            return {};
        if (frame[bth_at] == send_only)
            return false;
        if (frame[bth_at] == acknowledge && (frame[aeth_at] & 0x60) == 0x20)
            return true;
        return {};
    }

    int fd_;
};

// Two devices, a connected QP on each.
struct Pair {
    Pair(char** names, const Agreed& agreed)
        : a(names[0], static_cast<int>(number("GID-INDEX", names[1], 0, 255)))
        , b(names[2], static_cast<int>(number("GID-INDEX", names[3], 0, 255)))
        , a_buffer(a, 64)
        , b_buffer(b, 64)
        , a_done(a, 16, true)
        , b_done(b, 16, true)
        , sender(a, a_done, Depth{.send = 16, .recv = 1})
        , receiver(b, b_done, Depth{.send = 1, .recv = 16}) {
        receiver.connect(sender.me(), agreed);
        sender.connect(receiver.me(), agreed);
    }

    // A message that arrives, so that all is warm and both ends are in step.
    void greet() const {
        settle();
        receiver.recv(b_buffer);
        sender.send(a_buffer, 64);
        ibv_wc done = {};
        if (!a_done.wait({&done, 1}, 60000) || done.status != IBV_WC_SUCCESS) {
            std::fprintf(stderr, "the first SEND: %s\n", ibv_wc_status_str(done.status));
            std::exit(1);
        }
        b_done.wait({&done, 1}, 60000);
    }

    Device a, b;
    Buffer a_buffer, b_buffer;
    Completions a_done, b_done;
    Qp sender, receiver;
};

void print(const char* kind, std::uint64_t code, std::uint64_t count, double expected,
           std::vector<double> measured) {
    const auto worse = [&](double one, double other) {
        return std::abs(one - expected) < std::abs(other - expected);
    };
    const double worst = *std::max_element(measured.begin(), measured.end(), worse);
    std::sort(measured.begin(), measured.end());
    std::printf("{\"timer\": \"%s\", \"code\": %llu, \"%s\": %llu, \"expected_us\": %.3f, "
                "\"median_us\": %.3f, \"worst_us\": %.3f, \"off_percent\": %.3f}\n",
                kind, static_cast<unsigned long long>(code),
                std::string_view(kind) == "rnr" ? "tries" : "retries",
                static_cast<unsigned long long>(count), expected, measured[measured.size() / 2],
                worst, (worst - expected) / expected * 100);
}

int rnr(char** argv) {
    const auto code = number("CODE", argv[0], 0, rnr_us.size() - 1);
    const auto tries = number("TRIES", argv[1], 1, 1000);
    const Pair pair(argv + 2, {.mtu = IBV_MTU_1024,
                               .timeout = 20,
                               .rnr_retry = 7, // for ever
                               .min_rnr = static_cast<std::uint8_t>(code)});
    pair.greet();
    const Tap tap(argv[6]);
    pair.sender.send(pair.a_buffer, 64);
    std::vector<double> measured;
    // The first SEND belongs to no NAK.
    for (std::int64_t nak = 0; measured.size() < tries;) {
        const auto seen = tap.next(60000);
        if (!seen) {
            std::fprintf(stderr, "code %s: silence after %zu tries\n", argv[0], measured.size());
            return 1;
        }
        if (seen->nak) {
            nak = seen->ns;
        } else if (nak != 0) {
            measured.push_back(static_cast<double>(seen->ns - nak) / 1000);
            nak = 0;
        }
    }
    pair.receiver.recv(pair.b_buffer);
    ibv_wc done = {};
    if (!pair.a_done.wait({&done, 1}, 60000) || done.status != IBV_WC_SUCCESS) {
        std::fprintf(stderr, "code %s: %s\n", argv[0], ibv_wc_status_str(done.status));
        return 1;
    }
    print("rnr", code, tries, rnr_us[code], measured);
    return 0;
}

int timeout(char** argv) {
    const auto code = number("CODE", argv[0], 1, 31);
    const auto retries = number("RETRIES", argv[1], 0, 7);
    const Pair pair(argv + 2, {.mtu = IBV_MTU_1024,
                               .timeout = static_cast<std::uint8_t>(code),
                               .retry = static_cast<std::uint8_t>(retries)});
    pair.greet();
    pair.receiver.reset();
    const double expected =
        static_cast<double>(retries + 1) * ack_unit_us * std::pow(2, static_cast<double>(code));
    const std::int64_t start = now_ns();
    pair.sender.send(pair.a_buffer, 64);
    ibv_wc done = {};
    const int patience = static_cast<int>(std::min(expected / 1000 * 8 + 10000, 2e9));
    const int got = pair.a_done.wait({&done, 1}, patience);
    const double us = static_cast<double>(now_ns() - start) / 1000;
    if (!got || done.status != IBV_WC_RETRY_EXC_ERR) {
        std::fprintf(stderr, "code %s, retries %s: %s after %.0f us\n", argv[0], argv[1],
                     got ? ibv_wc_status_str(done.status) : "no completion", us);
        return 1;
    }
    print("ack", code, retries, expected, {us});
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    if (verb == "rnr" && argc == 9)
        return rnr(argv + 2);
    if (verb == "timeout" && argc == 8)
        return timeout(argv + 2);
    std::fputs(usage, stderr);
    return 2;
}
