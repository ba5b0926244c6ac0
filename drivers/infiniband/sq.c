// SPDX-License-Identifier: GPL-2.0
/*
 * Send queue: from a posted work request to the kernel's own copy of it.
 *
 * Users write struct rxe_send_wqe into a ring that they share with us and may change at any time. A
 * slot is copied once, field by field, validated, and never looked at again. Kernel users' requests
 * are put straight into the copy's place.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/rdma_user_rxe.h>

#include "qp.h"
#include "rx.h"

/* librxe posts it on every kernel; the enumerator came with 6.2. */
#define WEFT_IB_WR_ATOMIC_WRITE 15

static const struct weft_wr_map {
	bool known;
	enum weft_wr wr;
	enum weft_local_op local;
} weft_wr_map[] = {
	[IB_WR_RDMA_WRITE] = { true, WEFT_WR_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { true, WEFT_WR_WRITE_IMM },
	[IB_WR_SEND] = { true, WEFT_WR_SEND },
	[IB_WR_SEND_WITH_IMM] = { true, WEFT_WR_SEND_IMM },
	[IB_WR_SEND_WITH_INV] = { true, WEFT_WR_SEND_INV },
	[IB_WR_RDMA_READ] = { true, WEFT_WR_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { true, WEFT_WR_COMPARE_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { true, WEFT_WR_FETCH_ADD },
	[WEFT_IB_WR_ATOMIC_WRITE] = { true, WEFT_WR_ATOMIC_WRITE },
	[IB_WR_LOCAL_INV] = { true, WEFT_WR_SEND, WEFT_LOCAL_INV },
	[IB_WR_REG_MR] = { true, WEFT_WR_SEND, WEFT_LOCAL_REG_MR },
	[IB_WR_BIND_MW] = { true, WEFT_WR_SEND, WEFT_LOCAL_BIND_MW },
};

/* Fill in what follows from the opcode. False: the QP does not have this operation. */
static bool weft_swqe_classify(const struct weft_qp *qp, struct weft_swqe *wqe)
{
	const struct weft_wr_map *map;

	if ((u32)wqe->opcode >= ARRAY_SIZE(weft_wr_map))
		return false;
	map = &weft_wr_map[wqe->opcode];
	if (!map->known)
		return false;
	wqe->wr = map->wr;
	wqe->local = map->local;
	if (map->local == WEFT_LOCAL_REG_MR && qp->is_user)
		return false;
	if (map->local != WEFT_LOCAL_NONE)
		return qp->transport == WEFT_RC ||
		       (qp->transport == WEFT_UC && map->local == WEFT_LOCAL_BIND_MW);
	return weft_wr_allowed(qp->transport, map->wr);
}

/* A request that cannot be: it completes with @status when its turn comes. */
static void weft_swqe_refuse(struct weft_swqe *wqe, enum ib_wc_status status)
{
	wqe->status = status;
	wqe->done = true;
	wqe->local = WEFT_LOCAL_NONE;
	wqe->num_sge = 0;
	wqe->length = 0;
}

/* What the length must be for the operation. */
static bool weft_swqe_length_ok(const struct weft_qp *qp, const struct weft_swqe *wqe, u64 length)
{
	if (length > WEFT_MAX_MSG)
		return false;
	switch (wqe->wr) {
	case WEFT_WR_COMPARE_SWAP:
	case WEFT_WR_FETCH_ADD:
	case WEFT_WR_ATOMIC_WRITE:
		return wqe->local != WEFT_LOCAL_NONE || length == sizeof(u64);
	default:
		break;
	}
	if (qp->transport == WEFT_UD)
		return length <= qp->mtu;
	return true;
}

static void weft_swqe_set_length(struct weft_qp *qp, struct weft_swqe *wqe, u64 length)
{
	if (weft_swqe_length_ok(qp, wqe, length))
		wqe->length = length;
	else
		weft_swqe_refuse(wqe, IB_WC_LOC_LEN_ERR);
}

static void weft_fetch_payload(struct weft_qp *qp, struct weft_swqe *wqe,
			       const struct rxe_send_wqe *slot)
{
	const struct rxe_dma_info *dma = &slot->dma;
	u32 num_sge = READ_ONCE(dma->num_sge);
	u64 length = 0;
	u32 i;

	/* librxe puts the eight bytes of an ATOMIC_WRITE where inline data goes. */
	if (wqe->wr == WEFT_WR_ATOMIC_WRITE && !num_sge)
		wqe->flags |= IB_SEND_INLINE;
	if (wqe->flags & IB_SEND_INLINE) {
		length = READ_ONCE(dma->length);
		if (length > qp->sq.max_inline || weft_wr_is_rd_atomic(wqe->wr)) {
			/* ATOMIC_WRITE alone may come inline. */
			if (wqe->wr != WEFT_WR_ATOMIC_WRITE || length > qp->sq.max_inline)
				return weft_swqe_refuse(wqe, IB_WC_LOC_QP_OP_ERR);
		}
		memcpy(wqe->inline_data, dma->inline_data, length);
		return weft_swqe_set_length(qp, wqe, length);
	}
	if (num_sge > qp->sq.max_sge)
		return weft_swqe_refuse(wqe, IB_WC_LOC_QP_OP_ERR);
	for (i = 0; i < num_sge; i++) {
		wqe->sge[i].addr = READ_ONCE(dma->sge[i].addr);
		wqe->sge[i].length = READ_ONCE(dma->sge[i].length);
		wqe->sge[i].lkey = READ_ONCE(dma->sge[i].lkey);
		length += wqe->sge[i].length;
	}
	wqe->num_sge = num_sge;
	weft_swqe_set_length(qp, wqe, length);
}

static void weft_fetch_ud(struct weft_qp *qp, struct weft_swqe *wqe, const struct rxe_send_wr *wr)
{
	wqe->ud.qpn = READ_ONCE(wr->wr.ud.remote_qpn) & WEFT_QPN_MASK;
	wqe->ud.qkey = READ_ONCE(wr->wr.ud.remote_qkey);
	if (weft_ah_find(qp->dev, qp->ibqp.pd, READ_ONCE(wr->wr.ud.ah_num), &wqe->ud.av))
		weft_swqe_refuse(wqe, IB_WC_LOC_QP_OP_ERR);
}

static void weft_fetch_rdma(struct weft_swqe *wqe, const struct rxe_send_wr *wr)
{
	if (wqe->wr == WEFT_WR_COMPARE_SWAP || wqe->wr == WEFT_WR_FETCH_ADD) {
		wqe->remote_addr = READ_ONCE(wr->wr.atomic.remote_addr);
		wqe->compare_add = READ_ONCE(wr->wr.atomic.compare_add);
		wqe->swap = READ_ONCE(wr->wr.atomic.swap);
		wqe->rkey = READ_ONCE(wr->wr.atomic.rkey);
	} else {
		wqe->remote_addr = READ_ONCE(wr->wr.rdma.remote_addr);
		wqe->rkey = READ_ONCE(wr->wr.rdma.rkey);
	}
}

static void weft_fetch_bind(struct weft_swqe *wqe, const struct rxe_send_wr *wr)
{
	wqe->bind.mw_rkey = READ_ONCE(wr->wr.mw.mw_rkey);
	wqe->bind.new_rkey = READ_ONCE(wr->wr.mw.rkey);
	wqe->bind.mr_lkey = READ_ONCE(wr->wr.mw.mr_lkey);
	wqe->bind.addr = READ_ONCE(wr->wr.mw.addr);
	wqe->bind.length = READ_ONCE(wr->wr.mw.length);
	wqe->bind.access = READ_ONCE(wr->wr.mw.access);
}

/* The rest is set by what the opcode has use for. */
static void weft_swqe_begin(struct weft_swqe *wqe, u64 wr_id, u32 opcode, u32 flags)
{
	wqe->wr_id = wr_id;
	wqe->opcode = opcode;
	wqe->local = WEFT_LOCAL_NONE;
	wqe->flags = flags;
	wqe->length = 0;
	wqe->offset = 0;
	wqe->status = IB_WC_SUCCESS;
	wqe->started = false;
	wqe->rd_atomic = false;
	wqe->done = false;
	wqe->num_sge = 0;
}

/* Copy the slot at sq.fetch. */
static void weft_sq_fetch(struct weft_qp *qp)
{
	struct weft_sq *sq = &qp->sq;
	struct weft_swqe *wqe = weft_sq_wqe(qp, sq->producer);
	const struct rxe_send_wqe *slot = weft_ring_slot(sq->ring, sq->fetch);
	u32 ex = READ_ONCE(slot->wr.ex.invalidate_rkey);

	weft_swqe_begin(wqe, READ_ONCE(slot->wr.wr_id), READ_ONCE(slot->wr.opcode),
			READ_ONCE(slot->wr.send_flags));
	wqe->imm = (__force __be32)ex;
	wqe->inv_rkey = ex;
	sq->fetch = (sq->fetch + 1) & sq->ring->mask;
	WRITE_ONCE(sq->producer, sq->producer + 1);

	if (!weft_swqe_classify(qp, wqe)) {
		weft_count(qp->dev, send_queue_invalid);
		return weft_swqe_refuse(wqe, IB_WC_LOC_QP_OP_ERR);
	}
	if (wqe->local == WEFT_LOCAL_BIND_MW)
		return weft_fetch_bind(wqe, &slot->wr);
	if (wqe->local != WEFT_LOCAL_NONE)
		return;
	weft_fetch_payload(qp, wqe, slot);
	if (!wqe->done && qp->transport == WEFT_UD)
		weft_fetch_ud(qp, wqe, &slot->wr);
	else if (!wqe->done)
		weft_fetch_rdma(wqe, &slot->wr);
	if (wqe->done)
		weft_count(qp->dev, send_queue_invalid);
}

struct weft_swqe *weft_sq_next(struct weft_qp *qp)
{
	struct weft_sq *sq = &qp->sq;
	u32 filled;

	/* Pairs with the release in weft_post_one(). */
	if (qp->req.cur != smp_load_acquire(&sq->producer))
		return weft_sq_wqe(qp, qp->req.cur);
	if (!sq->ring)
		return NULL;
	/* Pairs with the release of the user's post. */
	filled = (smp_load_acquire(&sq->ring->buf->producer_index) - sq->fetch) & sq->ring->mask;
	/* A scribbled index can claim more than there is room for. */
	if (!filled || sq->producer - qp->req.tail > sq->mask)
		return NULL;
	weft_sq_fetch(qp);
	return weft_sq_wqe(qp, qp->req.cur);
}

/* --- kernel users --- */

static int weft_post_payload(struct weft_qp *qp, struct weft_swqe *wqe, const struct ib_send_wr *wr)
{
	u64 length = 0;
	u32 offset = 0;
	int i;

	if (wr->num_sge > qp->sq.max_sge || wr->num_sge < 0)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (!weft_swqe_length_ok(qp, wqe, length))
		return -EINVAL;
	wqe->length = length;
	if (!(wqe->flags & IB_SEND_INLINE)) {
		memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
		wqe->num_sge = wr->num_sge;
		return 0;
	}
	if (length > qp->sq.max_inline)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(wqe->inline_data + offset, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		offset += wr->sg_list[i].length;
	}
	return 0;
}

static void weft_post_reg(struct weft_swqe *wqe, const struct ib_send_wr *wr)
{
	wqe->reg.mr = weft_from_ibmr(reg_wr(wr)->mr);
	wqe->reg.key = reg_wr(wr)->key;
	wqe->reg.access = reg_wr(wr)->access;
}

static int weft_post_ud(struct weft_qp *qp, struct weft_swqe *wqe, const struct ib_send_wr *wr)
{
	struct ib_ah *ah = ud_wr(wr)->ah;

	if (!ah)
		return -EINVAL;
	wqe->ud.qpn = ud_wr(wr)->remote_qpn & WEFT_QPN_MASK;
	wqe->ud.qkey = ud_wr(wr)->remote_qkey;
	wqe->ud.pkey_index = ud_wr(wr)->pkey_index;
	weft_ah_get_av(ah, &wqe->ud.av);
	return 0;
}

static void weft_post_rdma(struct weft_swqe *wqe, const struct ib_send_wr *wr)
{
	if (wqe->wr == WEFT_WR_COMPARE_SWAP || wqe->wr == WEFT_WR_FETCH_ADD) {
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		wqe->rkey = atomic_wr(wr)->rkey;
	} else if (wqe->wr != WEFT_WR_SEND && wqe->wr != WEFT_WR_SEND_IMM &&
		   wqe->wr != WEFT_WR_SEND_INV) {
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
	}
}

/* post_lock */
static int weft_post_one(struct weft_qp *qp, const struct ib_send_wr *wr)
{
	struct weft_sq *sq = &qp->sq;
	struct weft_swqe *wqe;
	int err = 0;

	/* Pairs with the release in weft_requester_reap(): the slot's old content was used. */
	if (sq->producer - smp_load_acquire(&qp->req.tail) >= sq->max_wr)
		return -ENOMEM;
	wqe = weft_sq_wqe(qp, sq->producer);
	weft_swqe_begin(wqe, wr->wr_id, wr->opcode, wr->send_flags);
	wqe->imm = wr->ex.imm_data;
	wqe->inv_rkey = wr->ex.invalidate_rkey;
	if (!weft_swqe_classify(qp, wqe))
		return -EINVAL;
	if (wqe->local == WEFT_LOCAL_REG_MR) {
		weft_post_reg(wqe, wr);
	} else if (wqe->local == WEFT_LOCAL_NONE) {
		err = weft_post_payload(qp, wqe, wr);
		if (!err && qp->transport == WEFT_UD)
			err = weft_post_ud(qp, wqe, wr);
		else if (!err)
			weft_post_rdma(wqe, wr);
	}
	if (err)
		return err;
	/* Pairs with the acquire in weft_sq_next(). */
	smp_store_release(&sq->producer, sq->producer + 1);
	return 0;
}

static int weft_post_send_kernel(struct weft_qp *qp, const struct ib_send_wr *wr,
				 const struct ib_send_wr **bad)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->sq.post_lock, flags);
	for (; wr; wr = wr->next) {
		err = weft_post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->sq.post_lock, flags);
	weft_qp_schedule(qp);
	return err;
}

/* Packets that a doorbell sends before it leaves the rest to the receive queue's NAPI. */
enum { WEFT_DOORBELL_BUDGET = 256 };

int weft_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (state < IB_QPS_RTS) {
		*bad = wr;
		return -EINVAL;
	}
	if (!qp->is_user)
		return weft_post_send_kernel(qp, wr, bad);

	local_bh_disable();
	if (!weft_rx_doorbell_begin(qp) || weft_requester_run(qp, WEFT_DOORBELL_BUDGET))
		weft_qp_schedule(qp);
	weft_rx_doorbell_end();
	local_bh_enable();
	return 0;
}

/* --- set up --- */

int weft_sq_init(struct weft_qp *qp, const struct ib_qp_cap *cap, struct ib_ucontext *ucontext,
		 struct mminfo __user *info)
{
	struct weft_sq *sq = &qp->sq;
	u32 num = max_t(u32, cap->max_send_wr, 1);
	u32 area;

	sq->max_sge = max_t(u32, cap->max_send_sge, 1);
	area = max_t(u32, sq->max_sge * sizeof(struct ib_sge), cap->max_inline_data);
	area = roundup(area, sizeof(struct ib_sge));
	sq->max_inline = area;
	sq->max_sge = min_t(u32, area / sizeof(struct ib_sge), WEFT_MAX_SGE);
	spin_lock_init(&sq->post_lock);

	if (ucontext) {
		sq->ring = weft_ring_alloc(ucontext, &num, sizeof(struct rxe_send_wqe) + area,
					   info);
		if (IS_ERR(sq->ring)) {
			int err = PTR_ERR(sq->ring);

			sq->ring = NULL;
			return err;
		}
		sq->mask = sq->ring->mask;
	} else {
		sq->mask = roundup_pow_of_two(num) - 1;
	}
	sq->max_wr = num;
	sq->stride = ALIGN(sizeof(struct weft_swqe) + area, SMP_CACHE_BYTES);
	sq->wqes = kvcalloc(sq->mask + 1, sq->stride, GFP_KERNEL_ACCOUNT);
	if (!sq->wqes) {
		if (sq->ring)
			weft_ring_free(sq->ring);
		sq->ring = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Forget what is posted. Both QP locks, or nobody else. */
void weft_sq_reset(struct weft_qp *qp)
{
	struct weft_sq *sq = &qp->sq;

	weft_tx_flow_give_up(qp->flow);
	qp->req.tail = sq->producer;
	qp->req.cur = sq->producer;
	if (!sq->ring)
		return;
	sq->fetch = READ_ONCE(sq->ring->buf->producer_index) & sq->ring->mask;
	sq->ring->index = sq->fetch;
	/* Pairs with the acquire of the user's post: the slots are free. */
	smp_store_release(&sq->ring->buf->consumer_index, sq->fetch);
}

void weft_sq_uninit(struct weft_qp *qp)
{
	if (qp->sq.ring)
		weft_ring_free(qp->sq.ring);
	kvfree(qp->sq.wqes);
}
