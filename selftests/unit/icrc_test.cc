// SPDX-License-Identifier: GPL-2.0
// ICRC of packets that others made: captured from NICs, built by scapy (vectors.h).
#include "support.h"

#include "vectors.h"

#include <string>

namespace {

using weft::test::Bytes;
using weft::test::crc32_bits;
using weft::test::from_hex;

struct Layers {
    bool v6;
    std::size_t ip_len;
    const u8* ip;
    const u8* udp;
    const u8* bth;
};

// @packet begins at the IP header and ends with the ICRC.
Layers layers_of(const Bytes& packet) {
    Layers l{};
    l.ip = packet.data();
    l.v6 = packet[0] >> 4 == 6;
    l.ip_len = l.v6 ? 40 : (packet[0] & 15) * 4U;
    l.udp = l.ip + l.ip_len;
    l.bth = l.udp + 8;
    return l;
}

u32 masked(const Layers& l, weft_crc32_fn crc) {
    return l.v6 ? weft_icrc_v6(crc, l.ip, l.udp, l.bth)
                : weft_icrc_v4(crc, l.ip, l.ip_len, l.udp, l.bth);
}

Bytes icrc_of(const Bytes& packet) {
    const Layers l = layers_of(packet);
    const u8* rest = l.bth + 12;
    const u8* end = packet.data() + packet.size() - WEFT_ICRC_LEN;
    const u32 crc = crc32_bits(masked(l, crc32_bits), rest, static_cast<std::size_t>(end - rest));
    const __le32 word = weft_icrc_finish(crc);
    Bytes bytes(4);
    memcpy(bytes.data(), &word, 4);
    return bytes;
}

Bytes icrc_in(const Bytes& packet) {
    return {packet.end() - WEFT_ICRC_LEN, packet.end()};
}

Bytes without_ethernet(const Bytes& frame) {
    const bool tagged = frame[12] == 0x81 && frame[13] == 0x00;
    return {frame.begin() + (tagged ? 18 : 14), frame.end()};
}

const char* const captured_cnp =
    "45c2003c718c400040119161 0a001101 0a001201 000012b700280000 8100ffff40000118 00000000"
    "00000000000000000000000000000000 82fd002a";
const char* const captured_uc_send =
    "4501004004784000 4011b4d5 c0a80007 c0a80007 c00012b7002caca2 2460ffff 000000d3 00cf1710"
    "4630818be28935d90e9a95505401be885e500000 78f353f3";

TEST(Icrc, CrcBackendIsTheStandardCrc32) {
    EXPECT_EQ(~crc32_bits(~0U, "123456789", 9), 0xcbf43926U);
}

TEST(Icrc, CapturedCnp) {
    const Bytes packet = from_hex(captured_cnp);
    EXPECT_EQ(icrc_of(packet), icrc_in(packet));
}

TEST(Icrc, CapturedUcSend) {
    const Bytes packet = from_hex(captured_uc_send);
    EXPECT_EQ(icrc_of(packet), icrc_in(packet));
}

class IcrcVector : public testing::TestWithParam<FrameVector> {};

TEST_P(IcrcVector, IsWhatOthersComputed) {
    const Bytes packet = without_ethernet(from_hex(GetParam().hex));
    EXPECT_EQ(icrc_of(packet), icrc_in(packet));
}

// The same packets go through the parser: their headers, pad and length are well-formed.
TEST_P(IcrcVector, IsParsed) {
    const Bytes packet = without_ethernet(from_hex(GetParam().hex));
    const Layers l = layers_of(packet);
    const auto len = static_cast<std::size_t>(packet.data() + packet.size() - l.bth);
    weft_pkt pkt{};
    EXPECT_EQ(weft_pkt_parse(&pkt, l.bth, len), WEFT_DROP_NONE);
    EXPECT_EQ(pkt.hdr_len + pkt.payload_len + pkt.pad + 4U, len);
}

INSTANTIATE_TEST_SUITE_P(Frames, IcrcVector, testing::ValuesIn(frame_vectors),
                         [](const auto& info) { return std::string(info.param.name); });

// May a router or a NIC change this bit without breaking the ICRC?
bool is_variant(const Layers& l, std::size_t byte, unsigned bit) {
    if (l.v6) {
        if (byte < 4)
            return byte > 0 || bit < 4;
        if (byte == 7)
            return true;
    } else if (byte == 1 || byte == 8 || byte == 10 || byte == 11) {
        return true;
    }
    const std::size_t udp = l.ip_len;
    return byte == udp + 6 || byte == udp + 7 || byte == udp + 8 + 4;
}

// Every single bit from the IP header to the pad is either masked or covered.
TEST(Icrc, CoversEveryBitButTheVariantOnes) {
    for (const FrameVector& vector : frame_vectors) {
        const Bytes packet = without_ethernet(from_hex(vector.hex));
        const Bytes good = icrc_of(packet);
        const Layers l = layers_of(packet);
        for (std::size_t byte = 0; byte < packet.size() - WEFT_ICRC_LEN; ++byte) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                if (byte == 0 && (bit >= 4 || !l.v6))
                    continue; // version and IHL: the packet would be another
                Bytes changed = packet;
                changed[byte] ^= static_cast<u8>(1U << bit);
                EXPECT_EQ(icrc_of(changed) == good, is_variant(l, byte, bit))
                    << vector.name << " byte " << byte << " bit " << bit;
            }
        }
    }
}

// A packet cut anywhere is refused by the parser or by its ICRC.
TEST(Icrc, EveryTruncationIsRefused) {
    for (const FrameVector& vector : frame_vectors) {
        const Bytes packet = without_ethernet(from_hex(vector.hex));
        const Layers l = layers_of(packet);
        const auto bth = static_cast<std::size_t>(l.bth - l.ip);
        for (std::size_t len = bth; len < packet.size(); ++len) {
            const Bytes cut(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(len));
            const weft::test::Exact exact(
                Bytes(cut.begin() + static_cast<std::ptrdiff_t>(bth), cut.end()), len - bth);
            weft_pkt pkt{};
            if (weft_pkt_parse(&pkt, exact.data(), len - bth) == WEFT_DROP_NONE)
                EXPECT_NE(icrc_of(cut), icrc_in(cut)) << vector.name << " at " << len;
        }
    }
}

// Headers are gathered, so that the backend is called once for them.
TEST(Icrc, CallsTheBackendOnceForTheHeaders) {
    static unsigned calls;
    static std::size_t bytes;
    calls = 0;
    const Bytes packet = without_ethernet(from_hex(frame_vectors[0].hex));
    masked(layers_of(packet), [](u32 crc, const void*, std::size_t len) {
        ++calls;
        bytes = len;
        return crc;
    });
    EXPECT_EQ(calls, 1U);
    EXPECT_EQ(bytes, 8U + 20 + 8 + 12);
}

} // namespace
