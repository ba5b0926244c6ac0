// SPDX-License-Identifier: GPL-2.0
/*
 * Responder of RC and UC: executes the requests that packets carry.
 *
 * weft_resp_check() of the core says whether the packet is the expected one and well formed; here
 * keys are checked, receive WQEs taken, bytes placed. Nothing is accepted (weft_resp_accept())
 * before all of a packet's effect has happened, so a packet that met "receiver not ready" can come
 * again.
 *
 * Answers: positive acknowledgments are merged and go out with weft_responder_run() at the end of
 * the batch, behind the READ responses and atomic answers that precede them.
 */
#include <weft/ack.h>

#include "qp.h"
#include "rx.h"

/* How a packet's execution ended. */
enum weft_exec {
	WEFT_EXEC_OK,
	WEFT_EXEC_RNR,	       /* no receive WQE */
	WEFT_EXEC_ACCESS,      /* remote access violation */
	WEFT_EXEC_INVALID,     /* invalid request */
	WEFT_EXEC_OPERATIONAL, /* our own receive WQE is at fault */
};

/* Make sure that the open message has a receive WQE. */
static enum weft_exec weft_resp_take_rwqe(struct weft_qp *qp)
{
	struct weft_resp *resp = &qp->resp;
	int err;

	if (resp->have_rwqe)
		return WEFT_EXEC_OK;
	err = qp->srq ? weft_srq_pop(qp->srq, &resp->rwqe) : weft_rq_pop(&qp->rq, &resp->rwqe);
	if (err == -ENOENT)
		return WEFT_EXEC_RNR;
	resp->have_rwqe = true;
	if (!err)
		return WEFT_EXEC_OK;
	weft_count(qp->dev, recv_queue_invalid);
	return WEFT_EXEC_OPERATIONAL;
}

/* False: the CQ takes no more. */
static bool weft_resp_complete(struct weft_qp *qp, enum ib_wc_status status,
			       const struct weft_pkt *pkt)
{
	struct weft_resp *resp = &qp->resp;
	struct ib_wc wc = {
		.wr_id = resp->rwqe.wr_id,
		.status = status,
		.qp = &qp->ibqp,
		.src_qp = qp->attr.dest_qp_num,
		.port_num = WEFT_PORT,
	};

	resp->have_rwqe = false;
	if (status != IB_WC_SUCCESS) {
		weft_count(qp->dev, resp_cqe_error);
		return !weft_cq_post(qp->rcq, &wc, true);
	}
	wc.opcode = pkt->op->flags & WEFT_OP_WRITE ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	wc.byte_len = resp->offset;
	if (pkt->op->flags & WEFT_OP_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = pkt->imm;
	} else if (pkt->op->flags & WEFT_OP_IETH) {
		wc.wc_flags |= IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = pkt->rkey;
	}
	return !weft_cq_post(qp->rcq, &wc, pkt->solicited);
}

static enum weft_exec weft_exec_send(struct weft_qp *qp, const struct weft_source *src,
				     const struct weft_pkt *pkt)
{
	struct weft_resp *resp = &qp->resp;
	enum weft_exec ret;

	if (pkt->op->flags & WEFT_OP_START)
		resp->offset = 0;
	ret = weft_resp_take_rwqe(qp);
	if (ret != WEFT_EXEC_OK)
		return ret;
	if ((u64)resp->offset + pkt->payload_len > resp->rwqe.length)
		return WEFT_EXEC_INVALID;
	if (weft_source_to_sge(&resp->keys, resp->rwqe.sge, resp->rwqe.num_sge, resp->offset, src,
			       pkt->payload_len))
		return WEFT_EXEC_OPERATIONAL;
	if ((pkt->op->flags & WEFT_OP_IETH) && weft_key_remote_invalidate(qp, pkt->rkey))
		return WEFT_EXEC_ACCESS;
	resp->offset += pkt->payload_len;
	return WEFT_EXEC_OK;
}

static enum weft_exec weft_exec_write(struct weft_qp *qp, const struct weft_source *src,
				      const struct weft_pkt *pkt)
{
	struct weft_resp *resp = &qp->resp;
	struct weft_mr *mr = NULL;
	enum weft_exec ret;
	u64 va = resp->va + resp->offset;
	u32 rkey = resp->rkey;
	u32 offset = resp->offset;

	if (pkt->op->flags & WEFT_OP_START) {
		va = pkt->va;
		rkey = pkt->rkey;
		offset = 0;
		/* The whole range is checked before the first byte is placed. */
		if (pkt->dmalen) {
			mr = weft_rkey_find(qp, rkey, va, pkt->dmalen, IB_ACCESS_REMOTE_WRITE);
			if (!mr)
				return WEFT_EXEC_ACCESS;
		}
	}
	if (pkt->op->flags & WEFT_OP_RECV_WQE) {
		ret = weft_resp_take_rwqe(qp);
		if (ret != WEFT_EXEC_OK)
			return ret;
	}
	if (pkt->payload_len) {
		if (!mr)
			mr = weft_rkey_find(qp, rkey, va, pkt->payload_len, IB_ACCESS_REMOTE_WRITE);
		if (!mr)
			return WEFT_EXEC_ACCESS;
		if (!src->placed)
			weft_source_to_mr(mr, va, src, pkt->payload_len);
		else if (src->placed->va != va || src->placed->rkey != rkey)
			return WEFT_EXEC_INVALID; /* by another RETH than this one */
	}
	if (pkt->op->flags & WEFT_OP_START) {
		resp->va = va;
		resp->rkey = rkey;
		weft_placement_begins(qp, pkt);
	}
	resp->offset = offset + pkt->payload_len;
	return WEFT_EXEC_OK;
}

static enum weft_exec weft_exec_read(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	struct weft_res *res;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ))
		return WEFT_EXEC_INVALID;
	if (pkt->dmalen &&
	    !weft_rkey_find(qp, pkt->rkey, pkt->va, pkt->dmalen, IB_ACCESS_REMOTE_READ))
		return WEFT_EXEC_ACCESS;
	res = weft_res_new(qp, pkt, WEFT_RES_READ);
	return res ? WEFT_EXEC_OK : WEFT_EXEC_INVALID;
}

static enum weft_exec weft_exec_atomic(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	struct weft_res *res;
	struct weft_mr *mr;
	u64 orig;
	int err;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC))
		return WEFT_EXEC_INVALID;
	mr = weft_rkey_find(qp, pkt->rkey, pkt->va, sizeof(u64), IB_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		return WEFT_EXEC_ACCESS;
	res = weft_res_new(qp, pkt, WEFT_RES_ATOMIC);
	if (!res)
		return WEFT_EXEC_INVALID;
	if (pkt->opcode == (WEFT_RC | WEFT_COMPARE_SWAP))
		err = weft_mr_compare_swap(mr, pkt->va, pkt->compare, pkt->swap_add, &orig);
	else
		err = weft_mr_fetch_add(mr, pkt->va, pkt->swap_add, &orig);
	res->orig = orig;
	return err ? WEFT_EXEC_INVALID : WEFT_EXEC_OK;
}

static enum weft_exec weft_exec_atomic_write(struct weft_qp *qp, const struct weft_source *src,
					     const struct weft_pkt *pkt)
{
	struct weft_mr *mr;
	u64 value;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE))
		return WEFT_EXEC_INVALID;
	mr = weft_rkey_find(qp, pkt->rkey, pkt->va, sizeof(value), IB_ACCESS_REMOTE_WRITE);
	if (!mr)
		return WEFT_EXEC_ACCESS;
	weft_source_read(src, &value, sizeof(value));
	if (!weft_res_new(qp, pkt, WEFT_RES_ATOMIC_WRITE))
		return WEFT_EXEC_INVALID;
	return weft_mr_atomic_write(mr, pkt->va, value) ? WEFT_EXEC_INVALID : WEFT_EXEC_OK;
}

static enum weft_exec weft_resp_execute(struct weft_qp *qp, const struct weft_source *src,
					const struct weft_pkt *pkt)
{
	u32 flags = pkt->op->flags;

	if (flags & WEFT_OP_SEND)
		return weft_exec_send(qp, src, pkt);
	if (flags & WEFT_OP_ATOMIC_WRITE)
		return weft_exec_atomic_write(qp, src, pkt);
	if (flags & WEFT_OP_WRITE)
		return qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE
			       ? weft_exec_write(qp, src, pkt)
			       : WEFT_EXEC_INVALID;
	if (flags & WEFT_OP_READ)
		return weft_exec_read(qp, pkt);
	return weft_exec_atomic(qp, pkt);
}

/* --- outcomes; resp.lock --- */

static void weft_resp_nak(struct weft_qp *qp, enum weft_nak_code nak, bool fatal)
{
	weft_count(qp->dev, nak_sent);
	weft_responder_refuse(qp, weft_syndrome_nak(nak), fatal);
}

static void weft_resp_ack(struct weft_qp *qp, u32 psn)
{
	qp->resp.ack_pending = true;
	qp->resp.ack_psn = psn;
}

/*
 * The peer's request or our receive WQE is at fault: answer, complete the WQE, and the QP is
 * over.
 */
static void weft_resp_fail(struct weft_qp *qp, enum weft_exec ret, const struct weft_pkt *pkt)
{
	enum ib_wc_status status = IB_WC_LOC_QP_OP_ERR;
	enum weft_nak_code nak = WEFT_NAK_REMOTE_OPERATIONAL;
	enum ib_event_type event = IB_EVENT_QP_FATAL;

	if (ret == WEFT_EXEC_ACCESS) {
		nak = WEFT_NAK_REMOTE_ACCESS;
		status = IB_WC_LOC_ACCESS_ERR;
		event = IB_EVENT_QP_ACCESS_ERR;
		weft_count(qp->dev, resp_remote_access_errors);
	} else if (ret == WEFT_EXEC_INVALID) {
		nak = WEFT_NAK_INVALID_REQUEST;
		event = IB_EVENT_QP_REQ_ERR;
		status = pkt->op->flags & WEFT_OP_SEND ? IB_WC_LOC_LEN_ERR : IB_WC_REM_INV_REQ_ERR;
	}
	if (qp->resp.have_rwqe)
		weft_resp_complete(qp, status, pkt);
	else
		weft_qp_async_event(qp, event);
	if (qp->transport == WEFT_RC)
		weft_resp_nak(qp, nak, true);
	else
		qp->resp.broken = true;
}

/* UC: the rest of a message that cannot be taken is passed over without a word (IBTA 9.8.2.2). */
static void weft_resp_skip_message(struct weft_qp *qp)
{
	struct weft_resp_state *st = &qp->resp.st;

	st->msg_flags = 0;
	st->skip_message = true;
	st->epsn = weft_psn_add(st->epsn, 1);
}

static void weft_resp_not_ready(struct weft_qp *qp)
{
	if (qp->transport == WEFT_UC) {
		weft_count(qp->dev, rx_drop_no_recv_wqe);
		weft_resp_skip_message(qp);
		return;
	}
	weft_count(qp->dev, rnr_nak_sent);
	/*
	 * What follows in flight is out of sequence; no NAK for it until the expected one comes
	 * again.
	 */
	qp->resp.st.nak_pending = true;
	qp->resp.rnr = true;
	weft_responder_refuse(qp, weft_syndrome_rnr(qp->attr.min_rnr_timer), false);
}

static void weft_resp_done(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	weft_resp_accept(&qp->resp.st, qp->mtu, pkt);
	weft_placement_ends(&qp->resp, pkt);
	qp->resp.rnr = false;
	qp->resp.late = false; /* what was missing has come */
	if (pkt->op->flags & WEFT_OP_RECV_WQE && pkt->op->flags & WEFT_OP_END) {
		weft_count(qp->dev, rdma_recvs);
		if (!weft_resp_complete(qp, IB_WC_SUCCESS, pkt))
			qp->resp.broken = true;
	}
	if (qp->transport == WEFT_RC && pkt->ackreq &&
	    pkt->op->flags & (WEFT_OP_SEND | WEFT_OP_WRITE) &&
	    !(pkt->op->flags & WEFT_OP_ATOMIC_WRITE))
		weft_resp_ack(qp, pkt->psn);
}

static void weft_resp_duplicate(struct weft_qp *qp, const struct weft_source *src,
				const struct weft_pkt *pkt)
{
	weft_count(qp->dev, duplicate_request);
	if (pkt->op->flags & (WEFT_OP_READ | WEFT_OP_ATOMIC | WEFT_OP_ATOMIC_WRITE))
		weft_res_again(qp, pkt);
	else
		weft_resp_ack(qp, weft_psn_add(qp->resp.st.epsn, WEFT_PSN_MASK));
	weft_hold_duplicate(&qp->resp, src);
}

static void weft_resp_take(struct weft_qp *qp, const struct weft_source *src,
			   const struct weft_pkt *pkt)
{
	enum weft_exec ret = weft_resp_execute(qp, src, pkt);

	if (ret == WEFT_EXEC_OK)
		weft_resp_done(qp, pkt);
	else if (ret == WEFT_EXEC_RNR)
		weft_resp_not_ready(qp);
	else if (qp->transport == WEFT_UC && ret != WEFT_EXEC_OPERATIONAL)
		weft_resp_skip_message(qp);
	else
		weft_resp_fail(qp, ret, pkt);
}

static void weft_resp_packet(struct weft_qp *qp, const struct weft_source *src,
			     const struct weft_pkt *pkt)
{
	struct weft_resp_result res;

	res = weft_resp_check(&qp->resp.st, qp->transport, qp->mtu, pkt);
	if (res.lost) {
		weft_count(qp->dev, out_of_sequence);
		if (qp->transport == WEFT_RC && weft_hold_add(qp, src, pkt))
			return;
	}
	switch (res.verdict) {
	case WEFT_RESP_OK:
		weft_resp_take(qp, src, pkt);
		break;
	case WEFT_RESP_DUPLICATE:
		weft_resp_duplicate(qp, src, pkt);
		break;
	case WEFT_RESP_NAK:
		if (res.nak == WEFT_NAK_PSN_SEQUENCE)
			weft_resp_nak(qp, res.nak, false);
		else
			weft_resp_fail(qp, WEFT_EXEC_INVALID, pkt);
		break;
	case WEFT_RESP_DROP:
		break;
	}
}

static bool weft_resp_over(const struct weft_qp *qp)
{
	return qp->resp.broken || (qp->resp.late && qp->resp.late_fatal);
}

/* The packet, then what waited for it. */
static void weft_resp_run(struct weft_qp *qp, const struct weft_source *src,
			  const struct weft_pkt *pkt)
{
	struct weft_held *held = NULL;

	for (;;) {
		weft_resp_packet(qp, src, pkt);
		if (unlikely(held))
			weft_held_free(held);
		else if (likely(!qp->resp.hold.num))
			return;
		held = weft_resp_over(qp) ? NULL : weft_hold_pop(qp);
		if (!held)
			return;
		src = &held->src;
		pkt = &held->pkt;
	}
}

void weft_responder_receive(struct weft_qp *qp, const struct weft_source *src,
			    const struct weft_pkt *pkt)
{
	struct weft_resp *resp = &qp->resp;
	bool broken, due;

	spin_lock(&resp->lock);
	if (weft_resp_over(qp) || qp->state < IB_QPS_RTR || qp->state > IB_QPS_SQE) {
		weft_count(qp->dev, rx_drop_qp_state);
		spin_unlock(&resp->lock);
		return;
	}
	if (qp->state == IB_QPS_RTR && !resp->comm_est) {
		resp->comm_est = true;
		weft_qp_async_event(qp, IB_EVENT_COMM_EST);
	}
	if (!src->burst)
		weft_peer_packet(&resp->peer, pkt->resv6);
	weft_resp_run(qp, src, pkt);
	/* Until the receiver is ready the peer need not know what else is here. */
	if (resp->rnr)
		resp->hold.report = false;
	broken = resp->broken;
	due = resp->ack_pending || resp->res_todo || resp->hold.report;
	spin_unlock(&resp->lock);
	if (broken)
		weft_qp_error(qp);
	else if (due)
		weft_qp_answer(qp);
}
