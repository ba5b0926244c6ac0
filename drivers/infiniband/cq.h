/* SPDX-License-Identifier: GPL-2.0 */
/* Completion queues: posting a CQE, events, resize, overflow. */
#ifndef WEFT_CQ_H
#define WEFT_CQ_H

#include <linux/interrupt.h>
#include <linux/workqueue.h>

#include "ring.h"

struct weft_cq {
	struct ib_cq ibcq;
	/* slots: struct ib_uverbs_wc for a user CQ, struct ib_wc for a kernel one */
	struct weft_ring *ring;
	/* ring, notify, overflowed; taken with interrupts off (kernel users poll anywhere) */
	spinlock_t lock;
	u8 notify;              /* armed: 0, IB_CQ_SOLICITED or IB_CQ_NEXT_COMP */
	bool overflowed;        /* sticky: the CQ takes no more */
	bool is_user;
	/* kernel users: never called back from inside their own post */
	struct tasklet_struct comp_task;
	struct work_struct event_work;   /* IB_EVENT_CQ_ERR, delivered from process context */
};

static inline struct weft_cq *weft_from_ibcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct weft_cq, ibcq);
}

/*
 * Add one completion; @wc->qp must be set (its qp_num goes to users). @solicited: counts for
 * IB_CQ_SOLICITED (errors always do). Any context. -ENOSPC: overflow; the CQ is dead, its users get
 * IB_EVENT_CQ_ERR once, and the caller moves its QP to the error state.
 */
int weft_cq_post(struct weft_cq *cq, const struct ib_wc *wc, bool solicited);

int weft_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata);
int weft_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int weft_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int weft_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int weft_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif
