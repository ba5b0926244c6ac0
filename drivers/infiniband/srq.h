/* SPDX-License-Identifier: GPL-2.0 */
/* Receive work queues: the copy of a receive WQE, RQs' shared reader, and shared receive queues. */
#ifndef WEFT_SRQ_H
#define WEFT_SRQ_H

#include "device.h"
#include "ring.h"

/* A receive WQE, copied once out of a ring and validated. */
struct weft_rwqe {
	u64 wr_id;
	u32 length; /* bytes, sum of the SGEs (fits 31 bits) */
	int num_sge;
	struct ib_sge sge[WEFT_MAX_SGE];
};

struct weft_rq {
	struct weft_ring *ring; /* slots: struct rxe_recv_wqe with SGEs behind */
	spinlock_t producer_lock; /* kernel posts; interrupts off */
	spinlock_t consumer_lock; /* interrupts off */
	u32 max_wr;
	u32 max_sge;
	bool is_user;
};

/* @info: where mmap data goes, NULL for kernel users. */
int weft_rq_init(struct weft_rq *rq, struct ib_ucontext *ucontext, u32 max_wr, u32 max_sge,
		 struct mminfo __user *info);
void weft_rq_uninit(struct weft_rq *rq);
/* Kernel users' post_recv. -EINVAL, -ENOMEM (full). */
int weft_rq_post(struct weft_rq *rq, const struct ib_recv_wr *wr);
/*
 * Take the oldest WQE. -ENOENT: none; -EINVAL: the slot's content is not a valid WQE (it is
 * consumed).
 */
int weft_rq_pop(struct weft_rq *rq, struct weft_rwqe *out);

struct weft_srq {
	struct ib_srq ibsrq;
	struct weft_rq rq;
	u32 num;
	u32 limit; /* armed limit, 0: none; rq.consumer_lock */
	struct work_struct limit_work; /* IB_EVENT_SRQ_LIMIT_REACHED from process context */
};

static inline struct weft_srq *weft_from_ibsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct weft_srq, ibsrq);
}

/* Like weft_rq_pop(), and fires the limit event. */
int weft_srq_pop(struct weft_srq *srq, struct weft_rwqe *out);

int weft_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int weft_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata);
int weft_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int weft_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int weft_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

#endif
