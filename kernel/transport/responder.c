// SPDX-License-Identifier: GPL-2.0
/*
 * Responder: order and shape of requests.
 *
 * A request passes three gates: its PSN is the expected one, its opcode continues the message that
 * is open (or begins one), its length is what the opcode and the message allow. RC answers a
 * failure with a NAK; UC is silent and waits for the next message.
 */
#include <weft/requester.h>
#include <weft/responder.h>

#define KIND (WEFT_OP_SEND | WEFT_OP_WRITE)

static bool opcode_fits(const struct weft_resp_state *st, u8 transport, const struct weft_pkt *pkt)
{
	u32 flags = pkt->op->flags;

	if (!(flags & WEFT_OP_REQUEST) || (pkt->opcode & WEFT_TRANSPORT_MASK) != transport)
		return false;
	if (flags & WEFT_OP_START)
		return transport == WEFT_UC || !st->msg_flags;
	return st->msg_flags == (flags & KIND);
}

static bool payload_fits(u32 flags, u32 mtu, u32 payload_len)
{
	if (!(flags & WEFT_OP_PAYLOAD))
		return !payload_len;
	if (!(flags & WEFT_OP_END))
		return payload_len == mtu;
	if (!(flags & WEFT_OP_START))
		return payload_len && payload_len <= mtu;
	return payload_len <= mtu;
}

/* The payload against what the RETH promised: the last packet, and only it, uses up the rest. */
static bool write_fits(const struct weft_resp_state *st, const struct weft_pkt *pkt)
{
	u32 resid = pkt->op->flags & WEFT_OP_START ? pkt->dmalen : st->write_resid;

	if (pkt->op->flags & WEFT_OP_END)
		return pkt->payload_len == resid;
	return pkt->payload_len < resid;
}

static bool length_fits(const struct weft_resp_state *st, u32 mtu, const struct weft_pkt *pkt)
{
	u32 flags = pkt->op->flags;

	if (!payload_fits(flags, mtu, pkt->payload_len))
		return false;
	if ((flags & WEFT_OP_RETH) && pkt->dmalen > WEFT_MESSAGE_MAX)
		return false;
	if (flags & WEFT_OP_WRITE)
		return write_fits(st, pkt);
	if (flags & WEFT_OP_ATOMIC)
		return pkt->va % 8 == 0;
	if (flags & WEFT_OP_ATOMIC_WRITE)
		return pkt->va % 8 == 0 && pkt->dmalen == 8 && pkt->payload_len == 8;
	return true;
}

static bool request_fits(const struct weft_resp_state *st, u8 transport, u32 mtu,
			 const struct weft_pkt *pkt)
{
	return opcode_fits(st, transport, pkt) && length_fits(st, mtu, pkt);
}

static struct weft_resp_result check_rc(struct weft_resp_state *st, u32 mtu,
					const struct weft_pkt *pkt)
{
	struct weft_resp_result r = { .verdict = WEFT_RESP_OK };
	s32 ahead = weft_psn_diff(pkt->psn, st->epsn);

	if (ahead < 0) {
		r.verdict = WEFT_RESP_DUPLICATE;
		return r;
	}
	if (ahead > 0) {
		r.verdict = st->nak_pending ? WEFT_RESP_DROP : WEFT_RESP_NAK;
		r.nak = WEFT_NAK_PSN_SEQUENCE;
		r.lost = true;
		st->nak_pending = true;
		return r;
	}
	st->nak_pending = false;
	if (!request_fits(st, WEFT_RC, mtu, pkt)) {
		r.verdict = WEFT_RESP_NAK;
		r.nak = WEFT_NAK_INVALID_REQUEST;
	}
	return r;
}

static struct weft_resp_result check_uc(struct weft_resp_state *st, u32 mtu,
					const struct weft_pkt *pkt)
{
	bool start = pkt->op->flags & WEFT_OP_START;
	struct weft_resp_result r = { .verdict = WEFT_RESP_OK };

	r.lost = pkt->psn != st->epsn;
	st->skip_message = !start && (st->skip_message || r.lost);
	st->epsn = pkt->psn;
	if (!st->skip_message && request_fits(st, WEFT_UC, mtu, pkt))
		return r;
	/* The rest of this message comes with the PSNs that follow: no further gap. */
	st->skip_message = true;
	st->epsn = weft_psn_add(pkt->psn, 1);
	r.verdict = WEFT_RESP_DROP;
	return r;
}

struct weft_resp_result weft_resp_check(struct weft_resp_state *st, u8 transport, u32 mtu,
					const struct weft_pkt *pkt)
{
	return transport == WEFT_UC ? check_uc(st, mtu, pkt) : check_rc(st, mtu, pkt);
}
EXPORT_SYMBOL_GPL(weft_resp_check);

void weft_resp_accept(struct weft_resp_state *st, u32 mtu, const struct weft_pkt *pkt)
{
	u32 flags = pkt->op->flags;
	u32 psns = 1;

	if (flags & WEFT_OP_READ)
		psns = weft_wr_psn_count(WEFT_WR_READ, pkt->dmalen, mtu);
	st->epsn = weft_psn_add(pkt->psn, psns);

	if (flags & WEFT_OP_WRITE) {
		if (flags & WEFT_OP_START)
			st->write_resid = pkt->dmalen;
		st->write_resid -= pkt->payload_len;
	}
	if (flags & WEFT_OP_END) {
		st->msg_flags = 0;
		st->msn = (st->msn + 1) & WEFT_PSN_MASK;
	} else {
		st->msg_flags = flags & KIND;
	}
}
EXPORT_SYMBOL_GPL(weft_resp_accept);
