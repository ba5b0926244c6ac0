// SPDX-License-Identifier: GPL-2.0
// Syndromes and timer codes against the standard's tables.
#include "support.h"

namespace {

TEST(Ack, SyndromeKinds) {
    for (unsigned s = 0; s < 256; ++s) {
        weft_ack_kind expected = WEFT_ACK_RESERVED;
        if (s <= 0x1f)
            expected = WEFT_ACK_POSITIVE;
        else if (s >= 0x20 && s <= 0x3f)
            expected = WEFT_ACK_RNR;
        else if (s >= 0x60 && s <= 0x64)
            expected = WEFT_ACK_NAK;
        EXPECT_EQ(weft_syndrome_kind(static_cast<u8>(s)), expected) << "syndrome " << s;
    }
}

TEST(Ack, SyndromesAreBuiltAsOnTheWire) {
    EXPECT_EQ(WEFT_SYNDROME_ACK, 0x1f);
    EXPECT_EQ(weft_syndrome_rnr(12), 0x2c);
    EXPECT_EQ(weft_syndrome_nak(WEFT_NAK_PSN_SEQUENCE), 0x60);
    EXPECT_EQ(weft_syndrome_nak(WEFT_NAK_INVALID_REQUEST), 0x61);
    EXPECT_EQ(weft_syndrome_nak(WEFT_NAK_REMOTE_ACCESS), 0x62);
    EXPECT_EQ(weft_syndrome_nak(WEFT_NAK_REMOTE_OPERATIONAL), 0x63);
    EXPECT_EQ(weft_syndrome_value(0x6c), 12);
}

TEST(Ack, RnrTimerTable) {
    // In hundredths of a millisecond.
    constexpr u64 expected[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                  16,    24,   32,   48,    64,    96,    128,   192,
                                  256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                  4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    for (unsigned code = 0; code < 32; ++code)
        EXPECT_EQ(weft_rnr_timer_ns(static_cast<u8>(code)), expected[code] * 10000)
            << "code " << code;
    EXPECT_EQ(weft_rnr_timer_ns(32 + 1), 10000U) << "only five bits count";
}

TEST(Ack, LocalAckTimeout) {
    EXPECT_EQ(weft_ack_timeout_ns(0), 0U) << "no timeout";
    EXPECT_EQ(weft_ack_timeout_ns(1), 8192U);
    EXPECT_EQ(weft_ack_timeout_ns(14), 67108864U);
    EXPECT_EQ(weft_ack_timeout_ns(31), 8796093022208U);
    EXPECT_EQ(weft_ack_timeout_ns(32), 0U) << "only five bits count";
}

} // namespace
