// SPDX-License-Identifier: GPL-2.0
/*
 * Requester: from posted work requests to packets.
 *
 * tail <= cur <= producer: what is before cur was sent and waits for its acknowledgment (RC) or is
 * complete; the request at cur has sent wqe->offset bytes. A resend only moves cur and the offsets
 * back: a packet's PSN follows from its request's first PSN and its offset, so it is the same each
 * time.
 *
 * WQEs complete strictly in order: whoever ends one marks it done, weft_requester_reap() reports
 * the oldest ones.
 */
#include <linux/ktime.h>
#include <weft/ack.h>

#include "burst.h"
#include "qp.h"
#include "rx.h"

static const struct weft_wc_map {
	enum ib_wc_opcode opcode;
} weft_wc_map[] = {
	[IB_WR_RDMA_WRITE] = { IB_WC_RDMA_WRITE },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { IB_WC_RDMA_WRITE },
	[IB_WR_SEND] = { IB_WC_SEND },
	[IB_WR_SEND_WITH_IMM] = { IB_WC_SEND },
	[IB_WR_SEND_WITH_INV] = { IB_WC_SEND },
	[IB_WR_RDMA_READ] = { IB_WC_RDMA_READ },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { IB_WC_COMP_SWAP },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { IB_WC_FETCH_ADD },
	[IB_WR_LOCAL_INV] = { IB_WC_LOCAL_INV },
	[IB_WR_REG_MR] = { IB_WC_REG_MR },
	[IB_WR_BIND_MW] = { IB_WC_BIND_MW },
	/* ATOMIC_WRITE, whose completion opcode is 9 in the uverbs ABI. */
	[15] = { 9 },
};

static u32 weft_wc_byte_len(const struct weft_swqe *wqe)
{
	switch (wqe->wr) {
	case WEFT_WR_READ:
		return wqe->length;
	case WEFT_WR_COMPARE_SWAP:
	case WEFT_WR_FETCH_ADD:
		return sizeof(u64);
	default:
		return 0;
	}
}

/* Completion of a WQE that is done. False: none is wanted. */
static bool weft_send_wc(struct weft_qp *qp, const struct weft_swqe *wqe, struct ib_wc *wc)
{
	if (wqe->status == IB_WC_SUCCESS && !(wqe->flags & IB_SEND_SIGNALED) && !qp->sq_sig_all)
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wqe->wr_id;
	wc->status = wqe->status;
	wc->qp = &qp->ibqp;
	if ((u32)wqe->opcode < ARRAY_SIZE(weft_wc_map))
		wc->opcode = weft_wc_map[wqe->opcode].opcode;
	if (wqe->status == IB_WC_SUCCESS)
		wc->byte_len = weft_wc_byte_len(wqe);
	else if (wqe->status == IB_WC_WR_FLUSH_ERR)
		weft_count(qp->dev, flushed_wrs);
	else
		weft_count(qp->dev, req_cqe_error);
	return true;
}

bool weft_requester_reap(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	enum ib_wc_status status;
	struct weft_swqe *wqe;
	struct ib_wc wc __uninitialized; /* most requests want none */
	bool wanted;

	/* Pairs with the release in weft_post_one(): the slot's content is the new one. */
	while (req->tail != smp_load_acquire(&qp->sq.producer)) {
		wqe = weft_sq_wqe(qp, req->tail);
		if (!wqe->done)
			break;
		if (wqe->rd_atomic)
			req->rd_atomic--;
		status = wqe->status;
		wanted = weft_send_wc(qp, wqe, &wc);
		if (req->cur == req->tail)
			req->cur++;
		/* Who sees the completion may post at once: the slot is free before. */
		smp_store_release(&req->tail, req->tail + 1);
		if (qp->sq.ring)
			weft_ring_consume(qp->sq.ring);
		if (wanted && weft_cq_post(qp->scq, &wc, false))
			return false;
		if (status != IB_WC_SUCCESS && status != IB_WC_WR_FLUSH_ERR)
			return false;
	}
	return true;
}

void weft_requester_rewind(struct weft_qp *qp, u32 psn)
{
	struct weft_req *req = &qp->req;
	/* Pairs with the release in weft_post_one(). */
	u32 end = smp_load_acquire(&qp->sq.producer);
	struct weft_swqe *wqe;
	bool found = false;
	u32 i;

	if (req->board) {
		weft_board_find_all(req->board);
		weft_board_distrust(req->board);
	}
	for (i = req->tail; i != end; i++) {
		wqe = weft_sq_wqe(qp, i);
		if (!wqe->started)
			break;
		if (wqe->done || wqe->local != WEFT_LOCAL_NONE)
			continue;
		if (found) {
			wqe->offset = 0;
			continue;
		}
		if (weft_psn_before(wqe->last_psn, psn))
			continue;
		if (weft_psn_before(psn, wqe->first_psn))
			psn = wqe->first_psn;
		wqe->offset = weft_req_offset_of_psn(wqe->wr, wqe->first_psn, psn, qp->mtu,
						     wqe->length);
		req->cur = i;
		found = true;
	}
}

/*
 * The question is an empty WRITE under the PSN before the oldest that is out. The peer is past that
 * one, or began behind it, so it takes the packet for a duplicate, looks at neither key nor length,
 * and answers how far it is.
 */
bool weft_requester_pull(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	struct weft_path path;
	struct weft_pkt pkt;

	if (qp->transport != WEFT_RC || req->una == req->max_psn || weft_req_waits(req))
		return true;
	weft_pkt_init(&pkt, WEFT_RC | WEFT_WRITE_ONLY, qp->attr.dest_qp_num,
		      weft_psn_add(req->una, WEFT_PSN_MASK));
	pkt.resv6 = WEFT_RESV6_WEFT;
	pkt.ackreq = true;
	pkt.va = 0;
	pkt.rkey = 0;
	pkt.dmalen = 0;
	if (weft_path_find(qp, &qp->av, pkt.qpn, &req->path, &path))
		weft_count(qp->dev, no_route);
	else if (!weft_packet_send(qp, &path, &pkt, NULL))
		return false;
	weft_count(qp->dev, tail_loss_probes);
	req->asked = req->max_psn;
	req->last_progress_ns = ktime_get_ns();
	return true;
}

/* --- one request --- */

static void weft_local_execute(struct weft_qp *qp, struct weft_swqe *wqe)
{
	int err;

	switch (wqe->local) {
	case WEFT_LOCAL_INV:
		err = weft_key_invalidate(qp, wqe->inv_rkey);
		break;
	case WEFT_LOCAL_REG_MR:
		err = weft_mr_fast_register(qp, wqe->reg.mr, wqe->reg.key, wqe->reg.access);
		break;
	default:
		err = weft_mw_bind(qp, &wqe->bind);
		break;
	}
	wqe->started = true;
	wqe->status = !err				 ? IB_WC_SUCCESS
		      : wqe->local == WEFT_LOCAL_BIND_MW ? IB_WC_MW_BIND_ERR
							 : IB_WC_LOC_QP_OP_ERR;
	wqe->done = true;
}

/* May the request at cur begin? Its PSNs are assigned if so. */
static bool weft_req_start(struct weft_qp *qp, struct weft_swqe *wqe)
{
	struct weft_req *req = &qp->req;
	bool rd_atomic = weft_wr_is_rd_atomic(wqe->wr);
	u32 count;

	if ((wqe->flags & IB_SEND_FENCE) && req->rd_atomic)
		return false;
	/* A resend needs the key: LOCAL_INV waits for all before it (IBTA 10.6.5.1). */
	if (wqe->local == WEFT_LOCAL_INV)
		return req->tail == req->cur;
	if (wqe->local != WEFT_LOCAL_NONE)
		return true;
	if (rd_atomic && req->rd_atomic >= max_t(u32, qp->attr.max_rd_atomic, 1))
		return false;
	count = weft_wr_psn_count(wqe->wr, wqe->length, qp->mtu);
	/* The past and the future of a PSN are half a circle each. */
	if (qp->transport == WEFT_RC && weft_psn_diff(req->psn, req->una) + count >= BIT(23))
		return false;
	wqe->first_psn = req->psn;
	wqe->last_psn = weft_psn_add(req->psn, count - 1);
	wqe->resp_psn = wqe->first_psn;
	req->psn = weft_psn_add(req->psn, count);
	wqe->rd_atomic = rd_atomic;
	req->rd_atomic += rd_atomic;
	wqe->started = true;
	weft_count(qp->dev, rdma_sends);
	return true;
}

/* Has the request begun, or does it now? */
static bool weft_req_may_begin(struct weft_qp *qp, struct weft_swqe *wqe)
{
	if (wqe->started)
		return true;
	return qp->state != IB_QPS_SQD && (wqe->done || weft_req_start(qp, wqe));
}

void weft_ack_timer_before(struct weft_qp *qp, u64 ns)
{
	struct weft_req *req = &qp->req;

	if (hrtimer_is_queued(&req->ack_timer) && req->ack_timer_ns <= ns)
		return;
	req->ack_timer_ns = ns;
	hrtimer_start(&req->ack_timer, ns_to_ktime(ns), HRTIMER_MODE_ABS_SOFT);
}

/*
 * The timer is never stopped by an acknowledgment: when it fires it looks at last_progress_ns.
 * @now: if it is known, else 0.
 */
static void weft_ack_timer_start(struct weft_qp *qp, bool first, u64 now)
{
	struct weft_req *req = &qp->req;
	u64 timeout = weft_ack_timeout_ns(qp->attr.timeout);
	bool idle = !hrtimer_is_queued(&req->ack_timer);

	if (!timeout || !(first || idle))
		return;
	now = now ?: ktime_get_ns();
	if (first)
		req->last_progress_ns = now;
	if (idle)
		weft_ack_timer_before(qp, now + timeout);
}

/*
 * PSNs that SENDs and WRITEs may still send before the oldest must be acknowledged. A resend may
 * begin before una, if the acknowledgment came while it was held up.
 */
static u32 weft_req_window(const struct weft_qp *qp, u32 psn)
{
	s32 window = qp->req.board ? qp->req.rtt.window : WEFT_WINDOW_MIN;
	s32 out = weft_psn_diff(psn, qp->req.una);

	return out < window ? window - out : 0;
}

/* Note that @num packets from @psn on were sent. @waited: for an answer before. */
static void weft_req_sent(struct weft_qp *qp, const struct weft_swqe *wqe, u32 psn, u32 num,
			  bool last, bool waited)
{
	u32 next = last ? weft_psn_add(wqe->last_psn, 1) : weft_psn_add(psn, num);
	struct weft_req *req = &qp->req;
	s32 again = weft_psn_diff(req->max_psn, psn);
	bool first = req->una == req->max_psn;
	u64 now = 0;

	if (again > 0)
		weft_count_add(qp->dev, retransmitted_pkts, min_t(u32, again, num));
	if (weft_psn_before(req->max_psn, next))
		req->max_psn = next;
	if (wqe->rd_atomic)
		weft_req_asked(req, wqe->last_psn);
	/* The answer has its time from the question on. */
	first = first || (!waited && weft_req_waits(req));
	if (req->board) {
		now = ktime_get_ns();
		weft_recovery_sent(qp, psn, num, next, now);
	}
	weft_ack_timer_start(qp, first, now);
}

/* Send the next packets of the request. False: no memory, try later. */
static bool weft_req_send(struct weft_qp *qp, struct weft_swqe *wqe)
{
	u32 psn = weft_psn_add(wqe->first_psn, wqe->offset / qp->mtu);
	bool waited = weft_req_waits(&qp->req);
	bool last;
	int num;

	if (qp->transport == WEFT_UD && wqe->length > qp->mtu) {
		/* The netdev's MTU has shrunk since the WQE was checked. */
		wqe->status = IB_WC_LOC_LEN_ERR;
		wqe->done = true;
		return true;
	}
	num = weft_segment_send(qp, wqe, psn, weft_req_window(qp, psn));
	if (num == -ENOMEM)
		return false;
	if (num < 0) {
		wqe->status = IB_WC_LOC_PROT_ERR;
		wqe->done = true;
		return true;
	}
	/* A READ asks for all that is left at once. */
	last = weft_wr_is_rd_atomic(wqe->wr) || wqe->length - wqe->offset <= num * qp->mtu;
	if (qp->transport == WEFT_RC)
		weft_req_sent(qp, wqe, psn, num, last, waited);
	if (!last) {
		wqe->offset += num * qp->mtu;
		return true;
	}
	if (!weft_wr_is_rd_atomic(wqe->wr))
		wqe->offset = wqe->length;
	qp->req.cur++;
	if (qp->transport != WEFT_RC) {
		wqe->status = IB_WC_SUCCESS;
		wqe->done = true;
	}
	return true;
}

/* Is the request held up by the window or by what is queued below? */
static bool weft_req_blocked(struct weft_qp *qp, const struct weft_swqe *wqe)
{
	u32 psn = weft_psn_add(wqe->first_psn, wqe->offset / qp->mtu);

	if (qp->transport == WEFT_RC && !weft_wr_is_rd_atomic(wqe->wr) && !weft_req_window(qp, psn))
		return true;
	return weft_tx_full(qp->flow);
}

/* SQD: what was begun is complete, what was not waits. */
static void weft_sq_drained(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;

	if (qp->state != IB_QPS_SQD || req->drained || req->tail != req->cur)
		return;
	/* Pairs with the release in weft_post_one(). */
	if (req->tail != smp_load_acquire(&qp->sq.producer) && weft_sq_wqe(qp, req->cur)->started)
		return;
	qp->req.drained = true;
	qp->attr.sq_draining = 0;
	if (qp->attr.en_sqd_async_notify)
		weft_qp_async_event(qp, IB_EVENT_SQ_DRAINED);
}

/* req.lock. *@failed: a WQE failed. True: the budget ended it. */
static bool weft_requester_loop(struct weft_qp *qp, int budget, bool *failed)
{
	struct weft_req *req = &qp->req;
	struct weft_swqe *wqe;
	int err;

	for (;;) {
		if (req->rnr_wait)
			break;
		if (weft_recovery_due(qp)) {
			if (!budget--)
				return true;
			err = weft_recovery_resend(qp);
			if (err == -EBUSY)
				break;
			if (err == -ENOMEM)
				return true;
			if (!err || weft_requester_reap(qp))
				continue;
			*failed = true;
			return false;
		}
		wqe = weft_sq_next(qp);
		if (wqe && !budget--)
			return true;
		if (!wqe || !weft_req_may_begin(qp, wqe)) {
			/* Somebody waits for what is out. */
			if ((wqe || qp->state == IB_QPS_SQD) && !weft_requester_pull(qp))
				return true;
			break;
		}
		if (!wqe->done && wqe->local != WEFT_LOCAL_NONE)
			weft_local_execute(qp, wqe);
		if (wqe->done) {
			/* It completes when it is the oldest. */
			if (req->tail != req->cur && !weft_req_is_patient(qp, wqe) &&
			    !weft_requester_pull(qp))
				return true;
			/* Nothing goes out behind a request that fails. */
			if (wqe->status == IB_WC_SUCCESS)
				req->cur++;
			else if (req->tail != req->cur)
				break;
		} else {
			if (weft_req_blocked(qp, wqe))
				break;
			if (!weft_req_send(qp, wqe))
				return true;
		}
		/* Of a slot behind the last one it may say anything: nothing is reaped then. */
		if (weft_sq_wqe(qp, req->tail)->done && !weft_requester_reap(qp)) {
			*failed = true;
			return false;
		}
	}
	weft_sq_drained(qp);
	return false;
}

bool weft_requester_run(struct weft_qp *qp, int budget)
{
	bool failed = false;
	bool more = false;

	spin_lock(&qp->req.lock);
	rcu_read_lock();
	if (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD)
		more = weft_requester_loop(qp, budget, &failed);
	rcu_read_unlock();
	spin_unlock(&qp->req.lock);
	if (failed)
		weft_qp_error(qp);
	else if (READ_ONCE(qp->state) == IB_QPS_ERR)
		weft_qp_flush(qp);
	return more;
}
