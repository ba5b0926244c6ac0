// SPDX-License-Identifier: GPL-2.0
/* Extended NAK: from the set of what is held to the payload. */
#include <weft/sack.h>

u32 weft_sack_build(struct weft_sack *sack, const struct weft_psn_set *held, u32 epsn,
		    u32 duplicates)
{
	u32 first = weft_psn_add(epsn, 1);
	u32 end = WEFT_PSN_SET_SIZE - 1;
	u32 words = 0;
	u32 bit;

	memset(sack, 0, sizeof(*sack));
	sack->duplicates = cpu_to_be32(duplicates);
	for (bit = 0; bit < end; bit++) {
		bit += weft_psn_set_next(held, weft_psn_add(first, bit), end - bit);
		if (bit == end)
			break;
		sack->map[bit / 8] |= 1 << (bit % 8);
		words = bit / 32 + 1;
	}
	return sizeof(sack->duplicates) + words * 4;
}
EXPORT_SYMBOL_GPL(weft_sack_build);
