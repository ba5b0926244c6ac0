// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues and shared receive queues.
 *
 * Users produce into the mapped ring without a lock of ours; the kernel's producer and all
 * consumers have one each. Order: producer_lock, consumer_lock. Only a resize takes both.
 */
#include <linux/uaccess.h>
#include <rdma/uverbs_ioctl.h>

#include "srq.h"

static struct weft_ring *weft_rq_ring_alloc(struct ib_ucontext *ucontext, u32 *max_wr, u32 max_sge,
					    struct mminfo __user *info)
{
	u32 size = sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge);

	return weft_ring_alloc(ucontext, max_wr, size, info);
}

int weft_rq_init(struct weft_rq *rq, struct ib_ucontext *ucontext, u32 max_wr, u32 max_sge,
		 struct mminfo __user *info)
{
	struct weft_ring *ring = weft_rq_ring_alloc(ucontext, &max_wr, max_sge, info);

	if (IS_ERR(ring))
		return PTR_ERR(ring);
	rq->ring = ring;
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->is_user = ucontext;
	spin_lock_init(&rq->producer_lock);
	spin_lock_init(&rq->consumer_lock);
	return 0;
}

void weft_rq_uninit(struct weft_rq *rq)
{
	if (rq->ring)
		weft_ring_free(rq->ring);
	rq->ring = NULL;
}

static int weft_recv_wr_length(const struct ib_recv_wr *wr, u32 max_sge, u32 *length)
{
	u64 sum = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		sum += wr->sg_list[i].length;
	if (sum > WEFT_MAX_RECV)
		return -EINVAL;
	*length = sum;
	return 0;
}

static void weft_recv_wqe_fill(struct rxe_recv_wqe *wqe, const struct ib_recv_wr *wr, u32 length)
{
	int i;

	wqe->wr_id = wr->wr_id;
	wqe->dma.length = length;
	wqe->dma.num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->dma.sge[i].addr = wr->sg_list[i].addr;
		wqe->dma.sge[i].length = wr->sg_list[i].length;
		wqe->dma.sge[i].lkey = wr->sg_list[i].lkey;
	}
}

int weft_rq_post(struct weft_rq *rq, const struct ib_recv_wr *wr)
{
	struct weft_ring *ring;
	unsigned long flags;
	u32 producer, next;
	u32 length;
	int err;

	if (rq->is_user)
		return -EINVAL;
	err = weft_recv_wr_length(wr, rq->max_sge, &length);
	if (err)
		return err;

	spin_lock_irqsave(&rq->producer_lock, flags);
	ring = rq->ring;
	producer = ring->buf->producer_index;
	next = (producer + 1) & ring->mask;
	/* Pairs with the release in weft_ring_consume(): the slot is free to be written. */
	if (next == smp_load_acquire(&ring->buf->consumer_index)) {
		err = -ENOMEM;
	} else {
		weft_recv_wqe_fill(weft_ring_slot(ring, producer), wr, length);
		/* Pairs with the acquire in weft_ring_filled(). */
		smp_store_release(&ring->buf->producer_index, next);
	}
	spin_unlock_irqrestore(&rq->producer_lock, flags);
	return err;
}

/* The user may write the slot meanwhile: each field is read once, and only the copy is believed. */
static int weft_recv_wqe_copy(struct weft_rwqe *out, const struct rxe_recv_wqe *wqe, u32 max_sge)
{
	u32 num_sge = READ_ONCE(wqe->dma.num_sge);
	u64 sum = 0;
	u32 i;

	out->wr_id = READ_ONCE(wqe->wr_id);
	out->length = 0;
	out->num_sge = 0;
	if (num_sge > max_sge || num_sge > WEFT_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < num_sge; i++) {
		out->sge[i].addr = READ_ONCE(wqe->dma.sge[i].addr);
		out->sge[i].length = READ_ONCE(wqe->dma.sge[i].length);
		out->sge[i].lkey = READ_ONCE(wqe->dma.sge[i].lkey);
		sum += out->sge[i].length;
	}
	if (sum > WEFT_MAX_RECV)
		return -EINVAL;
	out->length = sum;
	out->num_sge = num_sge;
	return 0;
}

/* *@left: WQEs that remain. Under consumer_lock. */
static int weft_rq_take(struct weft_rq *rq, struct weft_rwqe *out, u32 *left)
{
	struct weft_ring *ring = rq->ring;
	u32 filled = weft_ring_filled(ring);
	int err;

	if (!filled)
		return -ENOENT;
	err = weft_recv_wqe_copy(out, weft_ring_slot(ring, ring->index), rq->max_sge);
	weft_ring_consume(ring);
	*left = filled - 1;
	return err;
}

int weft_rq_pop(struct weft_rq *rq, struct weft_rwqe *out)
{
	unsigned long flags;
	u32 left;
	int err;

	spin_lock_irqsave(&rq->consumer_lock, flags);
	err = weft_rq_take(rq, out, &left);
	spin_unlock_irqrestore(&rq->consumer_lock, flags);
	return err;
}

/* Under both locks. */
static int weft_rq_move(const struct weft_ring *from, struct weft_ring *to)
{
	u32 count = weft_ring_filled(from);
	u32 i;

	if (count > to->mask)
		return -EINVAL;
	for (i = 0; i < count; i++)
		memcpy(weft_ring_slot(to, i), weft_ring_slot(from, from->index + i),
		       1UL << to->log2_elem_size);
	/* Pairs with the acquire in weft_ring_filled(). */
	smp_store_release(&to->buf->producer_index, count);
	return 0;
}

static int weft_rq_resize(struct weft_rq *rq, struct ib_ucontext *ucontext, u32 max_wr,
			  struct mminfo __user *info)
{
	u32 asked = max_wr;
	struct weft_ring *ring = weft_rq_ring_alloc(ucontext, &max_wr, rq->max_sge, info);
	unsigned long flags;
	int err;

	if (IS_ERR(ring))
		return PTR_ERR(ring);

	spin_lock_irqsave(&rq->producer_lock, flags);
	spin_lock(&rq->consumer_lock);
	err = weft_ring_filled(rq->ring) > asked ? -EINVAL : weft_rq_move(rq->ring, ring);
	if (!err) {
		swap(rq->ring, ring);
		rq->max_wr = max_wr;
	}
	spin_unlock(&rq->consumer_lock);
	spin_unlock_irqrestore(&rq->producer_lock, flags);

	weft_ring_free(ring);
	return err;
}

/* --- shared receive queues --- */

static void weft_srq_limit_work(struct work_struct *work)
{
	struct weft_srq *srq = container_of(work, struct weft_srq, limit_work);
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

int weft_srq_pop(struct weft_srq *srq, struct weft_rwqe *out)
{
	unsigned long flags;
	u32 left;
	int err;

	spin_lock_irqsave(&srq->rq.consumer_lock, flags);
	err = weft_rq_take(&srq->rq, out, &left);
	/* The event disarms the limit. */
	if (err != -ENOENT && left < srq->limit) {
		srq->limit = 0;
		schedule_work(&srq->limit_work);
	}
	spin_unlock_irqrestore(&srq->rq.consumer_lock, flags);
	return err;
}

static int weft_srq_respond(const struct weft_srq *srq, struct ib_udata *udata)
{
	struct rxe_create_srq_resp __user *resp = udata->outbuf;

	/* mi is already there, by weft_ring_alloc(). */
	if (put_user(srq->num, &resp->srq_num) || put_user(0, &resp->reserved))
		return -EFAULT;
	return 0;
}

int weft_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct weft_srq *srq = weft_from_ibsrq(ibsrq);
	struct weft_dev *dev = weft_from_ibdev(ibsrq->device);
	struct rxe_create_srq_resp __user *resp = NULL;
	struct ib_ucontext *ucontext = NULL;
	int err;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > WEFT_MAX_SRQ_WR ||
	    init->attr.max_sge > WEFT_MAX_SRQ_SGE)
		return -EINVAL;
	if (udata) {
		if (udata->outlen < sizeof(*resp))
			return -EINVAL;
		resp = udata->outbuf;
		ucontext = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	}

	INIT_WORK(&srq->limit_work, weft_srq_limit_work);
	err = weft_rq_init(&srq->rq, ucontext, init->attr.max_wr, max(init->attr.max_sge, 1U),
			   resp ? &resp->mi : NULL);
	if (err)
		return err;
	err = xa_alloc_cyclic(&dev->srqs, &srq->num, srq, XA_LIMIT(1, WEFT_MAX_SRQ), &dev->srq_next,
			      GFP_KERNEL);
	if (err < 0)
		goto err_rq;
	err = udata ? weft_srq_respond(srq, udata) : 0;
	if (err)
		goto err_num;
	init->attr.max_wr = srq->rq.max_wr;
	init->attr.max_sge = srq->rq.max_sge;
	return 0;

err_num:
	xa_erase(&dev->srqs, srq->num);
err_rq:
	weft_rq_uninit(&srq->rq);
	return err;
}

int weft_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct weft_srq *srq = weft_from_ibsrq(ibsrq);
	struct weft_dev *dev = weft_from_ibdev(ibsrq->device);

	xa_erase(&dev->srqs, srq->num);
	cancel_work_sync(&srq->limit_work);
	weft_rq_uninit(&srq->rq);
	return 0;
}

/* stock librxe passes the address of its mminfo in the request; there is no response */
static int weft_srq_resize(struct weft_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct rxe_modify_srq_cmd cmd;
	int err;

	if (!udata)
		return weft_rq_resize(&srq->rq, NULL, max_wr, NULL);
	err = ib_copy_validate_udata_in(udata, cmd, mmap_info_addr);
	if (err)
		return err;
	return weft_rq_resize(&srq->rq, rdma_udata_to_uverbs_attr_bundle(udata)->context, max_wr,
			      u64_to_user_ptr(cmd.mmap_info_addr));
}

int weft_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata)
{
	struct weft_srq *srq = weft_from_ibsrq(ibsrq);
	u32 limit = mask & IB_SRQ_LIMIT ? attr->srq_limit : READ_ONCE(srq->limit);
	u32 size = mask & IB_SRQ_MAX_WR ? attr->max_wr : READ_ONCE(srq->rq.max_wr);
	int err;

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EINVAL;
	if (!size || limit > size)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR) {
		if (size > WEFT_MAX_SRQ_WR)
			return -EINVAL;
		err = weft_srq_resize(srq, size, udata);
		if (err)
			return err;
	}
	if (mask & IB_SRQ_LIMIT) {
		spin_lock_irq(&srq->rq.consumer_lock);
		srq->limit = limit;
		spin_unlock_irq(&srq->rq.consumer_lock);
	}
	return 0;
}

int weft_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct weft_srq *srq = weft_from_ibsrq(ibsrq);

	attr->max_wr = READ_ONCE(srq->rq.max_wr);
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

int weft_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct weft_srq *srq = weft_from_ibsrq(ibsrq);
	int err;

	for (; wr; wr = wr->next) {
		err = weft_rq_post(&srq->rq, wr);
		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}
