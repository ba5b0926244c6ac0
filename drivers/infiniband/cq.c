// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.
 *
 * Every QP that posts to a CQ is gone before the CQ is destroyed (ib_core counts them), so nothing
 * but the deferred works below can still run then. Arming and posting exclude each other by
 * cq->lock: a completion is either seen by the poll that follows the arming, or fires the event.
 */
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "device.h"

/* Verbs users see ibv_wc's flags, which differ from the kernel's in this one. */
#define WEFT_USER_WC_WITH_INV BIT(3)

static u32 weft_cq_outstanding(const struct weft_ring *ring)
{
	return (ring->index - READ_ONCE(ring->buf->consumer_index)) & ring->mask;
}

static void weft_cq_event_work(struct work_struct *work)
{
	struct weft_cq *cq = container_of(work, struct weft_cq, event_work);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

static void weft_cq_comp_task(struct tasklet_struct *task)
{
	struct weft_cq *cq = from_tasklet(cq, task, comp_task);

	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * ib_core wants a kernel user's handler neither inside its own verbs call nor twice at a time; a
 * tasklet gives both. uverbs' handler only wakes a reader, under a lock of its own.
 */
static void weft_cq_fire(struct weft_cq *cq)
{
	if (!cq->is_user)
		tasklet_schedule(&cq->comp_task);
	else if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static u32 weft_wc_user_flags(int flags)
{
	u32 user = flags & (IB_WC_GRH | IB_WC_WITH_IMM);

	if (flags & IB_WC_WITH_INVALIDATE)
		user |= WEFT_USER_WC_WITH_INV;
	return user;
}

static void weft_wc_to_user(struct ib_uverbs_wc *slot, const struct ib_wc *wc)
{
	struct ib_uverbs_wc user = {
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = wc->opcode,
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.qp_num = wc->qp->qp_num,
		.src_qp = wc->src_qp,
		.wc_flags = weft_wc_user_flags(wc->wc_flags),
		.pkey_index = wc->pkey_index,
		.slid = wc->slid,
		.sl = wc->sl,
		.dlid_path_bits = wc->dlid_path_bits,
		.port_num = wc->port_num,
	};

	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		user.ex.invalidate_rkey = wc->ex.invalidate_rkey;
	else
		user.ex.imm_data = wc->ex.imm_data;
	memcpy(slot, &user, sizeof(user));
}

/* Once per CQ. Under cq->lock. */
static void weft_cq_overflow(struct weft_cq *cq)
{
	struct weft_dev *dev = weft_from_ibdev(cq->ibcq.device);

	cq->overflowed = true;
	weft_count(dev, cq_overflow);
	schedule_work(&cq->event_work);
}

/* Does this completion fire the event? Then the CQ is not armed any more. Under cq->lock. */
static bool weft_cq_disarm(struct weft_cq *cq, bool solicited)
{
	if (!cq->notify || (cq->notify == IB_CQ_SOLICITED && !solicited))
		return false;
	cq->notify = 0;
	return true;
}

int weft_cq_post(struct weft_cq *cq, const struct ib_wc *wc, bool solicited)
{
	unsigned long flags;
	bool fire = false;
	void *slot;
	int err = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->overflowed) {
		err = -ENOSPC;
	} else if (!weft_ring_free_slots(cq->ring)) {
		weft_cq_overflow(cq);
		err = -ENOSPC;
	} else {
		slot = weft_ring_slot(cq->ring, cq->ring->index);
		if (cq->is_user)
			weft_wc_to_user(slot, wc);
		else
			memcpy(slot, wc, sizeof(*wc));
		weft_ring_produce(cq->ring);
		fire = weft_cq_disarm(cq, solicited || wc->status != IB_WC_SUCCESS);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		weft_cq_fire(cq);
	return err;
}

int weft_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct weft_cq *cq = weft_from_ibcq(ibcq);
	struct weft_ring *ring;
	unsigned long flags;
	u32 consumer;
	int done = 0;

	if (cq->is_user)
		return -EOPNOTSUPP;

	spin_lock_irqsave(&cq->lock, flags);
	ring = cq->ring;
	consumer = ring->buf->consumer_index;
	while (done < num && consumer != ring->index) {
		memcpy(&wc[done++], weft_ring_slot(ring, consumer), sizeof(*wc));
		consumer = (consumer + 1) & ring->mask;
	}
	ring->buf->consumer_index = consumer;
	spin_unlock_irqrestore(&cq->lock, flags);
	return done;
}

int weft_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct weft_cq *cq = weft_from_ibcq(ibcq);
	unsigned long irq_flags;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq_flags);
	/* The stronger request holds. */
	if (cq->notify != IB_CQ_NEXT_COMP)
		cq->notify = flags & IB_CQ_SOLICITED_MASK;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = weft_cq_outstanding(cq->ring) != 0;
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return missed;
}

/* Both responses begin with the mminfo. */
static struct weft_ring *weft_cq_ring_alloc(u32 *cqe, struct ib_udata *udata)
{
	struct ib_ucontext *ucontext;

	static_assert(offsetof(struct rxe_create_cq_resp, mi) == 0);
	static_assert(offsetof(struct rxe_resize_cq_resp, mi) == 0);

	if (!udata)
		return weft_ring_alloc(NULL, cqe, sizeof(struct ib_wc), NULL);
	if (udata->outlen < sizeof(struct mminfo))
		return ERR_PTR(-EINVAL);
	ucontext = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	return weft_ring_alloc(ucontext, cqe, sizeof(struct ib_uverbs_wc), udata->outbuf);
}

int weft_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct weft_cq *cq = weft_from_ibcq(ibcq);
	u32 cqe = attr->cqe;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!cqe || cqe > WEFT_MAX_CQE || attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;

	cq->ring = weft_cq_ring_alloc(&cqe, udata);
	if (IS_ERR(cq->ring))
		return PTR_ERR(cq->ring);
	cq->is_user = udata;
	spin_lock_init(&cq->lock);
	tasklet_setup(&cq->comp_task, weft_cq_comp_task);
	INIT_WORK(&cq->event_work, weft_cq_event_work);
	ibcq->cqe = cqe;
	return 0;
}

int weft_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct weft_cq *cq = weft_from_ibcq(ibcq);

	tasklet_kill(&cq->comp_task);
	cancel_work_sync(&cq->event_work);
	weft_ring_free(cq->ring);
	return 0;
}

/*
 * What is outstanding moves to the front of @to. The user's consumer index may say anything: it can
 * only change which of the user's own slots are copied. Under cq->lock.
 */
static int weft_cq_move(const struct weft_ring *from, struct weft_ring *to)
{
	u32 count = weft_cq_outstanding(from);
	u32 i;

	if (count > to->mask)
		return -EINVAL;
	for (i = 0; i < count; i++)
		memcpy(weft_ring_slot(to, i), weft_ring_slot(from, from->index - count + i),
		       sizeof(struct ib_uverbs_wc));
	to->index = count;
	/* Pairs with the user's acquire in poll, as weft_ring_produce() does. */
	smp_store_release(&to->buf->producer_index, count);
	return 0;
}

int weft_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct weft_cq *cq = weft_from_ibcq(ibcq);
	struct weft_ring *ring;
	unsigned long flags;
	u32 slots = cqe;
	int err;

	if (!cq->is_user || !udata)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > WEFT_MAX_CQE)
		return -EINVAL;
	ring = weft_cq_ring_alloc(&slots, udata);
	if (IS_ERR(ring))
		return PTR_ERR(ring);

	spin_lock_irqsave(&cq->lock, flags);
	/* By what was asked for, not by what the rounding gives. */
	err = weft_cq_outstanding(cq->ring) > cqe ? -EINVAL : weft_cq_move(cq->ring, ring);
	if (!err) {
		swap(cq->ring, ring);
		ibcq->cqe = slots;
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	weft_ring_free(ring);
	return err;
}
