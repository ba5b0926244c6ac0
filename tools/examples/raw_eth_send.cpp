// SPDX-License-Identifier: MIT
// One hand-built Ethernet frame: broadcast, EtherType 0x88b5 (local experimental), a text inside.
//
//   raw_eth_send IF [TEXT]
//
// See it arrive: tcpdump -XXni IF ether proto 0x88b5
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr uint16_t ethertype = 0x88b5;
constexpr size_t header_bytes = 14;
constexpr size_t min_bytes = 60; // without the FCS
constexpr size_t max_bytes = 1514;

int fail(const char* what) {
    std::fprintf(stderr, "raw_eth_send: %s: %s\n", what, std::strerror(errno));
    return 1;
}

// Destination, source, type, text; the rest of the shortest frame is zeros.
size_t build(std::array<uint8_t, max_bytes>& frame, const uint8_t* source, std::string_view text) {
    std::fill_n(frame.begin(), 6, 0xff);
    std::copy_n(source, 6, frame.begin() + 6);
    frame[12] = ethertype >> 8;
    frame[13] = ethertype & 0xff;
    const size_t length = std::min(text.size(), max_bytes - header_bytes);
    std::copy_n(text.begin(), length, frame.begin() + header_bytes);
    return std::max(header_bytes + length, min_bytes);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        std::fputs("usage: raw_eth_send IF [TEXT]\n", stderr);
        return 2;
    }
    ifreq request{};
    std::strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);

    const int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0)
        return fail("packet socket (needs CAP_NET_RAW)");
    if (ioctl(fd, SIOCGIFHWADDR, &request) != 0)
        return fail(argv[1]);

    std::array<uint8_t, max_bytes> frame{};
    const size_t length = build(frame, reinterpret_cast<uint8_t*>(request.ifr_hwaddr.sa_data),
                                argc == 3 ? argv[2] : "one frame by hand");
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(if_nametoindex(argv[1]));
    if (sendto(fd, frame.data(), length, 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)) < 0)
        return fail("sending");
    close(fd);
    std::printf("sent %zu bytes on %s: ff:ff:ff:ff:ff:ff, EtherType 0x%04x\n", length, argv[1],
                ethertype);
    return 0;
}
