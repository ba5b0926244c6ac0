// SPDX-License-Identifier: GPL-2.0
// From work requests to packets.
#include "support.h"

#include <algorithm>

namespace {

using weft::test::mtus;
using weft::test::pick;
using weft::test::Rng;

constexpr weft_wr all_wrs[] = {WEFT_WR_SEND,         WEFT_WR_SEND_IMM,  WEFT_WR_SEND_INV,
                               WEFT_WR_WRITE,        WEFT_WR_WRITE_IMM, WEFT_WR_READ,
                               WEFT_WR_COMPARE_SWAP, WEFT_WR_FETCH_ADD, WEFT_WR_ATOMIC_WRITE};

TEST(Requester, ReadsAndAtomicsAreRdAtomic) {
    for (const weft_wr wr : all_wrs)
        EXPECT_EQ(weft_wr_is_rd_atomic(wr), wr >= WEFT_WR_READ) << wr;
}

TEST(Requester, WhatEachTransportCarries) {
    for (const weft_wr wr : all_wrs) {
        EXPECT_TRUE(weft_wr_allowed(WEFT_RC, wr)) << wr;
        EXPECT_EQ(weft_wr_allowed(WEFT_UC, wr), wr == WEFT_WR_SEND || wr == WEFT_WR_SEND_IMM ||
                                                    wr == WEFT_WR_WRITE || wr == WEFT_WR_WRITE_IMM)
            << wr;
        EXPECT_EQ(weft_wr_allowed(WEFT_UD, wr), wr == WEFT_WR_SEND || wr == WEFT_WR_SEND_IMM) << wr;
    }
    EXPECT_FALSE(weft_wr_allowed(WEFT_RC, WEFT_WR_COUNT));
}

TEST(Requester, PsnCount) {
    for (const weft_wr wr : {WEFT_WR_SEND, WEFT_WR_WRITE, WEFT_WR_READ}) {
        EXPECT_EQ(weft_wr_psn_count(wr, 0, 1024), 1U);
        EXPECT_EQ(weft_wr_psn_count(wr, 1, 1024), 1U);
        EXPECT_EQ(weft_wr_psn_count(wr, 1024, 1024), 1U);
        EXPECT_EQ(weft_wr_psn_count(wr, 1025, 1024), 2U);
        EXPECT_EQ(weft_wr_psn_count(wr, 0x80000000, 4096), 0x80000U);
        EXPECT_EQ(weft_wr_psn_count(wr, 0xffffffff, 4096), 0x100000U);
    }
    for (const weft_wr wr : {WEFT_WR_COMPARE_SWAP, WEFT_WR_FETCH_ADD, WEFT_WR_ATOMIC_WRITE})
        EXPECT_EQ(weft_wr_psn_count(wr, 8, 4), 1U);
}

TEST(Requester, OpcodesByPlace) {
    struct Row {
        weft_wr wr;
        unsigned first, middle, last, only;
    };
    constexpr Row rows[] = {{WEFT_WR_SEND, 0x00, 0x01, 0x02, 0x04},
                            {WEFT_WR_SEND_IMM, 0x00, 0x01, 0x03, 0x05},
                            {WEFT_WR_SEND_INV, 0x00, 0x01, 0x16, 0x17},
                            {WEFT_WR_WRITE, 0x06, 0x07, 0x08, 0x0a},
                            {WEFT_WR_WRITE_IMM, 0x06, 0x07, 0x09, 0x0b}};
    for (const Row& row : rows) {
        EXPECT_EQ(weft_req_segment(WEFT_RC, row.wr, 700, 0, 256).opcode, row.first);
        EXPECT_EQ(weft_req_segment(WEFT_RC, row.wr, 700, 256, 256).opcode, row.middle);
        EXPECT_EQ(weft_req_segment(WEFT_RC, row.wr, 700, 512, 256).opcode, row.last);
        EXPECT_EQ(weft_req_segment(WEFT_RC, row.wr, 256, 0, 256).opcode, row.only);
        EXPECT_EQ(weft_req_segment(WEFT_RC, row.wr, 0, 0, 256).opcode, row.only);
        EXPECT_EQ(weft_req_segment(WEFT_UC, row.wr, 700, 0, 256).opcode, row.first | 0x20);
    }
    EXPECT_EQ(weft_req_segment(WEFT_UD, WEFT_WR_SEND, 700, 0, 1024).opcode, 0x64);
    EXPECT_EQ(weft_req_segment(WEFT_UD, WEFT_WR_SEND_IMM, 700, 0, 1024).opcode, 0x65);
    EXPECT_EQ(weft_req_segment(WEFT_RC, WEFT_WR_READ, 700, 0, 256).opcode, 0x0c);
    EXPECT_EQ(weft_req_segment(WEFT_RC, WEFT_WR_READ, 700, 256, 256).opcode, 0x0c) << "resumed";
    EXPECT_EQ(weft_req_segment(WEFT_RC, WEFT_WR_COMPARE_SWAP, 8, 0, 256).opcode, 0x13);
    EXPECT_EQ(weft_req_segment(WEFT_RC, WEFT_WR_FETCH_ADD, 8, 0, 256).opcode, 0x14);
    EXPECT_EQ(weft_req_segment(WEFT_RC, WEFT_WR_ATOMIC_WRITE, 8, 0, 256).opcode, 0x1d);
}

TEST(Requester, OnePacketRequestsHaveTheirPayload) {
    for (const weft_wr wr : {WEFT_WR_READ, WEFT_WR_COMPARE_SWAP, WEFT_WR_FETCH_ADD}) {
        const weft_segment seg = weft_req_segment(WEFT_RC, wr, 5000, 0, 256);
        EXPECT_EQ(seg.payload_len, 0U);
        EXPECT_TRUE(seg.last);
    }
    const weft_segment seg = weft_req_segment(WEFT_RC, WEFT_WR_ATOMIC_WRITE, 8, 0, 256);
    EXPECT_EQ(seg.payload_len, 8U);
    EXPECT_TRUE(seg.last);
}

u32 random_length(Rng& rng, u32 mtu) {
    const auto whole = static_cast<u32>(pick(rng, 0, 20) * mtu);
    return whole + static_cast<u32>(pick(rng, 0, 1) ? pick(rng, 0, mtu - 1) : 0);
}

// Any request, packet by packet: PSNs, sizes and opcodes are what a responder takes.
TEST(Requester, SegmentsOfAnyRequestPassTheResponder) {
    Rng rng(7);
    for (int round = 0; round < 5000; ++round) {
        const u32 mtu = mtus[pick(rng, 0, 4)];
        const u8 transport = pick(rng, 0, 1) ? WEFT_RC : WEFT_UC;
        const weft_wr wr = all_wrs[pick(rng, 0, WEFT_WR_COUNT - 1)];
        if (!weft_wr_allowed(transport, wr))
            continue;
        const bool fixed = wr > WEFT_WR_READ;
        const u32 len = fixed ? 8 : random_length(rng, mtu);
        const auto first = static_cast<u32>(rng() & WEFT_PSN_MASK);
        weft_resp_state st{};
        st.epsn = first;
        u32 offset = 0;
        u32 psn = first;
        for (bool last = false; !last; psn = weft_psn_add(psn, 1)) {
            const weft_segment seg = weft_req_segment(transport, wr, len, offset, mtu);
            EXPECT_EQ(weft_req_offset_of_psn(wr, first, psn, mtu, len), offset);
            weft_pkt pkt = weft::test::packet(seg.opcode, psn, seg.payload_len);
            ASSERT_NE(pkt.op, nullptr);
            pkt.dmalen = len;
            ASSERT_EQ(weft_resp_check(&st, transport, mtu, &pkt).verdict, WEFT_RESP_OK)
                << pkt.op->name << " len " << len << " offset " << offset << " mtu " << mtu;
            weft_resp_accept(&st, mtu, &pkt);
            offset += seg.payload_len;
            last = seg.last;
        }
        if (wr != WEFT_WR_READ && wr != WEFT_WR_COMPARE_SWAP && wr != WEFT_WR_FETCH_ADD) {
            EXPECT_EQ(offset, len);
        }
        EXPECT_EQ(st.epsn, weft_psn_add(first, weft_wr_psn_count(wr, len, mtu)));
        EXPECT_EQ(st.msn, 1U);
        EXPECT_EQ(st.msg_flags, 0U);
    }
}

TEST(Requester, OffsetOfPsn) {
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_SEND, 10, 10, 1024, 5000), 0U);
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_SEND, 10, 12, 1024, 5000), 2048U);
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_READ, 0xffffff, 1, 1024, 5000), 2048U) << "wraps";
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_READ, 10, 100, 1024, 5000), 5000U) << "not beyond";
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_READ, 0, 0x7ffff, 4096, 0x80000000), 0x7ffff000U);
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_WRITE, 5, 4, 4096, 0x80000000), 0x80000000U)
        << "no overflow";
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_WRITE, 0, 0x100001, 4096, 5000), 5000U);
    EXPECT_EQ(weft_req_offset_of_psn(WEFT_WR_FETCH_ADD, 10, 11, 1024, 8), 0U);
}

TEST(Requester, AckIsWantedAtTheEndAndEveryInterval) {
    const weft_segment last = {WEFT_SEND_LAST, 1, true};
    const weft_segment middle = {WEFT_SEND_MIDDLE, 1024, false};
    for (u32 psn = 0; psn < 100; ++psn) {
        EXPECT_TRUE(weft_req_want_ack(&last, true, psn, 16));
        EXPECT_TRUE(weft_req_want_ack(&last, true, psn, 0));
        EXPECT_FALSE(weft_req_want_ack(&last, false, psn, 0));
        EXPECT_FALSE(weft_req_want_ack(&middle, true, psn, 0));
    }
    u32 wanted = 0, patient = 0;
    for (u32 psn = 37; psn < 37 + 160; ++psn) {
        wanted += weft_req_want_ack(&middle, true, psn, 16);
        patient += weft_req_want_ack(&last, false, psn, 16);
    }
    EXPECT_EQ(wanted, 10U);
    EXPECT_EQ(patient, 10U);
}

} // namespace
