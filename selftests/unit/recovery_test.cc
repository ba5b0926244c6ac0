// SPDX-License-Identifier: GPL-2.0
// Selective repeat: PSN sets, the extended NAK, the scoreboard, what is learned of the path.
#include "support.h"

#include <set>

namespace {

using weft::test::Bytes;
using weft::test::chance;
using weft::test::pick;
using weft::test::Rng;
using weft::test::to_wire;

constexpr u32 size = WEFT_PSN_SET_SIZE;

TEST(Peer, IsKnownAfterPacketsInARow) {
    weft_peer peer{};
    for (int i = 1; i < WEFT_PEER_PACKETS; ++i)
        EXPECT_FALSE(weft_peer_packet(&peer, WEFT_RESV6_WEFT));
    EXPECT_FALSE(weft_peer_packet(&peer, 0)) << "one without the bit";
    for (int i = 1; i < WEFT_PEER_PACKETS; ++i)
        EXPECT_FALSE(weft_peer_packet(&peer, 0x3f));
    EXPECT_TRUE(weft_peer_packet(&peer, WEFT_RESV6_WEFT));
    EXPECT_TRUE(weft_peer_packet(&peer, 0)) << "for good";
    EXPECT_TRUE(weft_peer_is_weft(&peer));
    for (int i = 0; i < 100; ++i) {
        weft_peer other{};
        EXPECT_FALSE(weft_peer_packet(&other, static_cast<u8>(i) & ~WEFT_RESV6_WEFT));
    }
}

TEST(PsnSet, SearchAgreesWithALoop) {
    Rng rng(1);
    for (int turn = 0; turn < 300; ++turn) {
        weft_psn_set set{};
        std::set<u32> members;
        const u32 from = (WEFT_PSN_MASK - static_cast<u32>(pick(rng, 0, 2000))) & WEFT_PSN_MASK;
        for (u32 i = 0; i < size; ++i) {
            if (!chance(rng, turn % 3 == 0 ? 1 : 50))
                continue;
            weft_psn_set_add(&set, weft_psn_add(from, i));
            members.insert(i);
        }
        for (int probe = 0; probe < 20; ++probe) {
            const u32 begin = static_cast<u32>(pick(rng, 0, size - 1));
            const u32 count = static_cast<u32>(pick(rng, 0, size - begin));
            u32 member = 0;
            u32 hole = 0;
            while (member < count && !members.contains(begin + member))
                ++member;
            while (hole < count && members.contains(begin + hole))
                ++hole;
            const u32 psn = weft_psn_add(from, begin);
            EXPECT_EQ(weft_psn_set_next(&set, psn, count), member);
            EXPECT_EQ(weft_psn_set_next_hole(&set, psn, count), hole);
            EXPECT_EQ(weft_psn_set_has(&set, psn), members.contains(begin));
        }
        for (const u32 i : members)
            weft_psn_set_del(&set, weft_psn_add(from, i));
        EXPECT_EQ(weft_psn_set_next(&set, from, size), size);
    }
}

TEST(Sack, StandsOnTheWireAsDescribed) {
    weft_psn_set held{};
    weft_sack sack;
    EXPECT_EQ(weft_sack_build(&sack, &held, 7, 0x01020304), 4U);
    EXPECT_EQ(be32_to_cpu(sack.duplicates), 0x01020304U);
    weft_psn_set_add(&held, 0); // the first behind 0xffffff
    weft_psn_set_add(&held, 9);
    EXPECT_EQ(weft_sack_build(&sack, &held, 0xffffff, 0), 8U);
    EXPECT_EQ(sack.map[0], 0x01);
    EXPECT_EQ(sack.map[1], 0x02);
    weft_psn_set_add(&held, 32);
    EXPECT_EQ(weft_sack_build(&sack, &held, 0xffffff, 0), 12U);
    EXPECT_EQ(sack.map[4], 0x01);
    weft_psn_set_add(&held, size - 2); // the last that has a bit
    EXPECT_EQ(weft_sack_build(&sack, &held, 0xffffff, 0), sizeof(sack));
    EXPECT_EQ(sack.map[127], 0x40);
    for (u32 bit = 0; bit < size - 1; ++bit)
        EXPECT_EQ(weft_sack_has(&sack, bit), bit == 0 || bit == 9 || bit == 32 || bit == size - 2);
}

TEST(Sack, OnlyASequenceNakHasAPayload) {
    for (std::size_t payload = 4; payload <= 140; payload += 4) {
        for (unsigned syndrome = 0; syndrome < 256; ++syndrome) {
            weft_pkt in = weft::test::packet(WEFT_ACKNOWLEDGE, 3);
            in.syndrome = static_cast<u8>(syndrome);
            const Bytes wire = to_wire(in, Bytes(payload, 1));
            weft_pkt pkt{};
            const bool good = syndrome == 0x60 && payload <= sizeof(weft_sack);
            EXPECT_EQ(weft_pkt_parse(&pkt, wire.data(), wire.size()),
                      good ? WEFT_DROP_NONE : WEFT_DROP_LENGTH)
                << payload << " bytes, syndrome " << syndrome;
            if (good) {
                EXPECT_TRUE(weft_pkt_is_sack(&pkt));
                EXPECT_EQ(pkt.payload_len, payload);
            }
        }
    }
    weft_pkt in = weft::test::packet(WEFT_ACKNOWLEDGE, 3);
    in.syndrome = 0x60;
    for (std::size_t payload = 1; payload < 12; ++payload) {
        const Bytes wire = to_wire(in, Bytes(payload, 1));
        weft_pkt pkt{};
        EXPECT_EQ(weft_pkt_parse(&pkt, wire.data(), wire.size()),
                  payload % 4 ? WEFT_DROP_LENGTH : WEFT_DROP_NONE);
    }
}

// A board with a responder's side of the story: which PSNs it has.
class Pair {
public:
    explicit Pair(u32 psn)
        : epsn_(psn) {
        weft_board_init(&board, psn, psn, 0);
    }

    void send(u32 psn, u32 num, u32 now) { weft_board_sent(&board, psn, num, now); }

    void arrive(u32 psn) {
        weft_psn_set_add(&held_, psn);
        while (weft_psn_set_has(&held_, epsn_)) {
            weft_psn_set_del(&held_, epsn_);
            epsn_ = weft_psn_add(epsn_, 1);
        }
    }

    // The requester learns of everything that has arrived.
    weft_board_news tell(u32 now, u32 min_rtt = 0) {
        weft_board_news news{};
        weft_sack sack;
        const u32 bytes = weft_sack_build(&sack, &held_, epsn_, 0);
        weft_board_sack(&board, epsn_, &sack, bytes, now, min_rtt, &news);
        weft_board_ack(&board, epsn_, now, min_rtt, &news);
        return news;
    }

    std::set<u32> lost() {
        std::set<u32> found;
        for (u32 i = 0; i < size; ++i)
            if (weft_psn_set_has(&board.lost, i))
                found.insert(i);
        EXPECT_EQ(found.size(), board.num_lost);
        return found;
    }

    u32 epsn() const { return epsn_; }

    weft_board board;

private:
    u32 epsn_;
    weft_psn_set held_{};
};

TEST(Board, InOrderNothingIsLost) {
    Pair pair(0xfffff0);
    u32 psn = 0xfffff0;
    for (u32 now = 100; now < 20000; now += 10) {
        pair.send(psn, 1, now);
        pair.arrive(psn);
        const weft_board_news news = pair.tell(now + 50);
        EXPECT_EQ(news.arrived, 1U);
        EXPECT_EQ(news.rtt, 50U);
        EXPECT_EQ(news.extent, 0U);
        EXPECT_EQ(news.recovered, 0U);
        EXPECT_EQ(weft_board_detect(&pair.board, now + 50, 0), 0U);
        psn = weft_psn_add(psn, 1);
    }
    EXPECT_EQ(pair.board.num_lost, 0U);
    EXPECT_EQ(pair.board.num_held, 0U);
    EXPECT_EQ(pair.board.base, psn);
}

TEST(Board, AHoleIsLostOnlyBehindTheReorderWindow) {
    Pair pair(0);
    for (u32 psn = 0; psn < 10; ++psn)
        pair.send(psn, 1, 1000 + 10 * psn);
    for (const u32 psn : {0U, 1U, 3U, 4U})
        pair.arrive(psn);
    pair.tell(1100); // packet 4, sent at 1040, took 60
    EXPECT_EQ(pair.board.base, 2U);
    EXPECT_EQ(pair.board.num_held, 2U);
    EXPECT_EQ(weft_board_detect(&pair.board, 1100, 100), 1020U + 60 + 100 - 1100);
    EXPECT_TRUE(pair.lost().empty());
    EXPECT_EQ(weft_board_detect(&pair.board, 1179, 100), 1U);
    EXPECT_TRUE(pair.lost().empty());
    EXPECT_EQ(weft_board_detect(&pair.board, 1180, 100), 0U);
    EXPECT_EQ(pair.lost(), std::set<u32>{2}) << "5 and later were sent after what arrived";
    u32 psn = 0;
    EXPECT_EQ(weft_board_lost_run(&pair.board, 32, &psn), 1U);
    EXPECT_EQ(psn, 2U);
}

TEST(Board, AResendIsLostWhenWhatWasSentAfterItArrives) {
    Pair pair(0);
    for (u32 psn = 0; psn < 5; ++psn)
        pair.send(psn, 1, 1000 + psn);
    for (u32 psn = 1; psn < 5; ++psn)
        pair.arrive(psn);
    pair.tell(1100);
    weft_board_detect(&pair.board, 1100, 0);
    EXPECT_EQ(pair.lost(), std::set<u32>{0});
    pair.send(0, 1, 1100);
    EXPECT_TRUE(pair.lost().empty()) << "it is under way again";
    weft_board_detect(&pair.board, 5000, 0);
    EXPECT_TRUE(pair.lost().empty()) << "nothing that was sent after it has arrived";
    pair.send(5, 1, 1110);
    pair.arrive(5);
    pair.tell(1210);
    weft_board_detect(&pair.board, 1210, 0);
    EXPECT_EQ(pair.lost(), std::set<u32>{0});
}

TEST(Board, AGuessThatWasNotNeededMakesNothingElseLost) {
    Pair pair(0);
    for (u32 psn = 0; psn < 40; ++psn)
        pair.send(psn, 1, 1000 + psn);
    // No news for long: the tail and the oldest go out once more.
    for (const u32 psn : {39U, 0U}) {
        weft_board_guess(&pair.board, psn ? WEFT_BOARD_TAIL : WEFT_BOARD_OLDEST, psn);
        EXPECT_EQ(pair.lost(), std::set<u32>{psn});
        pair.send(psn, 1, 2000);
    }
    // Now what was sent first begins to arrive; 10 is missing.
    for (u32 psn = 0; psn < 20; ++psn)
        if (psn != 10)
            pair.arrive(psn);
    const weft_board_news news = pair.tell(2500);
    EXPECT_EQ(news.recovered, 1U);
    EXPECT_EQ(news.guessed, 1U);
    weft_board_detect(&pair.board, 4000, 0);
    EXPECT_EQ(pair.lost(), std::set<u32>{10});
}

TEST(Board, AGuessThatWasNeededTellsOfWhatWasSentBefore) {
    Pair pair(0);
    for (u32 psn = 0; psn < 10; ++psn)
        pair.send(psn, 1, 1000 + psn);
    for (u32 psn = 0; psn < 5; ++psn)
        pair.arrive(psn);
    pair.tell(1050);
    weft_board_guess(&pair.board, WEFT_BOARD_TAIL, 9);
    pair.send(9, 1, 1200);
    pair.arrive(9);
    pair.tell(1260);
    weft_board_detect(&pair.board, 1300, 0);
    EXPECT_EQ(pair.lost(), (std::set<u32>{5, 6, 7, 8}));
    // Once it is acknowledged its number may come again, a whole circle later.
    pair.send(5, 4, 1300);
    for (u32 psn = 5; psn < 9; ++psn)
        pair.arrive(psn);
    const weft_board_news news = pair.tell(1360);
    EXPECT_EQ(news.recovered, 4U);
    EXPECT_EQ(news.guessed, 0U) << "they were lost";
    EXPECT_EQ(pair.board.base, 10U);
    for (const auto& guess : pair.board.guesses)
        EXPECT_FALSE(guess.made);
}

TEST(Board, AGuessAboutAResendIsAboutThat) {
    Pair pair(0);
    for (u32 psn = 0; psn < 20; ++psn)
        pair.send(psn, 1, 1000 + psn);
    for (u32 psn = 1; psn < 5; ++psn)
        pair.arrive(psn);
    pair.tell(1050);
    weft_board_detect(&pair.board, 1100, 0);
    ASSERT_EQ(pair.lost(), std::set<u32>{0});
    pair.send(0, 1, 1100);
    // Late, and so is all behind it, some of it sent later; the timer sends it once more.
    for (u32 psn = 20; psn < 30; ++psn)
        pair.send(psn, 1, 1110 + psn);
    weft_board_guess(&pair.board, WEFT_BOARD_OLDEST, 0);
    pair.send(0, 1, 3000);
    pair.arrive(0);
    const weft_board_news news = pair.tell(3200);
    EXPECT_EQ(news.recovered, 1U);
    EXPECT_EQ(news.guessed, 0U) << "it was lost once";
    weft_board_detect(&pair.board, 5000, 0);
    for (u32 psn = 20; psn < 30; ++psn)
        EXPECT_FALSE(pair.lost().contains(psn));
}

TEST(Board, AGuessThatIsLostIsNoGuessAnyMore) {
    Pair pair(0);
    for (u32 psn = 0; psn < 20; ++psn)
        pair.send(psn, 1, 1000 + psn);
    weft_board_guess(&pair.board, WEFT_BOARD_OLDEST, 0);
    pair.send(0, 1, 2000);
    pair.send(20, 1, 2100);
    pair.arrive(20);
    pair.tell(2200);
    weft_board_detect(&pair.board, 2300, 0);
    ASSERT_TRUE(pair.lost().contains(0));
    pair.send(0, 20, 2300);
    pair.send(21, 1, 2310);
    for (u32 psn = 0; psn < 20; ++psn)
        pair.arrive(psn);
    const weft_board_news news = pair.tell(2400);
    EXPECT_EQ(news.recovered, 20U);
    EXPECT_EQ(news.guessed, 0U);
}

// The peer fills the hole, and stops at what it held.
Pair stopped_at_one() {
    Pair pair(0);
    for (u32 psn = 0; psn < 4; ++psn)
        pair.send(psn, 1, 1000 + psn);
    for (u32 psn = 1; psn < 4; ++psn)
        pair.arrive(psn);
    pair.tell(1100);
    weft_board_news news{};
    weft_board_ack(&pair.board, 1, 1200, 0, &news);
    EXPECT_EQ(pair.board.num_held, 3U);
    return pair;
}

TEST(Board, WhatIsRefusedIsNotHeldAndTellsNothingOfThePath) {
    Pair pair = stopped_at_one();
    pair.send(4, 2, 1300);
    weft_board_refused(&pair.board, 1);
    EXPECT_EQ(pair.lost(), std::set<u32>{1});
    EXPECT_EQ(pair.board.num_held, 2U);
    EXPECT_EQ(weft_board_guessed(&pair.board, 1, 1), 0U) << "no duplicate will come of it";
    // The receiver takes one, then it is not ready for the next.
    pair.send(1, 1, 9000);
    weft_board_news news{};
    weft_board_ack(&pair.board, 2, 9100, 0, &news);
    EXPECT_EQ(news.recovered, 1U);
    EXPECT_EQ(news.guessed, 1U) << "the path has not lost it";
    weft_board_refused(&pair.board, 2);
    weft_board_detect(&pair.board, 9100, 0);
    EXPECT_EQ(pair.lost(), std::set<u32>{2}) << "what is behind it waits";
    // Then all of it.
    pair.send(2, 1, 18000);
    news = {};
    weft_board_ack(&pair.board, 6, 18100, 0, &news);
    EXPECT_EQ(news.arrived, 3U);
    EXPECT_EQ(news.recovered, 1U);
    EXPECT_EQ(news.guessed, 1U);
    EXPECT_EQ(news.rtt, 0U);
    EXPECT_EQ(news.extent, 0U);
    EXPECT_EQ(pair.board.num_held, 0U);
    // What is sent from now on does.
    pair.send(6, 1, 18200);
    news = {};
    weft_board_ack(&pair.board, 7, 18250, 0, &news);
    EXPECT_EQ(news.rtt, 50U);
    EXPECT_EQ(pair.board.latency, 50U);
}

TEST(Board, TheOldestIsSentAgainThoughItWasHeld) {
    Pair pair = stopped_at_one();
    u32 psn;
    weft_board_guess(&pair.board, WEFT_BOARD_TAIL, 3);
    EXPECT_TRUE(pair.lost().empty()) << "that one has a hole before it";
    weft_board_guess(&pair.board, WEFT_BOARD_OLDEST, 1);
    EXPECT_EQ(pair.lost(), std::set<u32>{1});
    EXPECT_EQ(pair.board.num_held, 2U);
    EXPECT_EQ(weft_board_guessed(&pair.board, 0, 4), 1U);
    EXPECT_EQ(weft_board_guessed(&pair.board, 2, 2), 0U);
    ASSERT_EQ(weft_board_lost_run(&pair.board, 8, &psn), 1U);
    EXPECT_EQ(psn, 1U);
}

TEST(Board, SamplesGoOnWhenPsnsComeRound) {
    weft_board board;
    weft_board_init(&board, 0, 100, 0);
    u32 now = 0;
    for (u32 psn = 0; psn < 1U << 24; psn += 256) {
        weft_board_news news{};
        now += 10;
        weft_board_sent(&board, psn, 256, now);
        weft_board_ack(&board, weft_psn_add(psn, 256), now + 5, 0, &news);
        ASSERT_EQ(news.rtt, 5U) << psn;
    }
}

TEST(Board, GuessesOfTwoKindsDoNotMeet) {
    Pair pair(0);
    for (u32 psn = 0; psn < 20; ++psn)
        pair.send(psn, 1, 1000 + psn);
    weft_board_guess(&pair.board, WEFT_BOARD_OLDEST, 0);
    for (u32 psn = 17; psn < 20; ++psn) // the tail is held each time
        weft_board_guess(&pair.board, WEFT_BOARD_TAIL, psn);
    weft_board_guess(&pair.board, WEFT_BOARD_TAIL, 20); // was never sent
    EXPECT_EQ(pair.lost(), (std::set<u32>{0, 17, 18, 19}));
    pair.send(0, 1, 2000);
    pair.send(19, 1, 2000);
    pair.arrive(0);
    pair.arrive(19);
    const weft_board_news news = pair.tell(2100);
    EXPECT_EQ(news.guessed, 2U);
    EXPECT_EQ(pair.board.newest, 1019U);
}

TEST(Board, WhatWasOvertakenTellsHowLongPacketsTakeNow) {
    Pair pair(0);
    for (u32 psn = 0; psn < 10; ++psn)
        pair.send(psn, 1, 1000 + psn);
    pair.arrive(9);
    pair.tell(1020);
    EXPECT_EQ(pair.board.latency, 11U);
    for (u32 psn = 0; psn < 5; ++psn)
        pair.arrive(psn);
    pair.tell(1500);
    EXPECT_EQ(weft_board_detect(&pair.board, 1500, 100), 105U)
        << "5 may take as long as 0, and the window more";
    EXPECT_TRUE(pair.lost().empty());
    weft_board_detect(&pair.board, 1606, 100);
    EXPECT_EQ(pair.lost(), (std::set<u32>{5, 6}));
    // A resend tells nothing of that.
    pair.send(5, 2, 1700);
    pair.arrive(5);
    pair.tell(1800);
    EXPECT_EQ(pair.board.latency, 100U);
}

TEST(Board, TheOldestIsOverdueLikeTheRest) {
    Pair pair(0);
    u32 left = 7;
    EXPECT_FALSE(weft_board_overdue(&pair.board, 1000, 100, &left)) << "nothing is out";
    EXPECT_EQ(left, 0U);
    for (u32 psn = 0; psn < 10; ++psn)
        pair.send(psn, 1, 1000 + psn);
    EXPECT_FALSE(weft_board_overdue(&pair.board, 9000, 100, &left)) << "nothing has arrived";
    EXPECT_EQ(left, 0U);
    pair.arrive(9);
    pair.tell(1020);
    EXPECT_FALSE(weft_board_overdue(&pair.board, 1020, 100, &left));
    EXPECT_EQ(left, 91U);
    EXPECT_FALSE(weft_board_overdue(&pair.board, 1110, 100, &left));
    EXPECT_EQ(left, 1U);
    EXPECT_TRUE(weft_board_overdue(&pair.board, 1111, 100, &left));
    EXPECT_EQ(left, 0U);
    weft_board_guess(&pair.board, WEFT_BOARD_OLDEST, 0);
    EXPECT_FALSE(weft_board_overdue(&pair.board, 1111, 100, &left)) << "it is to be sent again";
    EXPECT_EQ(left, 0U);
}

TEST(Board, RunsStopAtTheLimitAndAtWhatIsHeld) {
    Pair pair(1020);
    pair.send(1020, 20, 10);
    pair.arrive(1026);
    pair.tell(60);
    for (u32 psn = 1020; psn < 1040; ++psn)
        weft_board_lose(&pair.board, psn);
    weft_board_lose(&pair.board, 1040); // was never sent
    EXPECT_EQ(pair.board.num_lost, 19U);
    u32 psn = 0;
    EXPECT_EQ(weft_board_lost_run(&pair.board, 4, &psn), 4U);
    EXPECT_EQ(weft_board_lost_run(&pair.board, 32, &psn), 6U);
    EXPECT_EQ(psn, 1020U);
    pair.send(1020, 6, 70);
    EXPECT_EQ(weft_board_lost_run(&pair.board, 32, &psn), 13U);
    EXPECT_EQ(psn, 1027U);
    EXPECT_TRUE(weft_board_tail(&pair.board, &psn));
    EXPECT_EQ(psn, 1039U);
    weft_board_find_all(&pair.board);
    EXPECT_EQ(weft_board_lost_run(&pair.board, 32, &psn), 0U);
}

TEST(Board, ResendsGiveNoSampleAndOvertakingIsSeen) {
    Pair pair(0);
    pair.send(0, 1, 100);
    pair.send(1, 1, 130);
    pair.arrive(1);
    weft_board_news news = pair.tell(140);
    EXPECT_EQ(news.rtt, 0U) << "what has overtaken others is no measure";
    pair.arrive(0);
    news = pair.tell(200);
    EXPECT_EQ(news.arrived, 1U);
    EXPECT_EQ(news.extent, 30U);
    EXPECT_EQ(news.rtt, 100U);
    pair.send(2, 1, 300);
    pair.send(2, 1, 400);
    pair.arrive(2);
    news = pair.tell(500);
    EXPECT_EQ(news.rtt, 0U);
    EXPECT_EQ(news.extent, 0U);
    EXPECT_EQ(news.recovered, 1U);
}

TEST(Board, WhatWasOutBeforeGivesNoSample) {
    weft_board board;
    weft_board_init(&board, 10, 20, 1000);
    weft_board_news news{};
    weft_board_ack(&board, 20, 1001, 0, &news);
    EXPECT_EQ(news.arrived, 10U);
    EXPECT_EQ(news.rtt, 0U);
}

TEST(Board, AnAnswerTooFastIsToAnEarlierPacket) {
    Pair pair(0);
    for (u32 psn = 0; psn < 3; ++psn)
        pair.send(psn, 1, 100 + psn);
    pair.send(0, 1, 500);
    pair.arrive(0);
    pair.tell(505, 50);
    weft_board_detect(&pair.board, 100000, 0);
    EXPECT_TRUE(pair.lost().empty()) << "1 and 2 were not sent before the packet that arrived";
}

TEST(Board, PsnsOfReadResponsesAreNobodysLoss) {
    Pair pair(0);
    pair.send(0, 1, 10);                   // a READ of 3000 PSNs
    weft_board_pass(&pair.board, 1, 3000); // more than there are slots
    pair.send(3000, 1, 20);
    EXPECT_EQ(pair.board.end, 3001U);
    weft_board_detect(&pair.board, 30000, 0);
    EXPECT_TRUE(pair.lost().empty());
    weft_board_news news{};
    for (u32 una = 1; una <= 3001; ++una)
        weft_board_ack(&pair.board, una, 40, 0, &news);
    EXPECT_EQ(pair.board.num_held, 0U);
    EXPECT_EQ(pair.board.base, 3001U);
}

TEST(Board, NonsenseHasNoEffect) {
    Pair pair(100);
    pair.send(100, 10, 10);
    weft_board_news news{};
    weft_sack sack;
    memset(&sack, 0xff, sizeof(sack));
    weft_board_sack(&pair.board, 99, &sack, sizeof(sack), 20, 0, &news);
    weft_board_sack(&pair.board, 111, &sack, sizeof(sack), 20, 0, &news);
    EXPECT_EQ(news.arrived, 0U);
    EXPECT_EQ(pair.board.num_held, 0U);
    weft_board_sack(&pair.board, 100, &sack, sizeof(sack), 20, 0, &news);
    EXPECT_EQ(news.arrived, 9U) << "no more than was sent";
}

// A wire that loses at random and keeps the order: exactly what is lost is sent again.
TEST(Board, SendsAgainWhatIsLostAndNothingElse) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        Rng rng(seed);
        const u32 first = (WEFT_PSN_MASK - 300U) & WEFT_PSN_MASK;
        const u32 total = 3000;
        const unsigned loss = seed % 4 * 5;
        Pair pair(first);
        std::vector<std::pair<u32, u32>> wire; // time of arrival, PSN
        u32 next = first;
        u32 resent = 0;
        u32 dropped = 0;
        const auto transmit = [&](u32 psn, u32 now) {
            pair.send(psn, 1, now);
            if (chance(rng, loss))
                ++dropped;
            else
                wire.emplace_back(now + 50, psn);
        };
        u32 now = 1;
        for (; pair.board.base != weft_psn_add(first, total) && now < 500000; ++now) {
            u32 psn = 0;
            bool news = false;
            while (!wire.empty() && wire.front().first <= now) {
                pair.arrive(wire.front().second);
                wire.erase(wire.begin());
                news = true;
            }
            if (news)
                pair.tell(now);
            weft_board_detect(&pair.board, now, 3);
            if (weft_board_lost_run(&pair.board, 1, &psn)) {
                transmit(psn, now);
                ++resent;
            } else if (next != weft_psn_add(first, total) &&
                       weft_psn_diff(next, pair.board.base) < 128) {
                transmit(next, now);
                next = weft_psn_add(next, 1);
            } else if (wire.empty() && weft_board_tail(&pair.board, &psn)) {
                weft_board_lose(&pair.board, psn); // the tail-loss probe
            }
        }
        EXPECT_EQ(pair.board.base, weft_psn_add(first, total)) << "seed " << seed;
        EXPECT_EQ(resent, dropped) << "seed " << seed;
    }
}

weft_board_news arrived(u32 rtt) {
    weft_board_news news{};
    news.arrived = 1;
    news.rtt = rtt;
    return news;
}

TEST(Rtt, FollowsItsSamples) {
    weft_rtt rtt;
    weft_rtt_init(&rtt, 0);
    EXPECT_EQ(weft_rtt_rto(&rtt), WEFT_RTO_INITIAL);
    EXPECT_EQ(weft_rtt_probe(&rtt), WEFT_RTO_INITIAL);
    weft_board_news news = arrived(1000);
    weft_rtt_update(&rtt, &news, 1000);
    EXPECT_EQ(weft_rtt_smoothed(&rtt), 1000U);
    EXPECT_EQ(weft_rtt_rto(&rtt), 3000U) << "SRTT + 4 × SRTT / 2";
    for (u32 i = 0; i < 200; ++i)
        weft_rtt_update(&rtt, &news, 2000 + i * 1000);
    EXPECT_EQ(weft_rtt_smoothed(&rtt), 1000U);
    EXPECT_LE(weft_rtt_rto(&rtt), 1070U);
    EXPECT_EQ(weft_rtt_probe(&rtt), 2000U);
    news = arrived(100);
    for (u32 i = 0; i < 200; ++i)
        weft_rtt_update(&rtt, &news, 300000 + i * 100);
    EXPECT_NEAR(weft_rtt_smoothed(&rtt), 100, 8);
    EXPECT_EQ(weft_rtt_rto(&rtt), WEFT_RTO_MIN);
    EXPECT_EQ(rtt.min, 100U);
    for (rtt.backoff = 0; rtt.backoff < 5; ++rtt.backoff)
        EXPECT_EQ(weft_rtt_rto(&rtt), WEFT_RTO_MIN << rtt.backoff);
    news.recovered = 1;
    weft_rtt_update(&rtt, &news, 400000);
    EXPECT_EQ(rtt.backoff, 5) << "it was answered, but when was it sent?";
    news.recovered = 0;
    weft_rtt_update(&rtt, &news, 400000);
    EXPECT_EQ(rtt.backoff, 0);
}

TEST(Rtt, ReorderWindowIsWideUntilSomethingIsLost) {
    weft_rtt rtt;
    u32 now = 0;
    const auto learn = [&](u32 recovered, u32 spurious, u32 extent) {
        weft_board_news news = arrived(800);
        news.recovered = recovered;
        news.spurious = spurious;
        news.extent = extent;
        now += 10000;
        weft_rtt_update(&rtt, &news, now);
    };
    weft_rtt_init(&rtt, 0);
    EXPECT_GT(rtt.reorder, 1000U);
    learn(0, 0, 0);
    EXPECT_EQ(rtt.reorder, 1000U);
    for (int i = 0; i < 10; ++i)
        learn(1, 1, 0);
    EXPECT_GE(rtt.reorder, 1000U) << "no resend was needed";
    weft_rtt_init(&rtt, now);
    for (int i = 0; i < 10; ++i)
        learn(1, 0, 0);
    EXPECT_EQ(rtt.reorder, 200U) << "a quarter of the least round trip";
    learn(0, 0, 400);
    EXPECT_NEAR(rtt.reorder, 485, 20) << "more than was seen";
    learn(0, 0, 0);
    learn(0, 0, 0);
    EXPECT_NEAR(rtt.reorder, 485, 20);
    learn(1, 1, 0);
    EXPECT_GE(rtt.reorder, 1000U) << "it was not enough";
    for (int i = 0; i < 200; ++i)
        learn(2, 0, 0);
    EXPECT_EQ(rtt.reorder, 200U) << "and fades";
    // A path that has become slower: nothing but resends, so no sample says so.
    for (int i = 0; i < 20; ++i) {
        weft_board_news news{};
        news.arrived = news.recovered = 50;
        news.spurious = 50;
        now += 10;
        weft_rtt_update(&rtt, &news, now);
    }
    EXPECT_GE(rtt.reorder, 100000U);
}

TEST(Rtt, AGuessIsNoSignOfLoss) {
    weft_rtt rtt;
    weft_rtt_init(&rtt, 0);
    weft_board_news news = arrived(800);
    news.recovered = news.guessed = 1;
    for (u32 now = 10000; now < 200000; now += 10000)
        weft_rtt_update(&rtt, &news, now);
    EXPECT_EQ(rtt.reorder, 1000U);
    EXPECT_FALSE(rtt.lossy);
    news.recovered = 2;
    for (u32 now = 200000; now < 400000; now += 10000)
        weft_rtt_update(&rtt, &news, now);
    EXPECT_EQ(rtt.reorder, 200U) << "one of two was lost";
}

// Delivery at a steady rate, as much at a time as the window allows.
TEST(Rtt, WindowGrowsToWhatThePathHolds) {
    for (const u32 rate : {10U, 400U, 4000U}) { // PSNs in a round trip of 1000 ticks
        weft_rtt rtt;
        weft_rtt_init(&rtt, 0);
        u32 now = 0;
        for (u32 round = 0; round < 100; ++round) {
            weft_board_news news = arrived(1000);
            news.arrived = std::min(rtt.window, rate);
            now += 1000;
            weft_rtt_update(&rtt, &news, now);
            EXPECT_GE(rtt.window, WEFT_WINDOW_MIN);
            EXPECT_LE(rtt.window, WEFT_WINDOW_MAX);
        }
        const u32 expected = rate == 10 ? WEFT_WINDOW_MIN : rate == 400 ? 800 : WEFT_WINDOW_MAX;
        EXPECT_NEAR(rtt.window, expected, 4) << "rate " << rate;
    }
}

} // namespace
