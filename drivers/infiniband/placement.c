// SPDX-License-Identifier: GPL-2.0
/*
 * Placement out of order: a WRITE's packet that came ahead of its turn goes to memory at once.
 *
 * For QPs that were made while their link had `placement early`. The packet itself still waits in
 * the hold queue, without its skb, and is executed in its turn with all checks; only its bytes are
 * where they belong already. So a hole costs no second copy and keeps no buffers, and two WRITEs to
 * one place, or a READ behind which one is posted, are no longer in order where packets are not.
 */
#include <linux/slab.h>
#include <weft/placement.h>

#include "qp.h"

int weft_placement_setup(struct weft_qp *qp)
{
	if (qp->transport != WEFT_RC || !READ_ONCE(qp->dev->cfg.place_early))
		return 0;
	qp->resp.placement = kzalloc(sizeof(*qp->resp.placement), GFP_KERNEL_ACCOUNT);
	return qp->resp.placement ? 0 : -ENOMEM;
}

void weft_placement_uninit(struct weft_qp *qp)
{
	kfree(qp->resp.placement);
}

void weft_placement_reset(struct weft_resp *resp)
{
	if (resp->placement)
		memset(resp->placement, 0, sizeof(*resp->placement));
}

void weft_placement_begins(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	if (qp->resp.placement && !(pkt->op->flags & WEFT_OP_END))
		weft_placement_note(qp->resp.placement, qp->mtu, pkt);
}

void weft_placement_ends(struct weft_resp *resp, const struct weft_pkt *pkt)
{
	if (resp->placement && pkt->op->flags & WEFT_OP_END)
		weft_placement_forget(resp->placement, resp->st.epsn);
}

bool weft_place_early(struct weft_qp *qp, const struct weft_source *src, const struct weft_pkt *pkt)
{
	bool start = pkt->op->flags & WEFT_OP_START;
	struct weft_place place;
	struct weft_mr *mr;

	if (!qp->resp.placement || !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    !weft_placement_find(qp->resp.placement, qp->mtu, pkt, &place))
		return false;
	/* As in its turn: the whole range is checked before the first byte is placed. */
	mr = weft_rkey_find(qp, place.rkey, place.va, start ? pkt->dmalen : pkt->payload_len,
			    IB_ACCESS_REMOTE_WRITE);
	if (!mr)
		return false;
	weft_source_to_mr(mr, place.va, src, pkt->payload_len);
	if (start)
		weft_placement_begins(qp, pkt);
	weft_count(qp->dev, placed_early_pkts);
	return true;
}
