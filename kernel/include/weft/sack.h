/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Extended NAK: a PSN sequence NAK whose payload says what is held behind the gap.
 *
 * The packet's PSN is the one expected next: all before it have come. The payload begins with the
 * number of duplicate requests that the responder has seen since it was reset, so that a requester
 * learns that it need not have sent something again. A bitmap follows: bit i, the lowest of its
 * first byte being bit 0, says that the i-th PSN behind the expected one is held. It ends with the
 * word of the last bit that is set, and may be empty.
 */
#ifndef WEFT_SACK_H
#define WEFT_SACK_H

#include <weft/opcode.h>
#include <weft/psn_set.h>

struct weft_sack {
	__be32 duplicates;
	u8 map[WEFT_PSN_SET_SIZE / 8];
} __packed;
BUILD_BUG_ON_SIZE(struct weft_sack, 132);

/* Fill in all of @sack. Returns the bytes that are the payload, a multiple of 4. */
u32 weft_sack_build(struct weft_sack *sack, const struct weft_psn_set *held, u32 epsn,
		    u32 duplicates);

/* Bits that the map of a payload of @bytes has. */
static inline u32 weft_sack_bits(u32 bytes)
{
	return (bytes - sizeof(__be32)) * 8;
}

static inline bool weft_pkt_is_sack(const struct weft_pkt *pkt)
{
	return pkt->opcode == (WEFT_RC | WEFT_ACKNOWLEDGE) && pkt->payload_len;
}

static inline bool weft_sack_has(const struct weft_sack *sack, u32 bit)
{
	return sack->map[bit / 8] >> (bit % 8) & 1;
}

#endif
