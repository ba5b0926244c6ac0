/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Responder: is this request the expected one, is its opcode legal behind the one before, does its
 * length fit? Memory, keys and receive WQEs are the driver's business.
 */
#ifndef WEFT_RESPONDER_H
#define WEFT_RESPONDER_H

#include <weft/ack.h>
#include <weft/opcode.h>
#include <weft/psn.h>

struct weft_resp_state {
	u32 epsn;          /* PSN expected next */
	u32 msn;           /* messages completed, 24 bits */
	u32 msg_flags;     /* WEFT_OP_SEND or WEFT_OP_WRITE while a message is open, else 0 */
	u32 write_resid;   /* bytes that the open WRITE's RETH still promises */
	bool nak_pending;  /* a NAK is out: no other until the expected PSN (driver: RNR) */
	bool skip_message; /* UC: a packet was lost, wait for the next START */
};

enum weft_resp_verdict {
	WEFT_RESP_OK,          /* expected: execute, then weft_resp_accept() */
	WEFT_RESP_DUPLICATE,   /* RC: executed before; answer again */
	WEFT_RESP_NAK,         /* RC: answer with @nak */
	WEFT_RESP_DROP,        /* silence is the answer; @lost says that PSNs are missing */
};

struct weft_resp_result {
	enum weft_resp_verdict verdict;
	enum weft_nak_code nak;
	bool lost; /* a gap in the PSNs was seen (counter out_of_sequence) */
};

/*
 * @transport: WEFT_RC or WEFT_UC. @mtu: path MTU in bytes. @pkt: a REQUEST of that transport.
 * Changes @st only where a gap or its end is noticed (nak_pending, skip_message; UC also epsn).
 */
struct weft_resp_result weft_resp_check(struct weft_resp_state *st, u8 transport, u32 mtu,
					const struct weft_pkt *pkt);

/*
 * Take note of a request that was executed: epsn, msn, open message. A READ takes the PSNs of its
 * responses.
 */
void weft_resp_accept(struct weft_resp_state *st, u32 mtu, const struct weft_pkt *pkt);

#endif
