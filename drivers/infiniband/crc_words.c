// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 by shifts and exclusive ORs of whole words, without tables or multiplication.
 *
 * The CRC's polynomial divides x^300 + x^155 + x^117 + x^89 + 1 (found by search: no other multiple
 * of five terms below x^515 has its second term so far from its first). So a bit of the text counts
 * as much as three bits 145, 183 and 211 further on and a fourth one 300 further on. In words of 64
 * bits, first bit lowest: a word is removed when copies of it, shifted, are added to the second,
 * third, fourth and fifth word behind it. What is left in the end are five words, a text of 40
 * bytes with the same CRC, which crc32_le() can have.
 *
 * Per 8 bytes one load and 17 operations of one cycle each, where the tables of crc32_le() take ten
 * loads: the way for CPUs without carry-less multiplication and for emulated ones, whose loads are
 * dear.
 */
#include <linux/crc32.h>
#include <linux/unaligned.h>

#include "crc.h"

enum {
	WEFT_CRC_WORDS = 5,       /* those that a word's copies reach */
	WEFT_CRC_WORDS_MIN = 128, /* bytes; shorter texts are crc32_le()'s as they are */
};

/*
 * Word @at of the text, to which earlier ones' copies @own are added, is removed. @own is free then
 * and holds the copy that reaches the fifth word behind it.
 */
static __always_inline void weft_crc_remove(const u8 *at, u64 *own, u64 *second, u64 *third,
					    u64 *fourth)
{
	u64 word = *own ^ get_unaligned_le64(at);

	*second ^= word << (145 - 128) ^ word << (183 - 128);
	*third ^= word >> (192 - 145) ^ word >> (192 - 183) ^ word << (211 - 192);
	*fourth ^= word >> (256 - 211) ^ word << (300 - 256);
	*own = word >> (320 - 300);
}

u32 weft_crc32_words(u32 crc, const void *data, size_t len)
{
	const u8 *at = data;
	__le64 left[WEFT_CRC_WORDS];
	u64 a = crc, b = 0, c = 0, d = 0, e = 0;

	if (len < WEFT_CRC_WORDS_MIN)
		return crc32_le(crc, data, len);
	for (; len >= 2 * sizeof(left); at += sizeof(left), len -= sizeof(left)) {
		weft_crc_remove(at, &a, &c, &d, &e);
		weft_crc_remove(at + 8, &b, &d, &e, &a);
		weft_crc_remove(at + 16, &c, &e, &a, &b);
		weft_crc_remove(at + 24, &d, &a, &b, &c);
		weft_crc_remove(at + 32, &e, &b, &c, &d);
	}
	left[0] = cpu_to_le64(a ^ get_unaligned_le64(at));
	left[1] = cpu_to_le64(b ^ get_unaligned_le64(at + 8));
	left[2] = cpu_to_le64(c ^ get_unaligned_le64(at + 16));
	left[3] = cpu_to_le64(d ^ get_unaligned_le64(at + 24));
	left[4] = cpu_to_le64(e ^ get_unaligned_le64(at + 32));
	crc = crc32_le(0, (const u8 *)left, sizeof(left));
	return crc32_le(crc, at + sizeof(left), len - sizeof(left));
}
