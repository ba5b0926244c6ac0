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
    constexpr double milliseconds[32] = {
        655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
        0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
        20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
    for (unsigned code = 0; code < 32; ++code)
        EXPECT_EQ(weft_rnr_timer_ns(static_cast<u8>(code)),
                  static_cast<u64>(milliseconds[code] * 1e6 + 0.5))
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
