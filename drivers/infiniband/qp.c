// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: creation and destruction, service, the error state and its flush, asynchronous
 * events.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "mcast.h"
#include "qp.h"
#include "rx.h"

bool weft_qp_service(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	bool more;

	if (test_and_clear_bit(WEFT_REQ_EV_RNR_OVER, &req->events)) {
		spin_lock(&req->lock);
		req->rnr_wait = false;
		req->last_progress_ns = ktime_get_ns();
		spin_unlock(&req->lock);
	}
	if (test_and_clear_bit(WEFT_REQ_EV_ACK_TIMEOUT, &req->events))
		weft_completer_timeout(qp);
	more = weft_responder_run(qp, WEFT_SERVICE_BUDGET);
	more |= weft_requester_run(qp, WEFT_SERVICE_BUDGET);
	return more;
}

static enum hrtimer_restart weft_ack_timer(struct hrtimer *timer)
{
	struct weft_qp *qp = container_of(timer, struct weft_qp, req.ack_timer);

	set_bit(WEFT_REQ_EV_ACK_TIMEOUT, &qp->req.events);
	weft_qp_schedule(qp);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart weft_rnr_timer(struct hrtimer *timer)
{
	struct weft_qp *qp = container_of(timer, struct weft_qp, req.rnr_timer);

	set_bit(WEFT_REQ_EV_RNR_OVER, &qp->req.events);
	weft_qp_schedule(qp);
	return HRTIMER_NORESTART;
}

/* --- events --- */

static void weft_qp_event_work(struct work_struct *work)
{
	struct weft_qp *qp = container_of(work, struct weft_qp, event_work);
	struct ib_event ev = { .device = qp->ibqp.device, .element.qp = &qp->ibqp };
	unsigned long bits = xchg(&qp->async_events, 0);
	unsigned int event;

	for_each_set_bit(event, &bits, BITS_PER_LONG) {
		ev.event = event;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	}
}

void weft_qp_async_event(struct weft_qp *qp, enum ib_event_type event)
{
	set_bit(event, &qp->async_events);
	schedule_work(&qp->event_work);
}

void weft_qp_check_mtu(struct weft_qp *qp, u32 mtu)
{
	if (qp->transport == WEFT_UD) {
		spin_lock_bh(&qp->req.lock);
		if (mtu)
			WRITE_ONCE(qp->mtu, mtu);
		spin_unlock_bh(&qp->req.lock);
		return;
	}
	/* The verb has no event for a path that shrank; this is the one about its path. */
	if (READ_ONCE(qp->state) >= IB_QPS_RTR && qp->mtu > mtu)
		weft_qp_async_event(qp, IB_EVENT_PATH_MIG_ERR);
}

/* --- error state --- */

/* The state may have changed since the caller looked: only a QP in error is flushed. */
static void weft_flush_send(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	struct weft_swqe *wqe;
	u32 i;

	spin_lock_bh(&req->lock);
	if (qp->state != IB_QPS_ERR)
		goto unlock;
	weft_tx_flow_give_up(qp->flow);
	while (weft_sq_next(qp))
		req->cur++;
	for (i = req->tail; i != req->cur; i++) {
		wqe = weft_sq_wqe(qp, i);
		if (!wqe->done) {
			wqe->status = IB_WC_WR_FLUSH_ERR;
			wqe->done = true;
		}
	}
	while (req->tail != req->cur)
		weft_requester_reap(qp);
unlock:
	spin_unlock_bh(&req->lock);
}

static void weft_flush_one_recv(struct weft_qp *qp)
{
	struct ib_wc wc = {
		.wr_id = qp->resp.rwqe.wr_id,
		.status = IB_WC_WR_FLUSH_ERR,
		.opcode = IB_WC_RECV,
		.qp = &qp->ibqp,
	};

	weft_count(qp->dev, flushed_wrs);
	weft_cq_post(qp->rcq, &wc, true);
}

static void weft_flush_recv(struct weft_qp *qp)
{
	struct weft_resp *resp = &qp->resp;
	u32 left = qp->srq ? 0 : qp->rq.ring->mask + 1;

	spin_lock_bh(&resp->lock);
	if (qp->state != IB_QPS_ERR)
		goto unlock;
	if (resp->have_rwqe)
		weft_flush_one_recv(qp);
	resp->have_rwqe = false;
	/* No more than there are slots: the user may write the ring's index all the time. */
	while (left-- && weft_rq_pop(&qp->rq, &resp->rwqe) != -ENOENT)
		weft_flush_one_recv(qp);
unlock:
	spin_unlock_bh(&resp->lock);
}

void weft_qp_flush(struct weft_qp *qp)
{
	weft_flush_send(qp);
	weft_flush_recv(qp);
}

void weft_qp_error(struct weft_qp *qp)
{
	bool changed;

	spin_lock_bh(&qp->req.lock);
	spin_lock(&qp->resp.lock);
	changed = qp->state != IB_QPS_ERR && qp->state != IB_QPS_RESET;
	weft_responder_settle(qp);
	if (changed)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	spin_unlock(&qp->resp.lock);
	spin_unlock_bh(&qp->req.lock);
	if (!changed)
		return;
	weft_qp_flush(qp);
	if (qp->srq)
		weft_qp_async_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* --- creation --- */

static int weft_qp_check_init(struct weft_dev *dev, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_GSI:
		if (init->port_num != WEFT_PORT || dev->gsi_refused || rcu_access_pointer(dev->gsi))
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > WEFT_MAX_QP_WR || cap->max_send_sge > WEFT_MAX_SGE ||
	    cap->max_inline_data > WEFT_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > WEFT_MAX_QP_WR || cap->max_recv_sge > WEFT_MAX_SGE))
		return -EINVAL;
	return 0;
}

static u8 weft_qp_transport(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return WEFT_RC;
	case IB_QPT_UC:
		return WEFT_UC;
	default:
		return WEFT_UD;
	}
}

static void weft_qp_init_fields(struct weft_qp *qp, struct weft_dev *dev,
				const struct ib_qp_init_attr *init)
{
	struct net_device *netdev = weft_dev_get_netdev(dev);

	qp->dev = dev;
	qp->type = init->qp_type;
	qp->transport = weft_qp_transport(init->qp_type);
	qp->sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	qp->mtu = netdev ? weft_path_mtu(READ_ONCE(netdev->mtu)) : 0;
	qp->mtu = qp->mtu ?: 256;
	dev_put(netdev);
	qp->scq = weft_from_ibcq(init->send_cq);
	qp->rcq = weft_from_ibcq(init->recv_cq);
	qp->srq = init->srq ? weft_from_ibsrq(init->srq) : NULL;
	qp->attr.port_num = WEFT_PORT;
	qp->req.keys.dev = dev;
	qp->req.keys.pd = qp->ibqp.pd;
	qp->resp.keys = qp->req.keys;

	refcount_set(&qp->refs, 1);
	init_completion(&qp->unused);
	spin_lock_init(&qp->req.lock);
	spin_lock_init(&qp->resp.lock);
	weft_hold_setup(&qp->resp);
	hrtimer_setup(&qp->req.ack_timer, weft_ack_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	hrtimer_setup(&qp->req.rnr_timer, weft_rnr_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	INIT_LIST_HEAD(&qp->service_node);
	INIT_LIST_HEAD(&qp->mcast_nodes);
	INIT_WORK(&qp->event_work, weft_qp_event_work);
}

static int weft_qp_init_queues(struct weft_qp *qp, struct ib_qp_init_attr *init,
			       struct ib_ucontext *ucontext, struct rxe_create_qp_resp __user *resp)
{
	int err;

	err = weft_sq_init(qp, &init->cap, ucontext, resp ? &resp->sq_mi : NULL);
	if (err)
		return err;
	init->cap.max_send_wr = qp->sq.max_wr;
	init->cap.max_send_sge = qp->sq.max_sge;
	init->cap.max_inline_data = qp->sq.max_inline;
	if (qp->srq)
		return 0;
	err = weft_rq_init(&qp->rq, ucontext, init->cap.max_recv_wr, init->cap.max_recv_sge,
			   resp ? &resp->rq_mi : NULL);
	if (err)
		weft_sq_uninit(qp);
	else
		init->cap.max_recv_wr = qp->rq.max_wr;
	return err;
}

static int weft_qp_publish(struct weft_qp *qp)
{
	int err;

	if (qp->type == IB_QPT_GSI) {
		qp->qpn = 1;
		qp->ibqp.qp_num = 1;
		qp->src_port = 0xc000 | 1;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}
	if (atomic_inc_return(&qp->dev->num_qp) > WEFT_MAX_QP) {
		err = -ENOSPC;
		goto err_count;
	}
	err = weft_qp_table_add(qp);
	if (err)
		goto err_count;
	qp->ibqp.qp_num = qp->qpn;
	qp->service_queue = qp->qpn;
	/* A datagram QP has no peer whose number could add entropy. */
	qp->src_port = rdma_flow_label_to_udp_sport(rdma_calc_flow_label(qp->qpn, 0));
	return 0;

err_count:
	atomic_dec(&qp->dev->num_qp);
	return err;
}

int weft_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct weft_dev *dev = weft_from_ibdev(ibqp->device);
	struct rxe_create_qp_resp __user *resp = NULL;
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	struct ib_ucontext *ucontext = NULL;
	int err;

	err = weft_qp_check_init(dev, init);
	if (err)
		return err;
	if (udata) {
		if (udata->outlen < sizeof(*resp))
			return -EINVAL;
		ucontext = rdma_udata_to_uverbs_attr_bundle(udata)->context;
		resp = udata->outbuf;
		qp->is_user = true;
	}
	weft_qp_init_fields(qp, dev, init);
	qp->flow = weft_tx_flow_alloc(qp);
	if (!qp->flow)
		return -ENOMEM;
	err = weft_placement_setup(qp);
	if (err)
		goto err_flow;
	err = weft_qp_init_queues(qp, init, ucontext, resp);
	if (err)
		goto err_placement;
	err = weft_qp_publish(qp);
	if (err)
		goto err_queues;
	return 0;

err_queues:
	weft_sq_uninit(qp);
	if (!qp->srq)
		weft_rq_uninit(&qp->rq);
err_placement:
	weft_placement_uninit(qp);
err_flow:
	weft_tx_flow_detach(qp->flow);
	return err;
}

/* No packet, timer, work request or skb reaches the QP from here on. */
static void weft_qp_withdraw(struct weft_qp *qp)
{
	weft_mcast_drop_qp(qp);
	if (qp->type == IB_QPT_GSI) {
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	} else {
		weft_qp_table_del(qp);
		atomic_dec(&qp->dev->num_qp);
	}
	spin_lock_bh(&qp->req.lock);
	spin_lock(&qp->resp.lock);
	weft_responder_settle(qp);
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	spin_unlock(&qp->resp.lock);
	spin_unlock_bh(&qp->req.lock);
	/* Timers are started only in a state that sends, under req.lock. */
	hrtimer_cancel(&qp->req.ack_timer);
	hrtimer_cancel(&qp->req.rnr_timer);
	weft_qp_unschedule(qp);
	weft_tx_flow_detach(qp->flow);
	/* Lookups by QPN and destructors that found the QP before. */
	synchronize_rcu_expedited();
	weft_qp_put(qp);
	wait_for_completion(&qp->unused);
	cancel_work_sync(&qp->event_work);
}

int weft_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct weft_qp *qp = weft_from_ibqp(ibqp);

	weft_qp_withdraw(qp);
	weft_sq_uninit(qp);
	if (!qp->srq)
		weft_rq_uninit(&qp->rq);
	kfree(qp->resp.res);
	weft_placement_uninit(qp);
	weft_recovery_reset(qp);
	return 0;
}

int weft_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	int err = 0;

	if (READ_ONCE(qp->state) == IB_QPS_RESET || qp->srq || qp->is_user) {
		*bad = wr;
		return -EINVAL;
	}
	for (; wr; wr = wr->next) {
		err = weft_rq_post(&qp->rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		weft_qp_schedule(qp);
	return err;
}
