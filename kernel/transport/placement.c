// SPDX-License-Identifier: GPL-2.0
/*
 * Placement out of order: the messages whose RETH has been seen, and where their packets belong.
 *
 * A packet says in which part of a message it is, its PSN says in which message and how far behind
 * the first packet. Only where both and the length agree is there a place. Whether the message may
 * be executed at all is found out in its turn, by responder.c.
 */
#include <weft/opcode.h>
#include <weft/placement.h>
#include <weft/requester.h>

void weft_placement_note(struct weft_placement *p, u32 mtu, const struct weft_pkt *pkt)
{
	struct weft_placement_message *free = NULL;
	u32 i;

	for (i = 0; i < WEFT_PLACEMENT_MESSAGES; i++) {
		struct weft_placement_message *m = &p->messages[i];

		if (m->num && m->first_psn == pkt->psn)
			return;
		if (!m->num && !free)
			free = m;
	}
	if (!free || pkt->dmalen <= mtu || pkt->dmalen > WEFT_MESSAGE_MAX)
		return;
	free->first_psn = pkt->psn;
	free->num = weft_wr_psn_count(WEFT_WR_WRITE, pkt->dmalen, mtu);
	free->va = pkt->va;
	free->rkey = pkt->rkey;
	free->len = pkt->dmalen;
}
EXPORT_SYMBOL_GPL(weft_placement_note);

void weft_placement_forget(struct weft_placement *p, u32 epsn)
{
	u32 i;

	for (i = 0; i < WEFT_PLACEMENT_MESSAGES; i++) {
		struct weft_placement_message *m = &p->messages[i];

		if (m->num && !weft_psn_before(epsn, weft_psn_add(m->first_psn, m->num)))
			m->num = 0;
	}
}
EXPORT_SYMBOL_GPL(weft_placement_forget);

static bool first_has_place(u32 mtu, const struct weft_pkt *pkt, struct weft_place *place)
{
	bool end = pkt->op->flags & WEFT_OP_END;

	if (end ? pkt->payload_len != pkt->dmalen || pkt->payload_len > mtu
		: pkt->payload_len != mtu || pkt->dmalen <= mtu || pkt->dmalen > WEFT_MESSAGE_MAX)
		return false;
	place->va = pkt->va;
	place->rkey = pkt->rkey;
	return true;
}

bool weft_placement_find(const struct weft_placement *p, u32 mtu, const struct weft_pkt *pkt,
			 struct weft_place *place)
{
	bool end = pkt->op->flags & WEFT_OP_END;
	u32 i;

	if (!(pkt->op->flags & WEFT_OP_WRITE) || !pkt->payload_len)
		return false;
	if (pkt->op->flags & WEFT_OP_START)
		return first_has_place(mtu, pkt, place);

	for (i = 0; i < WEFT_PLACEMENT_MESSAGES; i++) {
		const struct weft_placement_message *m = &p->messages[i];
		s32 behind = weft_psn_diff(pkt->psn, m->first_psn);
		u32 offset = (u32)behind * mtu;

		if (behind <= 0 || (u32)behind >= m->num)
			continue;
		if (end != ((u32)behind == m->num - 1) ||
		    pkt->payload_len != min(m->len - offset, mtu))
			return false;
		place->va = m->va + offset;
		place->rkey = m->rkey;
		return true;
	}
	return false;
}
EXPORT_SYMBOL_GPL(weft_placement_find);
