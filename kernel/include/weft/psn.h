/* SPDX-License-Identifier: GPL-2.0 */
/* Packet sequence numbers: 24 bits, circular; half the circle is the past. */
#ifndef WEFT_PSN_H
#define WEFT_PSN_H

#include <weft/bth.h>

static inline u32 weft_psn_add(u32 psn, u32 n)
{
	return (psn + n) & WEFT_PSN_MASK;
}

/* Signed distance a - b, in -2^23 … 2^23-1. */
static inline s32 weft_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

static inline bool weft_psn_before(u32 a, u32 b)
{
	return weft_psn_diff(a, b) < 0;
}

#endif
