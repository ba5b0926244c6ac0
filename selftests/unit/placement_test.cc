// SPDX-License-Identifier: GPL-2.0
// Placement out of order: where packets of WRITEs belong, whatever their order.
#include "support.h"

#include <algorithm>

namespace {

using weft::test::mtus;
using weft::test::packet;
using weft::test::pick;
using weft::test::Rng;

// A WRITE's packets, as a requester makes them.
std::vector<weft_pkt> write(u32 psn, u64 va, u32 rkey, u32 len, u32 mtu) {
    std::vector<weft_pkt> packets;
    const u32 num = (len + mtu - 1) / mtu;
    for (u32 i = 0; i < num; ++i) {
        const bool first = i == 0;
        const bool last = i == num - 1;
        const unsigned opcode = first && last ? WEFT_WRITE_ONLY
                                : first       ? WEFT_WRITE_FIRST
                                : last        ? WEFT_WRITE_LAST
                                              : WEFT_WRITE_MIDDLE;
        weft_pkt pkt = packet(WEFT_RC | opcode, weft_psn_add(psn, i), std::min(len - i * mtu, mtu));
        if (first) {
            pkt.va = va;
            pkt.rkey = rkey;
            pkt.dmalen = len;
        }
        packets.push_back(pkt);
    }
    return packets;
}

testing::AssertionResult has_place(const weft_placement& p, u32 mtu, const weft_pkt& pkt, u64 va,
                                   u32 rkey) {
    weft_place place{};
    if (!weft_placement_find(&p, mtu, &pkt, &place))
        return testing::AssertionFailure() << pkt.op->name << " has none";
    if (place.va != va || place.rkey != rkey)
        return testing::AssertionFailure() << pkt.op->name << " at " << place.va;
    return testing::AssertionSuccess();
}

bool has_none(const weft_placement& p, u32 mtu, const weft_pkt& pkt) {
    weft_place place{};
    return !weft_placement_find(&p, mtu, &pkt, &place);
}

TEST(Placement, AnyOrderBehindTheReth) {
    Rng rng(1);
    for (int turn = 0; turn < 200; ++turn) {
        const u32 mtu = mtus[pick(rng, 0, std::size(mtus) - 1)];
        const u32 psn = static_cast<u32>(pick(rng, 0, WEFT_PSN_MASK));
        const u64 va = pick(rng, 0, UINT64_MAX / 2);
        const u32 len = static_cast<u32>(pick(rng, 1, 40 * mtu));
        const auto packets = write(psn, va, 0x1234, len, mtu);
        weft_placement p{};
        EXPECT_TRUE(has_place(p, mtu, packets[0], va, 0x1234)) << "its own RETH tells it";
        for (size_t i = 1; i < packets.size(); ++i)
            EXPECT_TRUE(has_none(p, mtu, packets[i])) << "the RETH is missing";
        weft_placement_note(&p, mtu, packets.data());
        std::vector<size_t> order;
        for (size_t i = 1; i < packets.size(); ++i)
            order.push_back(i);
        std::shuffle(order.begin(), order.end(), rng);
        for (const size_t i : order)
            EXPECT_TRUE(has_place(p, mtu, packets[i], va + i * mtu, 0x1234));
    }
}

TEST(Placement, WhatDoesNotAgreeHasNone) {
    constexpr u32 mtu = 1024;
    weft_placement p{};
    auto packets = write(100, 0, 1, 5 * mtu - 24, mtu);
    weft_placement_note(&p, mtu, packets.data());

    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_LAST, 102, mtu))) << "too early";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_MIDDLE, 104, mtu))) << "no last";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_MIDDLE, 105, mtu))) << "behind";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_MIDDLE, 99, mtu))) << "before";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_MIDDLE, 102, mtu - 1))) << "short";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_WRITE_LAST, 104, mtu - 23))) << "long";
    EXPECT_TRUE(has_none(p, mtu, packet(WEFT_RC | WEFT_SEND_MIDDLE, 102, mtu))) << "a SEND";

    weft_pkt only = write(200, 0, 1, 64, mtu)[0];
    only.dmalen = 65;
    EXPECT_TRUE(has_none(p, mtu, only)) << "less than the RETH says";
    weft_pkt first = write(200, 0, 1, 2 * mtu, mtu)[0];
    first.dmalen = mtu;
    EXPECT_TRUE(has_none(p, mtu, first)) << "more to come than the RETH says";
    first.dmalen = 2 * mtu;
    first.payload_len = mtu - 4;
    EXPECT_TRUE(has_none(p, mtu, first)) << "a short first packet";
    only.dmalen = only.payload_len = 0;
    EXPECT_TRUE(has_none(p, mtu, only)) << "nothing to place";
}

TEST(Placement, TheFirstRethCounts) {
    constexpr u32 mtu = 256;
    weft_placement p{};
    const auto packets = write(7, 4096, 1, 3 * mtu, mtu);
    weft_placement_note(&p, mtu, packets.data());
    weft_pkt other = packets[0];
    other.va = 8192;
    weft_placement_note(&p, mtu, &other);
    EXPECT_TRUE(has_place(p, mtu, packets[1], 4096 + mtu, 1));
}

TEST(Placement, MessagesEndAndMakeRoom) {
    constexpr u32 mtu = 256;
    const u32 start = WEFT_PSN_MASK - 10; // around the circle
    weft_placement p{};
    std::vector<std::vector<weft_pkt>> messages;
    for (u32 i = 0; i <= WEFT_PLACEMENT_MESSAGES; ++i)
        messages.push_back(write(weft_psn_add(start, 2 * i), i << 16, i, 2 * mtu, mtu));
    for (const auto& message : messages)
        weft_placement_note(&p, mtu, message.data());
    for (u32 i = 0; i < WEFT_PLACEMENT_MESSAGES; ++i)
        EXPECT_TRUE(has_place(p, mtu, messages[i][1], (i << 16) + mtu, i));
    EXPECT_TRUE(has_none(p, mtu, messages.back()[1])) << "no slot";

    // The first one is not over before its last packet is.
    weft_placement_forget(&p, weft_psn_add(start, 1));
    EXPECT_TRUE(has_place(p, mtu, messages[0][1], mtu, 0));
    weft_placement_forget(&p, weft_psn_add(start, 2));
    EXPECT_TRUE(has_none(p, mtu, messages[0][1]));
    EXPECT_TRUE(has_place(p, mtu, messages[1][1], (1 << 16) + mtu, 1));
    weft_placement_note(&p, mtu, messages.back().data());
    EXPECT_TRUE(has_place(p, mtu, messages.back()[1], (u64{WEFT_PLACEMENT_MESSAGES} << 16) + mtu,
                          WEFT_PLACEMENT_MESSAGES));
    weft_placement_forget(&p, weft_psn_add(start, 2 * (WEFT_PLACEMENT_MESSAGES + 1)));
    for (const auto& message : messages)
        EXPECT_TRUE(has_none(p, mtu, message[1]));
}

TEST(Placement, LongestMessage) {
    constexpr u32 mtu = 256;
    weft_placement p{};
    weft_pkt first = packet(WEFT_RC | WEFT_WRITE_FIRST, 5, mtu);
    first.dmalen = 1u << 30;
    weft_placement_note(&p, mtu, &first);
    const u32 last = first.dmalen / mtu - 1;
    EXPECT_TRUE(has_place(p, mtu, packet(WEFT_RC | WEFT_WRITE_LAST, weft_psn_add(5, last), mtu),
                          u64{last} * mtu, 0));
    weft_placement_forget(&p, 5);
    EXPECT_TRUE(has_place(p, mtu, packet(WEFT_RC | WEFT_WRITE_MIDDLE, 6, mtu), mtu, 0));
}

} // namespace
