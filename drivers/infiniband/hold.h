/* SPDX-License-Identifier: GPL-2.0 */
/* Hold queue: what came ahead of the expected PSN and waits for what is before it. */
#ifndef WEFT_HOLD_H
#define WEFT_HOLD_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <weft/placement.h>
#include <weft/psn_set.h>

#include "mr.h"

struct weft_qp;
struct weft_resp;

struct weft_held {
	struct list_head node;
	struct sk_buff *skb;     /* a reference; NULL: the payload has been placed */
	struct weft_place place; /* of that payload */
	struct weft_source src;
	struct weft_pkt pkt;
};

/* resp.lock */
struct weft_hold {
	struct list_head list;   /* weft_held.node, in PSN order */
	struct weft_psn_set set; /* of their PSNs */
	u32 num;
	u32 duplicates;          /* requests that came once more */
	u32 reported;            /* duplicates that the last report told of */
	u32 unreported;          /* were held since the last report */
	bool report;             /* tell the peer at the end of the batch */
};

/*
 * Hold a packet that is ahead of the expected PSN, or see that it is held already. False: it is
 * lost, for the peer is no Weft device or there is no room.
 */
bool weft_hold_add(struct weft_qp *qp, const struct weft_source *src, const struct weft_pkt *pkt);
/* A request came once more: a Weft peer is told. */
void weft_hold_duplicate(struct weft_resp *resp, const struct weft_source *src);
/* Take the first packet if it is not ahead any more. NULL: it is, or there is none. */
struct weft_held *weft_hold_pop(struct weft_qp *qp);
void weft_held_free(struct weft_held *held);
/* Forget all; the QP takes nothing more. */
void weft_hold_purge(struct weft_resp *resp);
void weft_hold_setup(struct weft_resp *resp);

int weft_hold_init(void);
void weft_hold_uninit(void);

#endif
