// SPDX-License-Identifier: GPL-2.0
// PSNs live on a circle of 2^24.
#include "support.h"

namespace {

TEST(Psn, AddWrapsAt24Bits) {
    EXPECT_EQ(weft_psn_add(0xffffff, 1), 0U);
    EXPECT_EQ(weft_psn_add(0xfffff0, 0x20), 0x10U);
    EXPECT_EQ(weft_psn_add(5, 0), 5U);
}

TEST(Psn, DifferenceIsSignedAndCircular) {
    EXPECT_EQ(weft_psn_diff(3, 1), 2);
    EXPECT_EQ(weft_psn_diff(1, 3), -2);
    EXPECT_EQ(weft_psn_diff(0, 0xffffff), 1);
    EXPECT_EQ(weft_psn_diff(0xffffff, 0), -1);
    EXPECT_EQ(weft_psn_diff(0x7fffff, 0), 0x7fffff);
    EXPECT_EQ(weft_psn_diff(0x800000, 0), -0x800000);
}

TEST(Psn, HalfTheCircleIsThePast) {
    weft::test::Rng rng(1);
    for (int i = 0; i < 10000; ++i) {
        const auto psn = static_cast<u32>(rng() & WEFT_PSN_MASK);
        const auto step = static_cast<u32>(weft::test::pick(rng, 1, 0x7fffff));
        EXPECT_TRUE(weft_psn_before(psn, weft_psn_add(psn, step)));
        EXPECT_FALSE(weft_psn_before(weft_psn_add(psn, step), psn));
        EXPECT_FALSE(weft_psn_before(psn, psn));
        EXPECT_EQ(weft_psn_diff(weft_psn_add(psn, step), psn), static_cast<s32>(step));
    }
}

} // namespace
