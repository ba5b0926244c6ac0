// SPDX-License-Identifier: GPL-2.0
// Responder: PSN order, opcode order, lengths, for RC and UC.
#include "support.h"

#include <tuple>

namespace {

using weft::test::packet;

constexpr u32 mtu = 1024;
constexpr u32 epsn = 100;

weft_resp_state at(u32 psn) {
    weft_resp_state st{};
    st.epsn = psn;
    return st;
}

weft_pkt with_reth(unsigned opcode, u32 psn, u32 payload, u32 dmalen) {
    weft_pkt pkt = packet(opcode, psn, payload);
    pkt.dmalen = dmalen;
    return pkt;
}

weft_resp_result check(weft_resp_state& st, u8 transport, const weft_pkt& pkt) {
    return weft_resp_check(&st, transport, mtu, &pkt);
}

void expect_ok(weft_resp_state& st, u8 transport, const weft_pkt& pkt) {
    const weft_resp_result r = check(st, transport, pkt);
    EXPECT_EQ(r.verdict, WEFT_RESP_OK) << pkt.op->name;
    EXPECT_FALSE(r.lost);
    weft_resp_accept(&st, mtu, &pkt);
}

void expect_invalid(weft_resp_state st, const weft_pkt& pkt) {
    const weft_resp_result r = check(st, WEFT_RC, pkt);
    EXPECT_EQ(r.verdict, WEFT_RESP_NAK) << pkt.op->name << " payload " << pkt.payload_len;
    EXPECT_EQ(r.nak, WEFT_NAK_INVALID_REQUEST);
    EXPECT_FALSE(r.lost);
}

TEST(ResponderRc, ExpectedThenDuplicate) {
    weft_resp_state st = at(0xffffff);
    const weft_pkt pkt = packet(WEFT_SEND_ONLY, 0xffffff, 10);
    expect_ok(st, WEFT_RC, pkt);
    EXPECT_EQ(st.epsn, 0U);
    EXPECT_EQ(st.msn, 1U);
    EXPECT_EQ(check(st, WEFT_RC, pkt).verdict, WEFT_RESP_DUPLICATE);
    EXPECT_EQ(check(st, WEFT_RC, packet(WEFT_SEND_ONLY, 0x800000)).verdict, WEFT_RESP_DUPLICATE);
    EXPECT_EQ(check(st, WEFT_RC, packet(WEFT_SEND_ONLY, 0x7fffff)).verdict, WEFT_RESP_NAK);
}

TEST(ResponderRc, OneSequenceNakForEachGap) {
    weft_resp_state st = at(epsn);
    weft_resp_result r = check(st, WEFT_RC, packet(WEFT_SEND_ONLY, epsn + 2));
    EXPECT_EQ(r.verdict, WEFT_RESP_NAK);
    EXPECT_EQ(r.nak, WEFT_NAK_PSN_SEQUENCE);
    EXPECT_TRUE(r.lost);
    for (u32 ahead = 1; ahead < 5; ++ahead) {
        r = check(st, WEFT_RC, packet(WEFT_SEND_ONLY, epsn + ahead));
        EXPECT_EQ(r.verdict, WEFT_RESP_DROP);
        EXPECT_TRUE(r.lost);
    }
    EXPECT_EQ(check(st, WEFT_RC, packet(WEFT_SEND_ONLY, epsn - 1)).verdict, WEFT_RESP_DUPLICATE);
    EXPECT_TRUE(st.nak_pending) << "a duplicate does not end the gap";
    expect_ok(st, WEFT_RC, packet(WEFT_SEND_ONLY, epsn));
    EXPECT_FALSE(st.nak_pending);
    EXPECT_EQ(check(st, WEFT_RC, packet(WEFT_SEND_ONLY, epsn + 2)).verdict, WEFT_RESP_NAK)
        << "a new gap, a new NAK";
}

TEST(ResponderRc, MessageOrder) {
    constexpr unsigned starts[] = {WEFT_SEND_FIRST,     WEFT_SEND_ONLY,    WEFT_SEND_ONLY_IMM,
                                   WEFT_SEND_ONLY_INV,  WEFT_WRITE_FIRST,  WEFT_WRITE_ONLY,
                                   WEFT_WRITE_ONLY_IMM, WEFT_READ_REQUEST, WEFT_COMPARE_SWAP,
                                   WEFT_FETCH_ADD,      WEFT_ATOMIC_WRITE};
    constexpr unsigned sends[] = {WEFT_SEND_MIDDLE, WEFT_SEND_LAST, WEFT_SEND_LAST_IMM,
                                  WEFT_SEND_LAST_INV};
    constexpr unsigned writes[] = {WEFT_WRITE_MIDDLE, WEFT_WRITE_LAST, WEFT_WRITE_LAST_IMM};
    weft_resp_state idle = at(epsn);
    weft_resp_state send = idle;
    expect_ok(send, WEFT_RC, packet(WEFT_SEND_FIRST, epsn, mtu));
    EXPECT_EQ(send.msg_flags, WEFT_OP_SEND);
    EXPECT_EQ(send.msn, 0U);
    weft_resp_state write = idle;
    expect_ok(write, WEFT_RC, with_reth(WEFT_WRITE_FIRST, epsn, mtu, 3 * mtu));
    EXPECT_EQ(write.msg_flags, WEFT_OP_WRITE);
    EXPECT_EQ(write.write_resid, 2 * mtu);

    for (const unsigned opcode : starts) {
        weft_pkt pkt = with_reth(opcode, epsn + 1, opcode == WEFT_ATOMIC_WRITE ? 8 : 0, 0);
        expect_invalid(send, pkt);
        expect_invalid(write, pkt);
    }
    for (const unsigned opcode : sends) {
        expect_invalid(idle, packet(opcode, epsn, mtu));
        expect_invalid(write, packet(opcode, epsn + 1, mtu));
        weft_resp_state st = send;
        expect_ok(st, WEFT_RC, packet(opcode, epsn + 1, mtu));
        EXPECT_EQ(st.msg_flags != 0, opcode == WEFT_SEND_MIDDLE);
    }
    for (const unsigned opcode : writes) {
        expect_invalid(idle, packet(opcode, epsn, mtu));
        expect_invalid(send, packet(opcode, epsn + 1, mtu));
    }
}

TEST(ResponderRc, OtherTransportsAndResponsesAreInvalid) {
    expect_invalid(at(epsn), packet(WEFT_UC | WEFT_SEND_ONLY, epsn));
    expect_invalid(at(epsn), packet(WEFT_UD | WEFT_SEND_ONLY, epsn));
    expect_invalid(at(epsn), packet(WEFT_ACKNOWLEDGE, epsn));
    expect_invalid(at(epsn), packet(WEFT_READ_RESPONSE_ONLY, epsn));
    expect_invalid(at(epsn), packet(WEFT_ATOMIC_ACKNOWLEDGE, epsn));
}

TEST(ResponderRc, SendLengths) {
    weft_resp_state open = at(epsn);
    expect_ok(open, WEFT_RC, packet(WEFT_SEND_FIRST, epsn, mtu));
    for (const u32 len : {0U, 1U, mtu - 1, mtu, mtu + 1, 2 * mtu}) {
        const auto verdict = [&](weft_resp_state st, unsigned opcode) {
            const weft_pkt pkt = packet(opcode, st.epsn, len);
            return check(st, WEFT_RC, pkt).verdict == WEFT_RESP_OK;
        };
        EXPECT_EQ(verdict(at(epsn), WEFT_SEND_FIRST), len == mtu) << len;
        EXPECT_EQ(verdict(open, WEFT_SEND_MIDDLE), len == mtu) << len;
        EXPECT_EQ(verdict(open, WEFT_SEND_LAST), len > 0 && len <= mtu) << len;
        EXPECT_EQ(verdict(at(epsn), WEFT_SEND_ONLY), len <= mtu) << len;
    }
}

TEST(ResponderRc, WriteKeepsToWhatItPromised) {
    for (const u32 dmalen : {0U, 1U, mtu - 1, mtu, mtu + 1, 2 * mtu, 0x80000000U, 0x80000001U}) {
        weft_resp_state st = at(epsn);
        const weft_pkt first = with_reth(WEFT_WRITE_FIRST, epsn, mtu, dmalen);
        EXPECT_EQ(check(st, WEFT_RC, first).verdict == WEFT_RESP_OK,
                  dmalen > mtu && dmalen <= 0x80000000U)
            << dmalen;
        for (const u32 payload : {0U, 1U, mtu - 1, mtu, mtu + 1}) {
            const weft_pkt only = with_reth(WEFT_WRITE_ONLY, epsn, payload, dmalen);
            EXPECT_EQ(check(st, WEFT_RC, only).verdict == WEFT_RESP_OK,
                      payload == dmalen && payload <= mtu)
                << dmalen << " " << payload;
        }
    }
}

TEST(ResponderRc, WriteUsesUpItsLengthAtLastAndNotBefore) {
    weft_resp_state st = at(epsn);
    expect_ok(st, WEFT_RC, with_reth(WEFT_WRITE_FIRST, epsn, mtu, 3 * mtu + 7));
    expect_invalid(st, packet(WEFT_WRITE_LAST, epsn + 1, 7));
    expect_invalid(st, packet(WEFT_WRITE_LAST, epsn + 1, mtu));
    expect_ok(st, WEFT_RC, packet(WEFT_WRITE_MIDDLE, epsn + 1, mtu));
    expect_ok(st, WEFT_RC, packet(WEFT_WRITE_MIDDLE, epsn + 2, mtu));
    EXPECT_EQ(st.write_resid, 7U);
    expect_invalid(st, packet(WEFT_WRITE_MIDDLE, epsn + 3, mtu));
    expect_invalid(st, packet(WEFT_WRITE_LAST, epsn + 3, 6));
    expect_invalid(st, packet(WEFT_WRITE_LAST, epsn + 3, 8));
    expect_ok(st, WEFT_RC, packet(WEFT_WRITE_LAST_IMM, epsn + 3, 7));
    EXPECT_EQ(st.write_resid, 0U);
    EXPECT_EQ(st.msg_flags, 0U);

    weft_resp_state even = at(epsn);
    expect_ok(even, WEFT_RC, with_reth(WEFT_WRITE_FIRST, epsn, mtu, 2 * mtu));
    expect_invalid(even, packet(WEFT_WRITE_MIDDLE, epsn + 1, mtu));
    expect_ok(even, WEFT_RC, packet(WEFT_WRITE_LAST, epsn + 1, mtu));
}

TEST(ResponderRc, ReadTakesThePsnsOfItsResponses) {
    for (const auto& [dmalen, psns] :
         {std::pair{0U, 1U}, {1U, 1U}, {mtu, 1U}, {mtu + 1, 2U}, {0x80000000U, 0x200000U}}) {
        weft_resp_state st = at(0xfffffe);
        expect_ok(st, WEFT_RC, with_reth(WEFT_READ_REQUEST, 0xfffffe, 0, dmalen));
        EXPECT_EQ(st.epsn, weft_psn_add(0xfffffe, psns));
        EXPECT_EQ(st.msn, 1U);
    }
    expect_invalid(at(epsn), with_reth(WEFT_READ_REQUEST, epsn, 0, 0x80000001));
    expect_invalid(at(epsn), with_reth(WEFT_READ_REQUEST, epsn, 4, 4));
}

TEST(ResponderRc, AtomicsAreAlignedAndOfEightBytes) {
    for (unsigned offset = 0; offset < 16; ++offset) {
        for (const unsigned opcode : {WEFT_COMPARE_SWAP, WEFT_FETCH_ADD, WEFT_ATOMIC_WRITE}) {
            weft_resp_state st = at(epsn);
            weft_pkt pkt = with_reth(opcode, epsn, opcode == WEFT_ATOMIC_WRITE ? 8 : 0, 8);
            pkt.va = 0x1000 + offset;
            const weft_resp_result r = check(st, WEFT_RC, pkt);
            EXPECT_EQ(r.verdict, offset % 8 == 0 ? WEFT_RESP_OK : WEFT_RESP_NAK) << offset;
        }
    }
    expect_invalid(at(epsn), with_reth(WEFT_ATOMIC_WRITE, epsn, 8, 4));
    expect_invalid(at(epsn), with_reth(WEFT_ATOMIC_WRITE, epsn, 4, 8));
    expect_invalid(at(epsn), with_reth(WEFT_ATOMIC_WRITE, epsn, 0, 8));
    expect_invalid(at(epsn), with_reth(WEFT_ATOMIC_WRITE, epsn, 16, 8));
    expect_invalid(at(epsn), packet(WEFT_COMPARE_SWAP, epsn, 4));
}

TEST(ResponderRc, MsnCountsMessagesIn24Bits) {
    weft_resp_state st = at(epsn);
    st.msn = 0xffffff;
    expect_ok(st, WEFT_RC, packet(WEFT_SEND_FIRST, epsn, mtu));
    EXPECT_EQ(st.msn, 0xffffffU);
    expect_ok(st, WEFT_RC, packet(WEFT_SEND_LAST, epsn + 1, 1));
    EXPECT_EQ(st.msn, 0U);
}

weft_resp_result uc(weft_resp_state& st, const weft_pkt& pkt) {
    const weft_resp_result r = check(st, WEFT_UC, pkt);
    if (r.verdict == WEFT_RESP_OK)
        weft_resp_accept(&st, mtu, &pkt);
    return r;
}

TEST(ResponderUc, GapSkipsToTheNextMessage) {
    weft_resp_state st = at(epsn);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_FIRST, epsn, mtu)).verdict, WEFT_RESP_OK);
    weft_resp_result r = uc(st, packet(WEFT_UC | WEFT_SEND_MIDDLE, epsn + 2, mtu));
    EXPECT_EQ(r.verdict, WEFT_RESP_DROP);
    EXPECT_TRUE(r.lost);
    r = uc(st, packet(WEFT_UC | WEFT_SEND_LAST, epsn + 3, 5));
    EXPECT_EQ(r.verdict, WEFT_RESP_DROP) << "the message has a hole";
    EXPECT_FALSE(r.lost) << "one gap is counted once";
    r = uc(st, packet(WEFT_UC | WEFT_SEND_ONLY, epsn + 4, 5));
    EXPECT_EQ(r.verdict, WEFT_RESP_OK);
    EXPECT_FALSE(r.lost);
    EXPECT_EQ(st.epsn, epsn + 5);
    EXPECT_EQ(st.msn, 1U);
}

TEST(ResponderUc, AStartAfterAGapIsTaken) {
    for (const u32 psn : {epsn + 7, epsn - 7}) {
        weft_resp_state st = at(epsn);
        const weft_resp_result r = uc(st, packet(WEFT_UC | WEFT_SEND_FIRST, psn, mtu));
        EXPECT_EQ(r.verdict, WEFT_RESP_OK);
        EXPECT_TRUE(r.lost);
        EXPECT_EQ(st.epsn, psn + 1);
        EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_LAST, psn + 1, 9)).verdict, WEFT_RESP_OK);
        EXPECT_EQ(st.msn, 1U);
    }
}

TEST(ResponderUc, AStartAbandonsAnOpenMessage) {
    weft_resp_state st = at(epsn);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_FIRST, epsn, mtu)).verdict, WEFT_RESP_OK);
    const weft_pkt first = with_reth(WEFT_UC | WEFT_WRITE_FIRST, epsn + 1, mtu, mtu + 4);
    EXPECT_EQ(uc(st, first).verdict, WEFT_RESP_OK);
    EXPECT_EQ(st.msg_flags, WEFT_OP_WRITE);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_WRITE_LAST, epsn + 2, 4)).verdict, WEFT_RESP_OK);
    EXPECT_EQ(st.msn, 1U);
}

TEST(ResponderUc, WhatIsWrongIsDroppedInSilence) {
    for (const weft_pkt& wrong :
         {packet(WEFT_UC | WEFT_SEND_MIDDLE, epsn, mtu), packet(WEFT_UC | WEFT_SEND_LAST, epsn, 1),
          packet(WEFT_UC | WEFT_SEND_FIRST, epsn, mtu - 1),
          with_reth(WEFT_UC | WEFT_WRITE_ONLY, epsn, 4, 5), packet(WEFT_SEND_ONLY, epsn),
          with_reth(WEFT_UC | WEFT_WRITE_FIRST, epsn, mtu, mtu)}) {
        weft_resp_state st = at(epsn);
        const weft_resp_result r = uc(st, wrong);
        EXPECT_EQ(r.verdict, WEFT_RESP_DROP) << wrong.op->name;
        EXPECT_FALSE(r.lost);
        EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_MIDDLE, epsn + 1, mtu)).verdict,
                  WEFT_RESP_DROP);
        const weft_resp_result next = uc(st, packet(WEFT_UC | WEFT_SEND_ONLY, epsn + 2, 1));
        EXPECT_EQ(next.verdict, WEFT_RESP_OK);
        EXPECT_FALSE(next.lost);
    }
}

TEST(ResponderUc, AForeignPacketSpoilsTheOpenMessage) {
    weft_resp_state st = at(epsn);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_FIRST, epsn, mtu)).verdict, WEFT_RESP_OK);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_WRITE_MIDDLE, epsn + 1, mtu)).verdict, WEFT_RESP_DROP);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_LAST, epsn + 2, 1)).verdict, WEFT_RESP_DROP);
    EXPECT_EQ(uc(st, packet(WEFT_UC | WEFT_SEND_ONLY, epsn + 3, 1)).verdict, WEFT_RESP_OK);
    EXPECT_EQ(st.msn, 1U);
}

TEST(ResponderUc, KnowsOnlySendAndWrite) {
    for (const unsigned operation : {0x0c, 0x0d, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x1d})
        EXPECT_EQ(weft_opcode_info(static_cast<u8>(WEFT_UC | operation)), nullptr);
}

} // namespace
