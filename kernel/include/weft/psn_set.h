/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sets of PSNs that lie within WEFT_PSN_SET_SIZE of each other: a ring of bits. The owner knows
 * where it begins, and removes what falls out of it.
 */
#ifndef WEFT_PSN_SET_H
#define WEFT_PSN_SET_H

#include <weft/psn.h>

/* A power of two, so that the ring fits the circle of PSNs without a seam. */
#define WEFT_PSN_SET_SIZE 1024u

struct weft_psn_set {
	u64 words[WEFT_PSN_SET_SIZE / 64];
};

static inline u32 weft_psn_slot(u32 psn)
{
	return psn % WEFT_PSN_SET_SIZE;
}

static inline bool weft_psn_set_has(const struct weft_psn_set *set, u32 psn)
{
	return set->words[weft_psn_slot(psn) / 64] >> (psn % 64) & 1;
}

static inline void weft_psn_set_add(struct weft_psn_set *set, u32 psn)
{
	set->words[weft_psn_slot(psn) / 64] |= 1ull << (psn % 64);
}

static inline void weft_psn_set_del(struct weft_psn_set *set, u32 psn)
{
	set->words[weft_psn_slot(psn) / 64] &= ~(1ull << (psn % 64));
}

/* How far behind @from the first member stands, looking at @count PSNs. @count: there is none. */
u32 weft_psn_set_next(const struct weft_psn_set *set, u32 from, u32 count);

/* The same of the first PSN that is not a member. */
u32 weft_psn_set_next_hole(const struct weft_psn_set *set, u32 from, u32 count);

#endif
