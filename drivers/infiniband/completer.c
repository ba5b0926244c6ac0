// SPDX-License-Identifier: GPL-2.0
/*
 * Completer: acknowledgments, READ responses and timeouts move the requester on or back.
 *
 * weft_comp_step() of the core says what a response means for the oldest request; this file does
 * it. All under req.lock. Acknowledgments do not touch the ACK timer: when it fires before its time
 * it sleeps for the rest.
 */
#include <linux/ktime.h>
#include <weft/ack.h>
#include <weft/completer.h>
#include <weft/sack.h>

#include "qp.h"
#include "rx.h"

/* False: nothing new. */
static bool weft_comp_advance(struct weft_qp *qp, u32 una)
{
	struct weft_req *req = &qp->req;

	if (!weft_psn_before(req->una, una))
		return false;
	req->una = una;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->implied_valid = false;
	return true;
}

static void weft_comp_progress(struct weft_qp *qp, u32 una)
{
	struct weft_req *req = &qp->req;

	if (!weft_comp_advance(qp, una))
		return;
	/* With nothing out, what is sent next begins the time anew. */
	if (una != req->max_psn || req->board)
		req->last_progress_ns = ktime_get_ns();
	if (req->board)
		weft_recovery_ack(qp, una, req->last_progress_ns);
}

static void weft_comp_end(struct weft_swqe *wqe, enum ib_wc_status status)
{
	wqe->status = status;
	wqe->done = true;
}

static void weft_comp_success(struct weft_qp *qp, struct weft_swqe *wqe)
{
	weft_comp_end(wqe, IB_WC_SUCCESS);
	weft_comp_progress(qp, weft_psn_add(wqe->last_psn, 1));
}

static void weft_comp_read(struct weft_qp *qp, struct weft_swqe *wqe, const struct weft_source *src,
			   const struct weft_pkt *pkt, bool last)
{
	u32 offset = weft_req_offset_of_psn(wqe->wr, wqe->first_psn, pkt->psn, qp->mtu,
					    wqe->length);

	if (weft_source_to_sge(&qp->req.keys, wqe->sge, wqe->num_sge, offset, src,
			       pkt->payload_len))
		return weft_comp_end(wqe, IB_WC_LOC_PROT_ERR);
	wqe->resp_psn = weft_psn_add(pkt->psn, 1);
	if (last)
		weft_comp_success(qp, wqe);
	else if (src->more)
		weft_comp_advance(qp, wqe->resp_psn); /* the next one takes the time */
	else
		weft_comp_progress(qp, wqe->resp_psn);
}

static void weft_comp_atomic(struct weft_qp *qp, struct weft_swqe *wqe, const struct weft_pkt *pkt)
{
	u64 orig = pkt->orig;

	/* ATOMIC_WRITE is answered without a value. */
	if (wqe->wr != WEFT_WR_ATOMIC_WRITE &&
	    weft_buf_to_sge(&qp->req.keys, wqe->sge, wqe->num_sge, 0, &orig, sizeof(orig)))
		return weft_comp_end(wqe, IB_WC_LOC_PROT_ERR);
	weft_comp_success(qp, wqe);
}

static void weft_comp_retry(struct weft_qp *qp, struct weft_swqe *wqe,
			    const struct weft_comp_result *res)
{
	struct weft_req *req = &qp->req;

	if (res->implied) {
		/* Each further response behind the same gap says the same. */
		if (req->implied_valid && req->implied_psn == res->resume_psn)
			return;
		weft_count(qp->dev, implied_nak_seq_err);
	} else {
		weft_count(qp->dev, packet_seq_err);
	}
	weft_comp_progress(qp, res->resume_psn);
	/* Of a Weft peer only the timeout costs a try, and it is counted from the last progress. */
	if (!req->board) {
		if (!req->retries) {
			weft_count(qp->dev, retry_exceeded_err);
			return weft_comp_end(wqe, IB_WC_RETRY_EXC_ERR);
		}
		req->retries--;
		req->last_progress_ns = ktime_get_ns();
	}
	req->implied_psn = res->resume_psn;
	req->implied_valid = res->implied;
	weft_requester_rewind(qp, res->resume_psn);
}

static void weft_comp_rnr(struct weft_qp *qp, struct weft_swqe *wqe,
			  const struct weft_comp_result *res)
{
	struct weft_req *req = &qp->req;

	weft_count(qp->dev, rnr_nak_rcvd);
	weft_comp_progress(qp, res->resume_psn);
	if (req->rnr_wait)
		return;
	if (!req->rnr_retries) {
		weft_count(qp->dev, rnr_nak_retry_err);
		return weft_comp_end(wqe, IB_WC_RNR_RETRY_EXC_ERR);
	}
	if (req->rnr_retries != 7)
		req->rnr_retries--;
	req->rnr_wait = true;
	/* What follows waits at a Weft peer. */
	if (req->board)
		weft_board_refused(req->board, res->resume_psn);
	else
		weft_requester_rewind(qp, res->resume_psn);
	hrtimer_start(&req->rnr_timer, ns_to_ktime(weft_rnr_timer_ns(res->rnr_code)),
		      HRTIMER_MODE_REL_SOFT);
}

static enum ib_wc_status weft_nak_status(enum weft_nak_code nak)
{
	switch (nak) {
	case WEFT_NAK_INVALID_REQUEST:
	case WEFT_NAK_INVALID_RD_REQUEST:
		return IB_WC_REM_INV_REQ_ERR;
	case WEFT_NAK_REMOTE_ACCESS:
		return IB_WC_REM_ACCESS_ERR;
	default:
		return IB_WC_REM_OP_ERR;
	}
}

static void weft_comp_nak(struct weft_qp *qp, struct weft_swqe *wqe, enum weft_nak_code nak)
{
	if (nak == WEFT_NAK_REMOTE_ACCESS)
		weft_count(qp->dev, req_remote_access_errors);
	else if (nak == WEFT_NAK_INVALID_REQUEST)
		weft_count(qp->dev, req_remote_invalid_request);
	weft_comp_end(wqe, weft_nak_status(nak));
}

/* Do what weft_comp_step() says. True: ask again for the following request. */
static noinline bool weft_comp_judge(struct weft_qp *qp, struct weft_swqe *wqe,
				     const struct weft_source *src, const struct weft_pkt *pkt)
{
	struct weft_comp_result res;
	struct weft_comp_wqe oldest;

	oldest = (struct weft_comp_wqe){
		.wr = wqe->wr,
		.first_psn = wqe->first_psn,
		.last_psn = wqe->last_psn,
		.resp_psn = wqe->resp_psn,
		.len = wqe->length,
		.mtu = qp->mtu,
	};
	res = weft_comp_step(&oldest, qp->req.max_psn, pkt);
	switch (res.verdict) {
	case WEFT_COMP_DROP:
		break;
	case WEFT_COMP_NEXT:
		weft_comp_success(qp, wqe);
		return true;
	case WEFT_COMP_PROGRESS:
		weft_comp_progress(qp, weft_psn_add(pkt->psn, 1));
		break;
	case WEFT_COMP_READ_DATA:
		weft_comp_read(qp, wqe, src, pkt, false);
		break;
	case WEFT_COMP_READ_LAST:
		weft_comp_read(qp, wqe, src, pkt, true);
		break;
	case WEFT_COMP_ATOMIC:
		weft_comp_atomic(qp, wqe, pkt);
		break;
	case WEFT_COMP_RETRY:
		weft_comp_retry(qp, wqe, &res);
		break;
	case WEFT_COMP_RNR:
		weft_comp_rnr(qp, wqe, &res);
		break;
	case WEFT_COMP_ERROR:
		weft_comp_nak(qp, wqe, res.nak);
		break;
	case WEFT_COMP_BAD_RESPONSE:
		weft_comp_end(wqe, IB_WC_BAD_RESP_ERR);
		break;
	}
	return false;
}

/* The request with the index if it waits for the peer, else NULL. */
static struct weft_swqe *weft_comp_waiting(struct weft_qp *qp, u32 index)
{
	struct weft_swqe *wqe;

	/* Pairs with the release in weft_post_one(). */
	if (index == smp_load_acquire(&qp->sq.producer))
		return NULL;
	wqe = weft_sq_wqe(qp, index);
	return wqe->started && !wqe->done && wqe->local == WEFT_LOCAL_NONE ? wqe : NULL;
}

static struct weft_swqe *weft_comp_oldest(struct weft_qp *qp)
{
	return weft_comp_waiting(qp, qp->req.tail);
}

/* Complete the oldest requests as far as the packet acknowledges them. False: not the first. */
static bool weft_comp_acked(struct weft_qp *qp, struct weft_swqe *oldest,
			    const struct weft_pkt *pkt)
{
	struct weft_swqe *wqe = oldest, *last = NULL;
	u32 i = qp->req.tail;

	for (; wqe && weft_comp_is_acked(wqe->wr, wqe->last_psn, qp->req.max_psn, pkt);
	     wqe = weft_comp_waiting(qp, ++i)) {
		weft_comp_end(wqe, IB_WC_SUCCESS);
		last = wqe;
	}
	if (!last)
		return false;
	weft_comp_progress(qp, weft_psn_add(last->last_psn, 1));
	return true;
}

static void weft_comp_count(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	if (pkt->opcode != (WEFT_RC | WEFT_ACKNOWLEDGE))
		return;
	if (weft_syndrome_is_ack(pkt->syndrome))
		weft_count(qp->dev, ack_rcvd);
	else if (weft_syndrome_kind(pkt->syndrome) == WEFT_ACK_NAK)
		weft_count(qp->dev, nak_rcvd);
}

/* Complete what the packet ends. False: a request failed, the QP must go to the error state. */
static bool weft_comp_packet(struct weft_qp *qp, const struct weft_source *src,
			     const struct weft_pkt *pkt)
{
	struct weft_swqe *wqe;
	bool again = true;

	while (again) {
		wqe = weft_comp_oldest(qp);
		if (!wqe)
			break;
		again = weft_comp_acked(qp, wqe, pkt) || weft_comp_judge(qp, wqe, src, pkt);
		if (wqe->done && !weft_requester_reap(qp))
			return false;
	}
	return true;
}

/*
 * An extended NAK acknowledges what is before its PSN; what it asks for, the scoreboard sees. Rare;
 * its caller shall not have the stack of it.
 */
static noinline_for_stack bool weft_comp_sack(struct weft_qp *qp, const struct weft_source *src,
					      const struct weft_pkt *pkt)
{
	struct weft_pkt plain = *pkt;

	weft_count(qp->dev, ext_nak_rcvd);
	if (qp->req.board)
		weft_recovery_sack(qp, src, pkt);
	/* Where nothing is missing it only tells what came twice. */
	if (qp->req.board || !weft_psn_before(pkt->psn, qp->req.max_psn)) {
		plain.syndrome = WEFT_SYNDROME_ACK;
		plain.psn = weft_psn_add(pkt->psn, WEFT_PSN_MASK);
	}
	return weft_comp_packet(qp, src, &plain);
}

void weft_completer_receive(struct weft_qp *qp, const struct weft_source *src,
			    const struct weft_pkt *pkt)
{
	bool failed = false;
	bool more = false;

	spin_lock(&qp->req.lock);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD) {
		weft_count(qp->dev, rx_drop_qp_state);
		goto unlock;
	}
	weft_comp_count(qp, pkt);
	if (src->skb)
		weft_recovery_peer(qp, pkt);
	if (unlikely(weft_pkt_is_sack(pkt)))
		failed = !weft_comp_sack(qp, src, pkt);
	else
		failed = !weft_comp_packet(qp, src, pkt);
	if (qp->req.board && !failed)
		weft_recovery_detect(qp);
	/*
	 * Held up, to be sent again, or to be drained; what is posted from now on has its own
	 * doorbell.
	 */
	more = qp->req.cur != READ_ONCE(qp->sq.producer) || qp->state == IB_QPS_SQD ||
	       weft_recovery_due(qp);
unlock:
	spin_unlock(&qp->req.lock);
	if (failed)
		weft_qp_error(qp);
	else if (more)
		weft_qp_schedule(qp);
}

/* The timeout of the QP's attributes ran out: one try less. False: it was the last one. */
static bool weft_comp_retry_all(struct weft_qp *qp, struct weft_swqe *wqe, u64 timeout)
{
	struct weft_req *req = &qp->req;

	weft_count(qp->dev, local_ack_timeout_err);
	if (!req->retries) {
		weft_count(qp->dev, retry_exceeded_err);
		weft_comp_end(wqe, IB_WC_RETRY_EXC_ERR);
		return weft_requester_reap(qp);
	}
	req->retries--;
	req->implied_valid = false;
	/* When it ran out, and not when we came to look: the delays must not add up. */
	req->last_progress_ns += timeout;
	if (req->board)
		weft_recovery_forget(qp);
	weft_requester_rewind(qp, req->una);
	return true;
}

void weft_completer_timeout(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	u64 timeout = weft_ack_timeout_ns(qp->attr.timeout);
	u64 now = ktime_get_ns();
	struct weft_swqe *wqe;
	bool failed = false;
	u64 recovery = 0;
	u64 due = 0;

	spin_lock(&req->lock);
	wqe = weft_comp_oldest(qp);
	if (!wqe || req->una == req->max_psn ||
	    (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD))
		goto unlock;
	if (timeout) {
		due = req->last_progress_ns + timeout;
		if (now >= due && !req->rnr_wait) {
			if (weft_req_waits(req))
				failed = !weft_comp_retry_all(qp, wqe, timeout);
			else if (!weft_requester_pull(qp))
				req->last_progress_ns = now;
			if (failed)
				goto unlock;
			due = req->last_progress_ns + timeout;
		}
		if (now >= due)
			due = now + timeout;
	}
	if (req->board && !req->rnr_wait)
		recovery = weft_recovery_timer(qp, now);
	if (recovery && (!due || recovery < due))
		due = recovery;
	if (due)
		weft_ack_timer_before(qp, due);
unlock:
	spin_unlock(&req->lock);
	if (failed)
		weft_qp_error(qp);
}
