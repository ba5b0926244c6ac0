// SPDX-License-Identifier: GPL-2.0
// Toeplitz against the vectors that Microsoft publishes for RSS, indirection, moderation.
#include "support.h"

#include <arpa/inet.h>

#include <array>

namespace {

struct Vector {
    const char* daddr;
    unsigned dport;
    const char* saddr;
    unsigned sport;
    u32 addresses; // hash over the addresses alone
    u32 all;       // and the TCP ports
};

constexpr Vector v4[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
};

constexpr Vector v6[] = {
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
     0x02d1feef},
};

std::array<u8, 16> address(int family, const char* text) {
    std::array<u8, 16> bytes{};
    EXPECT_EQ(inet_pton(family, text, bytes.data()), 1) << text;
    return bytes;
}

TEST(Toeplitz, PublishedVectorsIpv4) {
    for (const Vector& v : v4) {
        __be32 saddr = 0;
        __be32 daddr = 0;
        memcpy(&saddr, address(AF_INET, v.saddr).data(), 4);
        memcpy(&daddr, address(AF_INET, v.daddr).data(), 4);
        EXPECT_EQ(
            weft_rss_hash_v4(weft_rss_default_key, saddr, daddr, htons(v.sport), htons(v.dport)),
            v.all);
        u8 addresses[8];
        memcpy(addresses, &saddr, 4);
        memcpy(addresses + 4, &daddr, 4);
        EXPECT_EQ(weft_toeplitz(weft_rss_default_key, addresses, 8), v.addresses);
    }
}

TEST(Toeplitz, PublishedVectorsIpv6) {
    for (const Vector& v : v6) {
        const auto saddr = address(AF_INET6, v.saddr);
        const auto daddr = address(AF_INET6, v.daddr);
        EXPECT_EQ(weft_rss_hash_v6(weft_rss_default_key, saddr.data(), daddr.data(), htons(v.sport),
                                   htons(v.dport)),
                  v.all);
        u8 addresses[32];
        memcpy(addresses, saddr.data(), 16);
        memcpy(addresses + 16, daddr.data(), 16);
        EXPECT_EQ(weft_toeplitz(weft_rss_default_key, addresses, 32), v.addresses);
    }
}

TEST(Toeplitz, ReadsFourKeyBytesBeyondTheData) {
    const std::vector<u8> key(weft_rss_default_key, weft_rss_default_key + 12);
    const std::vector<u8> data(8, 0xff);
    EXPECT_NE(weft_toeplitz(key.data(), data.data(), data.size()), 0U);
    EXPECT_EQ(weft_toeplitz(key.data(), data.data(), 0), 0U);
}

// XOR of two inputs hashes to the XOR of their hashes: the hash is linear.
TEST(Toeplitz, IsLinear) {
    weft::test::Rng rng(8);
    for (int i = 0; i < 1000; ++i) {
        u8 a[12];
        u8 b[12];
        u8 both[12];
        for (int k = 0; k < 12; ++k) {
            a[k] = rng() & 0xff;
            b[k] = rng() & 0xff;
            both[k] = a[k] ^ b[k];
        }
        EXPECT_EQ(weft_toeplitz(weft_rss_default_key, both, 12),
                  weft_toeplitz(weft_rss_default_key, a, 12) ^
                      weft_toeplitz(weft_rss_default_key, b, 12));
    }
}

TEST(Indirection, RoundRobinOverTheQueues) {
    u8 indir[WEFT_RSS_INDIR_SIZE];
    for (unsigned queues = 1; queues <= WEFT_RSS_INDIR_SIZE; ++queues) {
        weft_rss_indir_default(indir, queues);
        for (unsigned i = 0; i < WEFT_RSS_INDIR_SIZE; ++i) {
            EXPECT_EQ(indir[i], i % queues);
            EXPECT_EQ(weft_rss_queue(indir, 0xabcd0000U + 256 + i), i % queues);
        }
    }
}

TEST(Moderation, FiresAtOnceByDefault) {
    const weft_moderation by_default = {0, 1};
    const weft_moderation off = {0, 0};
    for (const u32 pending : {1U, 2U, 1000U}) {
        EXPECT_EQ(weft_moderation_delay(&by_default, pending, 0), 0U);
        EXPECT_EQ(weft_moderation_delay(&off, pending, 0), 0U);
    }
}

TEST(Moderation, TimeAlone) {
    const weft_moderation mod = {50, 0};
    EXPECT_EQ(weft_moderation_delay(&mod, 1, 0), 50000U);
    EXPECT_EQ(weft_moderation_delay(&mod, 4000000000U, 20000), 30000U);
    EXPECT_EQ(weft_moderation_delay(&mod, 1, 49999), 1U);
    EXPECT_EQ(weft_moderation_delay(&mod, 1, 50000), 0U);
    EXPECT_EQ(weft_moderation_delay(&mod, 1, 1ULL << 60), 0U);
    const weft_moderation longest = {0xffffffff, 0};
    EXPECT_EQ(weft_moderation_delay(&longest, 1, 0), 4294967295000U) << "no overflow";
}

TEST(Moderation, FramesAlone) {
    const weft_moderation mod = {0, 8};
    EXPECT_EQ(weft_moderation_delay(&mod, 7, 1ULL << 60), WEFT_MODERATION_NEVER);
    EXPECT_EQ(weft_moderation_delay(&mod, 8, 0), 0U);
    EXPECT_EQ(weft_moderation_delay(&mod, 9, 0), 0U);
}

TEST(Moderation, WhicheverComesFirst) {
    const weft_moderation mod = {50, 8};
    EXPECT_EQ(weft_moderation_delay(&mod, 7, 10000), 40000U);
    EXPECT_EQ(weft_moderation_delay(&mod, 8, 10000), 0U);
    EXPECT_EQ(weft_moderation_delay(&mod, 1, 60000), 0U);
}

} // namespace
