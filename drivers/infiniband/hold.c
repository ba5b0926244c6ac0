// SPDX-License-Identifier: GPL-2.0
/*
 * Hold queue of the responder: packets of a Weft peer that came ahead of the expected PSN.
 *
 * They wait in PSN order, each with a reference to its skb unless its bytes have been placed
 * (placement.c), until what is before them has come, and are then executed as if they came now. No
 * more than a window's PSNs wait for a QP, and no more than WEFT_HOLD_ALL packets on the host; what
 * finds no room is lost, as on the wire. Packets of this host come in order and are not held.
 */
#include <linux/slab.h>

#include "qp.h"

enum {
	WEFT_HOLD_ALL = 1 << 15,
	WEFT_HOLD_REPORT = 16, /* packets that are held more, and a report goes out */
};

static atomic_t weft_hold_count = ATOMIC_INIT(0);
static struct kmem_cache *weft_held_cache;

/*
 * Payload that is still a sender's memory on this host is copied: once the sender has given up, its
 * user may put something else there, and the ICRC has been checked already.
 */
static struct sk_buff *weft_held_skb(struct sk_buff *skb)
{
	/* The sender shall not wait for a packet that waits for another one of its. */
	skb_orphan(skb);
	if (skb_has_shared_frag(skb))
		return skb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	return skb_get(skb);
}

/* What is placed needs no room for its bytes. */
static struct weft_held *weft_held_alloc(struct weft_qp *qp, const struct weft_source *src,
					 const struct weft_pkt *pkt)
{
	struct weft_held *held;

	if (atomic_inc_return(&weft_hold_count) > WEFT_HOLD_ALL)
		goto full;
	held = kmem_cache_alloc(weft_held_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!held)
		goto full;
	held->src = *src;
	held->skb = NULL;
	if (weft_place_early(qp, src, pkt, &held->place)) {
		held->src.placed = &held->place;
	} else {
		held->skb = weft_held_skb((struct sk_buff *)src->skb);
		if (!held->skb)
			goto free;
	}
	held->src.skb = held->skb;
	held->src.saddr = NULL; /* checked, and on the caller's stack */
	held->src.daddr = NULL;
	held->pkt = *pkt;
	return held;

free:
	kmem_cache_free(weft_held_cache, held);
full:
	atomic_dec(&weft_hold_count);
	return NULL;
}

void weft_held_free(struct weft_held *held)
{
	kfree_skb(held->skb);
	kmem_cache_free(weft_held_cache, held);
	atomic_dec(&weft_hold_count);
}

/* A report goes out at the end of the batch when there is a new gap, and now and then. */
static void weft_hold_note(struct weft_resp *resp, u32 psn)
{
	struct weft_hold *hold = &resp->hold;

	if (!weft_psn_set_has(&hold->set, weft_psn_add(psn, WEFT_PSN_MASK)) ||
	    ++hold->unreported == WEFT_HOLD_REPORT) {
		hold->report = true;
		hold->unreported = 0;
	}
}

void weft_hold_duplicate(struct weft_resp *resp, const struct weft_source *src)
{
	if (!weft_peer_is_weft(&resp->peer) || src->burst)
		return;
	resp->hold.duplicates++;
	resp->hold.report = true;
}

bool weft_hold_add(struct weft_qp *qp, const struct weft_source *src, const struct weft_pkt *pkt)
{
	struct weft_hold *hold = &qp->resp.hold;
	s32 ahead = weft_psn_diff(pkt->psn, qp->resp.st.epsn);
	struct weft_held *held, *before;

	if (!weft_peer_is_weft(&qp->resp.peer) || src->burst)
		return false;
	if (ahead >= (s32)WEFT_PSN_SET_SIZE) {
		weft_count(qp->dev, hold_drops);
		return false;
	}
	if (weft_psn_set_has(&hold->set, pkt->psn)) {
		weft_count(qp->dev, duplicate_request);
		weft_hold_duplicate(&qp->resp, src);
		return true;
	}
	held = weft_held_alloc(qp, src, pkt);
	if (!held) {
		weft_count(qp->dev, hold_drops);
		return false;
	}
	/* Most come behind all others. */
	list_for_each_entry_reverse(before, &hold->list, node)
		if (weft_psn_before(before->pkt.psn, pkt->psn))
			break;
	list_add(&held->node, &before->node);
	weft_hold_note(&qp->resp, pkt->psn);
	weft_psn_set_add(&hold->set, pkt->psn);
	hold->num++;
	weft_count(qp->dev, held_pkts);
	return true;
}

static void weft_hold_remove(struct weft_hold *hold, struct weft_held *held)
{
	list_del(&held->node);
	weft_psn_set_del(&hold->set, held->pkt.psn);
	hold->num--;
}

struct weft_held *weft_hold_pop(struct weft_qp *qp)
{
	struct weft_hold *hold = &qp->resp.hold;
	struct weft_held *held;

	if (!hold->num)
		return NULL;
	held = list_first_entry(&hold->list, struct weft_held, node);
	if (weft_psn_before(qp->resp.st.epsn, held->pkt.psn))
		return NULL;
	weft_hold_remove(hold, held);
	/* The peer shall know how far it is. */
	hold->report = true;
	return held;
}

void weft_hold_purge(struct weft_resp *resp)
{
	struct weft_hold *hold = &resp->hold;
	struct weft_held *held, *next;

	list_for_each_entry_safe(held, next, &hold->list, node) {
		weft_hold_remove(hold, held);
		weft_held_free(held);
	}
	hold->report = false;
	hold->duplicates = 0;
	hold->reported = 0;
	hold->unreported = 0;
}

void weft_hold_setup(struct weft_resp *resp)
{
	INIT_LIST_HEAD(&resp->hold.list);
}

int weft_hold_init(void)
{
	weft_held_cache = KMEM_CACHE(weft_held, 0);
	return weft_held_cache ? 0 : -ENOMEM;
}

void weft_hold_uninit(void)
{
	kmem_cache_destroy(weft_held_cache);
}
