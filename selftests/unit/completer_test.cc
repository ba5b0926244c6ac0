// SPDX-License-Identifier: GPL-2.0
// Completer: the verdict for each kind of response, before, in and behind each kind of request.
#include "support.h"

namespace {

using weft::test::packet;

constexpr u32 mtu = 1024;
constexpr u32 first = 0xfffffe; // every request of several packets wraps
constexpr u32 next = first + 1000;

weft_comp_wqe request(weft_wr wr, u32 len) {
    weft_comp_wqe wqe{};
    wqe.wr = wr;
    wqe.first_psn = first;
    wqe.last_psn = weft_psn_add(first, weft_wr_psn_count(wr, len, mtu) - 1);
    wqe.resp_psn = first;
    wqe.len = len;
    wqe.mtu = mtu;
    return wqe;
}

weft_comp_wqe send(u32 packets) {
    return request(WEFT_WR_SEND, packets * mtu);
}

weft_comp_wqe read(u32 len, u32 answered = 0) {
    weft_comp_wqe wqe = request(WEFT_WR_READ, len);
    wqe.resp_psn = weft_psn_add(first, answered);
    return wqe;
}

bool acked(const weft_comp_wqe& wqe, const weft_pkt& pkt) {
    return weft_comp_is_acked(wqe.wr, wqe.last_psn, next & WEFT_PSN_MASK, &pkt);
}

weft_comp_result step(const weft_comp_wqe& wqe, const weft_pkt& pkt) {
    const weft_comp_result r = weft_comp_step(&wqe, next & WEFT_PSN_MASK, &pkt);
    if (acked(wqe, pkt)) {
        EXPECT_EQ(r.verdict, WEFT_COMP_NEXT) << "what a driver does without asking";
    }
    return r;
}

weft_pkt ack(u32 offset, u8 syndrome = WEFT_SYNDROME_ACK) {
    weft_pkt pkt = packet(WEFT_ACKNOWLEDGE, first + offset);
    pkt.syndrome = syndrome;
    return pkt;
}

weft_pkt sequence_nak(u32 offset) {
    return ack(offset, weft_syndrome_nak(WEFT_NAK_PSN_SEQUENCE));
}

void expect_retry(const weft_comp_result& r, u32 offset, bool implied) {
    EXPECT_EQ(r.verdict, WEFT_COMP_RETRY);
    EXPECT_EQ(r.resume_psn, weft_psn_add(first, offset));
    EXPECT_EQ(r.implied, implied);
}

TEST(Completer, PositiveAckCoalesces) {
    EXPECT_EQ(step(send(4), ack(0)).verdict, WEFT_COMP_PROGRESS);
    EXPECT_EQ(step(send(4), ack(2)).verdict, WEFT_COMP_PROGRESS);
    EXPECT_EQ(step(send(4), ack(3)).verdict, WEFT_COMP_NEXT);
    EXPECT_EQ(step(send(4), ack(50)).verdict, WEFT_COMP_NEXT);
    EXPECT_EQ(step(send(4), ack(0, 0)).verdict, WEFT_COMP_PROGRESS) << "credits do not matter";
}

TEST(Completer, WholeRequestIsAcked) {
    EXPECT_TRUE(acked(send(4), ack(3)));
    EXPECT_TRUE(acked(send(4), ack(50, 0)));
    EXPECT_FALSE(acked(send(4), ack(2))) << "a part of it";
    EXPECT_FALSE(acked(send(4), ack(1000))) << "never sent";
    EXPECT_FALSE(acked(send(4), sequence_nak(50)));
    EXPECT_FALSE(acked(read(mtu), ack(50))) << "only its response completes a READ";
}

TEST(Completer, OldAndUnsentAreDropped) {
    for (const u8 syndrome : {WEFT_SYNDROME_ACK, 0x2c, 0x60, 0x62}) {
        for (const weft_comp_wqe& wqe : {send(4), read(4 * mtu)}) {
            EXPECT_EQ(step(wqe, ack(0xffffff, syndrome)).verdict, WEFT_COMP_DROP)
                << "before the first";
            EXPECT_EQ(step(wqe, ack(0x900000, syndrome)).verdict, WEFT_COMP_DROP) << "long before";
            EXPECT_EQ(step(wqe, ack(1000, syndrome)).verdict, WEFT_COMP_DROP) << "never sent";
            EXPECT_EQ(step(wqe, ack(5000, syndrome)).verdict, WEFT_COMP_DROP) << "never sent";
        }
    }
    EXPECT_EQ(step(read(4 * mtu), packet(WEFT_READ_RESPONSE_ONLY, first + 1000, mtu)).verdict,
              WEFT_COMP_DROP);
}

TEST(Completer, RequestsAndReservedSyndromesAreDropped) {
    EXPECT_EQ(step(send(1), packet(WEFT_SEND_ONLY, first)).verdict, WEFT_COMP_DROP);
    for (const u8 syndrome : {0x40, 0x5f, 0x65, 0x7f, 0x80, 0xff}) {
        EXPECT_EQ(step(send(1), ack(0, syndrome)).verdict, WEFT_COMP_DROP);
        EXPECT_EQ(step(send(1), ack(5, syndrome)).verdict, WEFT_COMP_DROP);
    }
}

TEST(Completer, AckThatOvertookAResponseProvesItLost) {
    expect_retry(step(read(4 * mtu), ack(0)), 0, true);
    expect_retry(step(read(4 * mtu), ack(3)), 0, true);
    expect_retry(step(read(4 * mtu), ack(4)), 0, true);
    expect_retry(step(read(4 * mtu, 2), ack(4)), 2, true);
    for (const weft_wr wr : {WEFT_WR_COMPARE_SWAP, WEFT_WR_FETCH_ADD, WEFT_WR_ATOMIC_WRITE}) {
        expect_retry(step(request(wr, 8), ack(0)), 0, true);
        expect_retry(step(request(wr, 8), ack(1)), 0, true);
    }
}

TEST(Completer, SequenceNakAcknowledgesWhatIsBefore) {
    expect_retry(step(send(4), sequence_nak(0)), 0, false);
    expect_retry(step(send(4), sequence_nak(2)), 2, false);
    expect_retry(step(send(4), sequence_nak(3)), 3, false);
    EXPECT_EQ(step(send(4), sequence_nak(4)).verdict, WEFT_COMP_NEXT);
    expect_retry(step(read(4 * mtu), sequence_nak(0)), 0, false);
    expect_retry(step(read(4 * mtu), sequence_nak(4)), 0, true);
    expect_retry(step(read(4 * mtu, 3), sequence_nak(4)), 3, true);
    expect_retry(step(read(4 * mtu, 1), sequence_nak(1)), 1, false);
    expect_retry(step(read(4 * mtu, 1), sequence_nak(2)), 1, true);
    EXPECT_EQ(step(read(4 * mtu, 3), sequence_nak(0)).verdict, WEFT_COMP_DROP)
        << "the READ was received since";
}

TEST(Completer, RnrWaitsThenResends) {
    weft_comp_result r = step(send(4), ack(1, weft_syndrome_rnr(17)));
    EXPECT_EQ(r.verdict, WEFT_COMP_RNR);
    EXPECT_EQ(r.rnr_code, 17);
    EXPECT_EQ(r.resume_psn, weft_psn_add(first, 1));
    EXPECT_EQ(step(send(4), ack(4, weft_syndrome_rnr(17))).verdict, WEFT_COMP_NEXT);
    expect_retry(step(read(mtu), ack(1, weft_syndrome_rnr(17))), 0, true);
    r = step(request(WEFT_WR_FETCH_ADD, 8), ack(0, weft_syndrome_rnr(0)));
    EXPECT_EQ(r.verdict, WEFT_COMP_RNR);
    EXPECT_EQ(r.rnr_code, 0);
}

TEST(Completer, OtherNaksFailTheRequestThatTheyName) {
    for (const weft_nak_code nak : {WEFT_NAK_INVALID_REQUEST, WEFT_NAK_REMOTE_ACCESS,
                                    WEFT_NAK_REMOTE_OPERATIONAL, WEFT_NAK_INVALID_RD_REQUEST}) {
        const u8 syndrome = weft_syndrome_nak(nak);
        for (const u32 offset : {0, 3}) {
            for (const weft_comp_wqe& wqe : {send(4), read(4 * mtu)}) {
                const weft_comp_result r = step(wqe, ack(offset, syndrome));
                EXPECT_EQ(r.verdict, WEFT_COMP_ERROR);
                EXPECT_EQ(r.nak, nak);
            }
        }
        EXPECT_EQ(step(send(4), ack(4, syndrome)).verdict, WEFT_COMP_NEXT);
        expect_retry(step(read(4 * mtu), ack(4, syndrome)), 0, true);
        EXPECT_EQ(step(request(WEFT_WR_ATOMIC_WRITE, 8), ack(0, syndrome)).verdict,
                  WEFT_COMP_ERROR);
    }
}

TEST(Completer, ResponseToALaterRequestAcknowledges) {
    EXPECT_EQ(step(send(4), packet(WEFT_READ_RESPONSE_ONLY, first + 4)).verdict, WEFT_COMP_NEXT);
    EXPECT_EQ(step(send(4), packet(WEFT_READ_RESPONSE_MIDDLE, first + 6, mtu)).verdict,
              WEFT_COMP_NEXT);
    EXPECT_EQ(step(send(4), packet(WEFT_ATOMIC_ACKNOWLEDGE, first + 4)).verdict, WEFT_COMP_NEXT);
    expect_retry(step(read(mtu), packet(WEFT_ATOMIC_ACKNOWLEDGE, first + 1)), 0, true);
    expect_retry(step(request(WEFT_WR_FETCH_ADD, 8), packet(WEFT_READ_RESPONSE_ONLY, first + 1)), 0,
                 true);
}

TEST(Completer, ReadResponsesInOrder) {
    const u32 len = 3 * mtu + 5;
    weft_comp_wqe wqe = read(len);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_FIRST, first, mtu)).verdict, WEFT_COMP_READ_DATA);
    wqe = read(len, 1);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_MIDDLE, first + 1, mtu)).verdict,
              WEFT_COMP_READ_DATA);
    wqe = read(len, 3);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_LAST, first + 3, 5)).verdict,
              WEFT_COMP_READ_LAST);
    EXPECT_EQ(step(read(5), packet(WEFT_READ_RESPONSE_ONLY, first, 5)).verdict,
              WEFT_COMP_READ_LAST);
    EXPECT_EQ(step(read(0), packet(WEFT_READ_RESPONSE_ONLY, first, 0)).verdict,
              WEFT_COMP_READ_LAST);
    EXPECT_EQ(step(read(mtu), packet(WEFT_READ_RESPONSE_ONLY, first, mtu)).verdict,
              WEFT_COMP_READ_LAST);
}

// A resend of the rest is answered as a READ of its own: FIRST, or ONLY for one packet.
TEST(Completer, ResumedReadBeginsWithFirstOrOnly) {
    const u32 len = 3 * mtu + 5;
    EXPECT_EQ(step(read(len, 1), packet(WEFT_READ_RESPONSE_FIRST, first + 1, mtu)).verdict,
              WEFT_COMP_READ_DATA);
    EXPECT_EQ(step(read(len, 3), packet(WEFT_READ_RESPONSE_ONLY, first + 3, 5)).verdict,
              WEFT_COMP_READ_LAST);
}

TEST(Completer, ReadResponseBehindAGapIsARetry) {
    expect_retry(step(read(4 * mtu), packet(WEFT_READ_RESPONSE_MIDDLE, first + 1, mtu)), 0, true);
    expect_retry(step(read(4 * mtu, 1), packet(WEFT_READ_RESPONSE_LAST, first + 3, mtu)), 1, true);
    EXPECT_EQ(step(read(4 * mtu, 2), packet(WEFT_READ_RESPONSE_MIDDLE, first + 1, mtu)).verdict,
              WEFT_COMP_DROP)
        << "seen before";
}

TEST(Completer, ReadResponseMustFitItsPlace) {
    const u32 len = 3 * mtu + 5;
    struct Place {
        u32 answered;
        u32 payload;
    };
    for (const Place& place : {Place{0, mtu}, Place{1, mtu}, Place{2, mtu}, Place{3, 5}}) {
        for (const unsigned opcode : {WEFT_READ_RESPONSE_FIRST, WEFT_READ_RESPONSE_MIDDLE,
                                      WEFT_READ_RESPONSE_LAST, WEFT_READ_RESPONSE_ONLY}) {
            const bool ends =
                opcode == WEFT_READ_RESPONSE_LAST || opcode == WEFT_READ_RESPONSE_ONLY;
            const bool fits = ends == (place.answered == 3) &&
                              !(opcode == WEFT_READ_RESPONSE_MIDDLE && place.answered == 0);
            for (const u32 payload : {0U, 4U, 5U, 6U, mtu - 1, mtu, mtu + 1}) {
                const weft_comp_result r = step(read(len, place.answered),
                                                packet(opcode, first + place.answered, payload));
                EXPECT_EQ(r.verdict == WEFT_COMP_BAD_RESPONSE, !(fits && payload == place.payload))
                    << "packet " << place.answered << " opcode " << opcode << " payload "
                    << payload;
            }
        }
    }
    EXPECT_EQ(step(read(5), packet(WEFT_READ_RESPONSE_LAST, first, 5)).verdict,
              WEFT_COMP_BAD_RESPONSE)
        << "LAST without FIRST";
}

TEST(Completer, AtomicIsCompleteByItsOwnResponse) {
    for (const weft_wr wr : {WEFT_WR_COMPARE_SWAP, WEFT_WR_FETCH_ADD}) {
        EXPECT_EQ(step(request(wr, 8), packet(WEFT_ATOMIC_ACKNOWLEDGE, first)).verdict,
                  WEFT_COMP_ATOMIC);
        EXPECT_EQ(step(request(wr, 8), packet(WEFT_READ_RESPONSE_ONLY, first)).verdict,
                  WEFT_COMP_BAD_RESPONSE);
    }
}

TEST(Completer, AtomicWriteIsCompleteByAnEmptyReadResponse) {
    const weft_comp_wqe wqe = request(WEFT_WR_ATOMIC_WRITE, 8);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_ONLY, first)).verdict, WEFT_COMP_NEXT);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_ONLY, first, 8)).verdict, WEFT_COMP_BAD_RESPONSE);
    EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_FIRST, first)).verdict, WEFT_COMP_BAD_RESPONSE);
    EXPECT_EQ(step(wqe, packet(WEFT_ATOMIC_ACKNOWLEDGE, first)).verdict, WEFT_COMP_BAD_RESPONSE);
}

TEST(Completer, DataForARequestThatWantsNoneIsBad) {
    for (const weft_wr wr : {WEFT_WR_SEND, WEFT_WR_SEND_INV, WEFT_WR_WRITE, WEFT_WR_WRITE_IMM}) {
        const weft_comp_wqe wqe = request(wr, 2 * mtu);
        EXPECT_EQ(step(wqe, packet(WEFT_READ_RESPONSE_ONLY, first, 8)).verdict,
                  WEFT_COMP_BAD_RESPONSE);
        EXPECT_EQ(step(wqe, packet(WEFT_ATOMIC_ACKNOWLEDGE, first + 1)).verdict,
                  WEFT_COMP_BAD_RESPONSE);
    }
    EXPECT_EQ(step(read(8), packet(WEFT_ATOMIC_ACKNOWLEDGE, first)).verdict,
              WEFT_COMP_BAD_RESPONSE);
}

TEST(Completer, DataUnderANakIsBad) {
    weft_pkt pkt = packet(WEFT_READ_RESPONSE_ONLY, first, 8);
    pkt.syndrome = weft_syndrome_nak(WEFT_NAK_REMOTE_ACCESS);
    EXPECT_EQ(step(read(8), pkt).verdict, WEFT_COMP_BAD_RESPONSE);
    pkt.syndrome = weft_syndrome_rnr(1);
    EXPECT_EQ(step(read(8), pkt).verdict, WEFT_COMP_BAD_RESPONSE);
    pkt = packet(WEFT_READ_RESPONSE_MIDDLE, first + 1, mtu);
    pkt.syndrome = 0xff;
    EXPECT_EQ(step(read(3 * mtu, 1), pkt).verdict, WEFT_COMP_READ_DATA)
        << "MIDDLE has no AETH, its syndrome is not defined";
}

} // namespace
