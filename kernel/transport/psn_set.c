// SPDX-License-Identifier: GPL-2.0
/* Sets of PSNs: search, a word at a time. */
#include <weft/psn_set.h>

/* @flip: all ones to look for a hole. */
static u32 search(const struct weft_psn_set *set, u32 from, u32 count, u64 flip)
{
	u32 done = 0;
	u32 bit;
	u64 word;

	while (done < count) {
		bit = (from + done) % 64;
		word = (set->words[weft_psn_slot(from + done) / 64] ^ flip) >> bit;
		if (word)
			return min(done + (u32)__builtin_ctzll(word), count);
		done += 64 - bit;
	}
	return count;
}

u32 weft_psn_set_next(const struct weft_psn_set *set, u32 from, u32 count)
{
	return search(set, from, count, 0);
}
EXPORT_SYMBOL_GPL(weft_psn_set_next);

u32 weft_psn_set_next_hole(const struct weft_psn_set *set, u32 from, u32 count)
{
	return search(set, from, count, ~0ull);
}
EXPORT_SYMBOL_GPL(weft_psn_set_next_hole);
