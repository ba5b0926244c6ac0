// SPDX-License-Identifier: GPL-2.0
/*
 * Placement out of order: a WRITE's packet that came ahead of its turn goes to memory at once.
 *
 * For QPs that were made while their link had `placement early`. The packet itself still waits in
 * the hold queue, without its skb, and is executed in its turn with all checks; only its bytes are
 * where they belong already. So a hole keeps no buffers, and where packets are not in order,
 * neither is what WRITEs change in memory, among themselves and towards other requests.
 *
 * A receiver that is not ready is no hole: a peer may rely on it that nothing moves behind its
 * SEND.
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
	u32 part = pkt->op->flags & (WEFT_OP_WRITE | WEFT_OP_START | WEFT_OP_END);

	/* Of several packets, as all that are noted. */
	if (resp->placement && part == (WEFT_OP_WRITE | WEFT_OP_END))
		weft_placement_forget(resp->placement, resp->st.epsn);
}

bool weft_place_early(struct weft_qp *qp, const struct weft_source *src, const struct weft_pkt *pkt,
		      struct weft_place *place)
{
	bool start = pkt->op->flags & WEFT_OP_START;
	struct weft_mr *mr;

	if (!qp->resp.placement || qp->resp.rnr ||
	    !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    !weft_placement_find(qp->resp.placement, qp->mtu, pkt, place))
		return false;
	/* As in its turn: the whole range is checked before the first byte is placed. */
	mr = weft_rkey_find(qp, place->rkey, place->va, start ? pkt->dmalen : pkt->payload_len,
			    IB_ACCESS_REMOTE_WRITE);
	if (!mr)
		return false;
	weft_source_to_mr(mr, place->va, src, pkt->payload_len);
	if (start)
		weft_placement_begins(qp, pkt);
	weft_count(qp->dev, placed_early_pkts);
	return true;
}
