// SPDX-License-Identifier: GPL-2.0
/*
 * Completer: the verdict of a response packet on the oldest request.
 *
 * A response acknowledges every request before its PSN, except that a READ or an atomic is complete
 * only by its own response: any packet that has overtaken that response proves it lost. First the
 * packet is put before, in or behind the request's PSNs; only inside does its opcode matter.
 */
#include <weft/completer.h>

static struct weft_comp_result verdict(enum weft_comp_verdict v)
{
	struct weft_comp_result r = { .verdict = v };

	return r;
}

static struct weft_comp_result resend(u32 psn, bool implied)
{
	struct weft_comp_result r = {
		.verdict = WEFT_COMP_RETRY,
		.resume_psn = psn,
		.implied = implied,
	};

	return r;
}

static struct weft_comp_result step_positive(const struct weft_comp_wqe *wqe, u32 psn)
{
	if (weft_wr_is_rd_atomic(wqe->wr))
		return resend(wqe->resp_psn, true);
	if (psn == wqe->last_psn)
		return verdict(WEFT_COMP_NEXT);
	return verdict(WEFT_COMP_PROGRESS);
}

/* The packet's PSN is the one that the responder wants, or cannot serve. */
static struct weft_comp_result step_negative(const struct weft_comp_wqe *wqe,
					     const struct weft_pkt *pkt)
{
	u8 value = weft_syndrome_value(pkt->syndrome);
	struct weft_comp_result r;

	if (weft_syndrome_kind(pkt->syndrome) == WEFT_ACK_NAK && value != WEFT_NAK_PSN_SEQUENCE) {
		r = verdict(WEFT_COMP_ERROR);
		r.nak = value;
		return r;
	}
	/* Responses that a READ still misses cannot be skipped. */
	if (weft_wr_is_rd_atomic(wqe->wr) && pkt->psn != wqe->resp_psn)
		return resend(wqe->resp_psn, true);
	r = resend(pkt->psn, false);
	if (weft_syndrome_kind(pkt->syndrome) == WEFT_ACK_RNR) {
		r.verdict = WEFT_COMP_RNR;
		r.rnr_code = value;
	}
	return r;
}

static struct weft_comp_result step_acknowledge(const struct weft_comp_wqe *wqe,
						const struct weft_pkt *pkt)
{
	if (weft_syndrome_kind(pkt->syndrome) == WEFT_ACK_POSITIVE)
		return step_positive(wqe, pkt->psn);
	return step_negative(wqe, pkt);
}

/* The response's opcode and length against its place in the READ. */
static struct weft_comp_result step_read(const struct weft_comp_wqe *wqe,
					 const struct weft_pkt *pkt)
{
	u32 offset = weft_req_offset_of_psn(wqe->wr, wqe->first_psn, pkt->psn, wqe->mtu, wqe->len);
	bool first = pkt->psn == wqe->first_psn;
	bool last = pkt->psn == wqe->last_psn;

	if (pkt->psn != wqe->resp_psn)
		return resend(wqe->resp_psn, true);
	if (last != !!(pkt->op->flags & WEFT_OP_END))
		return verdict(WEFT_COMP_BAD_RESPONSE);
	/* A resumed READ is answered by a new FIRST or ONLY: START may stand anywhere. */
	if (first && !(pkt->op->flags & WEFT_OP_START))
		return verdict(WEFT_COMP_BAD_RESPONSE);
	if (pkt->payload_len != min(wqe->len - offset, wqe->mtu))
		return verdict(WEFT_COMP_BAD_RESPONSE);
	return verdict(last ? WEFT_COMP_READ_LAST : WEFT_COMP_READ_DATA);
}

static struct weft_comp_result step_response(const struct weft_comp_wqe *wqe,
					     const struct weft_pkt *pkt)
{
	u32 flags = pkt->op->flags;

	if ((flags & WEFT_OP_AETH) && weft_syndrome_kind(pkt->syndrome) != WEFT_ACK_POSITIVE)
		return verdict(WEFT_COMP_BAD_RESPONSE);
	switch (wqe->wr) {
	case WEFT_WR_READ:
		if (flags & WEFT_OP_READ)
			return step_read(wqe, pkt);
		break;
	case WEFT_WR_COMPARE_SWAP:
	case WEFT_WR_FETCH_ADD:
		if (flags & WEFT_OP_ATOMIC)
			return verdict(WEFT_COMP_ATOMIC);
		break;
	case WEFT_WR_ATOMIC_WRITE:
		if (pkt->opcode == (WEFT_RC | WEFT_READ_RESPONSE_ONLY) && !pkt->payload_len)
			return verdict(WEFT_COMP_NEXT);
		break;
	default:
		break;
	}
	return verdict(WEFT_COMP_BAD_RESPONSE);
}

struct weft_comp_result weft_comp_step(const struct weft_comp_wqe *wqe, u32 next_psn,
				       const struct weft_pkt *pkt)
{
	bool rd_atomic = weft_wr_is_rd_atomic(wqe->wr);
	u32 flags = pkt->op->flags;

	if (!(flags & WEFT_OP_RESPONSE) || !weft_psn_before(pkt->psn, next_psn))
		return verdict(WEFT_COMP_DROP);
	if ((flags & WEFT_OP_AETH) && weft_syndrome_kind(pkt->syndrome) == WEFT_ACK_RESERVED)
		return verdict(WEFT_COMP_DROP);
	if (weft_psn_before(pkt->psn, rd_atomic ? wqe->resp_psn : wqe->first_psn))
		return verdict(WEFT_COMP_DROP);
	if (weft_psn_before(wqe->last_psn, pkt->psn))
		return rd_atomic ? resend(wqe->resp_psn, true) : verdict(WEFT_COMP_NEXT);
	if (pkt->opcode == (WEFT_RC | WEFT_ACKNOWLEDGE))
		return step_acknowledge(wqe, pkt);
	return step_response(wqe, pkt);
}
EXPORT_SYMBOL_GPL(weft_comp_step);
