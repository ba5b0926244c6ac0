/* SPDX-License-Identifier: GPL-2.0 */
/* Requester arithmetic: from a work request to its packets, PSNs, and where a resend starts. */
#ifndef WEFT_REQUESTER_H
#define WEFT_REQUESTER_H

#include <weft/bth.h>
#include <weft/opcode.h>
#include <weft/psn.h>

/* What a send work request asks for. The driver maps verbs opcodes to these. */
enum weft_wr {
	WEFT_WR_SEND,
	WEFT_WR_SEND_IMM,
	WEFT_WR_SEND_INV,
	WEFT_WR_WRITE,
	WEFT_WR_WRITE_IMM,
	/* these return a response of their own and count against max_rd_atomic */
	WEFT_WR_READ,
	WEFT_WR_COMPARE_SWAP,
	WEFT_WR_FETCH_ADD,
	WEFT_WR_ATOMIC_WRITE,
	WEFT_WR_COUNT,
};

static inline bool weft_wr_is_rd_atomic(enum weft_wr wr)
{
	return wr >= WEFT_WR_READ;
}

/* May @wr be posted on a QP of @transport (WEFT_RC, WEFT_UC, WEFT_UD)? */
bool weft_wr_allowed(u8 transport, enum weft_wr wr);

/* PSNs that the request takes: ceil(len / mtu), at least 1 (for a READ, of its responses). */
u32 weft_wr_psn_count(enum weft_wr wr, u32 len, u32 mtu);

struct weft_segment {
	u8 opcode;       /* BTH opcode, transport bits included */
	u32 payload_len; /* bytes of payload in this packet */
	bool last;       /* nothing of the request follows */
};

/*
 * The packet of @wr (total @len bytes) that begins at byte @offset. A READ is one packet, whatever
 * its length; its resend from @offset > 0 asks for the rest.
 */
struct weft_segment weft_req_segment(u8 transport, enum weft_wr wr, u32 len, u32 offset, u32 mtu);

/* Byte of the request that the packet @psn begins at; @first_psn is the request's first. */
u32 weft_req_offset_of_psn(enum weft_wr wr, u32 first_psn, u32 psn, u32 mtu, u32 len);

/* Does a packet need AckReq: at the request's end if @end, and each @interval packets (0: no). */
bool weft_req_want_ack(const struct weft_segment *seg, bool end, u32 psn, u32 interval);

#endif
