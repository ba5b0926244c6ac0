/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completer: what a response packet means for the oldest request that is not complete.
 *
 * The driver asks weft_comp_step() for the oldest request, acts on the verdict, and for
 * WEFT_COMP_NEXT asks again for the following one, until another verdict comes back or no request
 * is left.
 */
#ifndef WEFT_COMPLETER_H
#define WEFT_COMPLETER_H

#include <weft/ack.h>
#include <weft/requester.h>

/* The oldest request. */
struct weft_comp_wqe {
	enum weft_wr wr;
	u32 first_psn;
	u32 last_psn;
	u32 resp_psn; /* READ: PSN of the next response that is expected; else first_psn */
	u32 len;      /* bytes of the whole request */
	u32 mtu;
};

enum weft_comp_verdict {
	WEFT_COMP_DROP,         /* old, or about nothing that was sent: no effect */
	WEFT_COMP_NEXT,         /* acknowledged as a whole: complete it, then ask for the next */
	WEFT_COMP_PROGRESS,     /* acknowledged up to the packet's PSN: restart the timer */
	WEFT_COMP_READ_DATA,    /* payload belongs at (psn - first_psn) × mtu; more follow */
	WEFT_COMP_READ_LAST,    /* the same, and the request is complete */
	WEFT_COMP_ATOMIC,       /* orig belongs to the request's SGE: complete it */
	WEFT_COMP_RETRY,        /* requests or responses were lost: resend from @resume_psn */
	WEFT_COMP_RNR,          /* wait for the code's time, then resend from @resume_psn */
	WEFT_COMP_ERROR,        /* NAK other than sequence: complete with an error by @nak */
	WEFT_COMP_BAD_RESPONSE, /* the response contradicts the request: IB_WC_BAD_RESP_ERR */
};

struct weft_comp_result {
	enum weft_comp_verdict verdict;
	u32 resume_psn;          /* RETRY, RNR */
	enum weft_nak_code nak;  /* ERROR */
	u8 rnr_code;             /* RNR */
	bool implied;            /* RETRY without a NAK (counter implied_nak_seq_err) */
};

/*
 * Is the packet a positive acknowledgment of all of a SEND or WRITE? weft_comp_step() says NEXT
 * then; the most frequent case need not ask it.
 */
static inline bool weft_comp_is_acked(enum weft_wr wr, u32 last_psn, u32 next_psn,
				      const struct weft_pkt *pkt)
{
	return pkt->opcode == (WEFT_RC | WEFT_ACKNOWLEDGE) &&
	       weft_syndrome_is_ack(pkt->syndrome) && !weft_wr_is_rd_atomic(wr) &&
	       !weft_psn_before(pkt->psn, last_psn) && weft_psn_before(pkt->psn, next_psn);
}

/*
 * @wqe: the oldest request not complete. @next_psn: one behind the highest PSN that was ever sent
 * (a resend does not lower it; a READ's responses count as sent), so that responses to what was
 * never sent are dropped. @pkt: a RESPONSE packet.
 *
 * Every packet behind a gap gives an implied RETRY again: resend at the first of them, and at a
 * later one only after progress. ATOMIC_WRITE is complete by NEXT, as it brings no data.
 */
struct weft_comp_result weft_comp_step(const struct weft_comp_wqe *wqe, u32 next_psn,
				       const struct weft_pkt *pkt);

#endif
