// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pair attributes and state transitions.
 *
 * Everything is validated and allocated first; then the attributes change at once under both locks
 * of the QP, and what must follow (flush, reset, wake-up) comes last.
 */
#include <linux/slab.h>

#include "qp.h"
#include "rx.h"

static int weft_check_path(struct weft_dev *dev, const struct ib_qp_attr *attr, int mask)
{
	struct net_device *netdev;
	u32 limit;

	if ((mask & IB_QP_PORT) && attr->port_num != WEFT_PORT)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_ALT_PATH)
		return -EOPNOTSUPP;
	if (!(mask & IB_QP_PATH_MTU))
		return 0;
	netdev = weft_dev_get_netdev(dev);
	if (!netdev)
		return -ENODEV;
	limit = weft_path_mtu(READ_ONCE(netdev->mtu));
	dev_put(netdev);
	return attr->path_mtu >= IB_MTU_256 && attr->path_mtu <= IB_MTU_4096 &&
			       ib_mtu_enum_to_int(attr->path_mtu) <= limit
		       ? 0
		       : -EINVAL;
}

static int weft_check_attr(const struct ib_qp_attr *attr, int mask)
{
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > WEFT_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > WEFT_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT) && attr->timeout > 31)
		return -EINVAL;
	if ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7)
		return -EINVAL;
	if ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7)
		return -EINVAL;
	if ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
		return -EINVAL;
	if ((mask & IB_QP_CAP))
		return -EOPNOTSUPP;
	return 0;
}

/*
 * A new ring of responder resources takes the old one's place; *@res is then the old one.
 * resp.lock.
 */
static int weft_swap_resources(struct weft_qp *qp, struct weft_res **res, u32 size)
{
	if (qp->resp.res_todo)
		return -EBUSY;
	swap(qp->resp.res, *res);
	qp->resp.res_size = size;
	qp->resp.res_head = 0;
	return 0;
}

static void weft_set_path(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask,
			  const struct weft_av *av)
{
	if (mask & IB_QP_AV) {
		qp->av = *av;
		weft_tx_flow_reset(qp->flow);
	}
	if (mask & IB_QP_PATH_MTU) {
		qp->attr.path_mtu = attr->path_mtu;
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_DEST_QPN)
		qp->attr.dest_qp_num = attr->dest_qp_num & WEFT_QPN_MASK;
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN)) {
		qp->req.path.generation = 0;
		qp->resp.path.generation = 0;
	}
	if ((mask & (IB_QP_AV | IB_QP_DEST_QPN)) && qp->transport != WEFT_UD)
		qp->src_port = rdma_get_udp_sport(qp->av.flow_label, qp->qpn, qp->attr.dest_qp_num);
}

/* What concerns the requester. req.lock. */
static void weft_set_req(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_SQ_PSN) {
		qp->req.psn = attr->sq_psn & WEFT_PSN_MASK;
		qp->req.una = qp->req.psn;
		qp->req.asked = qp->req.psn;
		qp->req.max_psn = qp->req.psn;
	}
	if (mask & IB_QP_TIMEOUT)
		qp->attr.timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT) {
		qp->attr.retry_cnt = attr->retry_cnt;
		qp->req.retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		qp->attr.rnr_retry = attr->rnr_retry;
		qp->req.rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		qp->attr.en_sqd_async_notify = attr->en_sqd_async_notify;
}

/* What concerns the responder. resp.lock. */
static void weft_set_resp(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_RQ_PSN)
		qp->resp.st.epsn = attr->rq_psn & WEFT_PSN_MASK;
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_QKEY)
		qp->attr.qkey = attr->qkey;
	if (mask & IB_QP_MIN_RNR_TIMER)
		qp->attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_PKEY_INDEX)
		qp->attr.pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		qp->attr.port_num = attr->port_num;
}

/* To RESET: as after creation; nothing completes. Both locks. */
static void weft_reset_locked(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	struct weft_resp *resp = &qp->resp;
	u32 left = qp->srq ? 0 : qp->rq.ring->mask + 1;

	weft_sq_reset(qp);
	req->psn = 0;
	req->una = 0;
	req->asked = 0;
	req->max_psn = 0;
	req->rd_atomic = 0;
	req->implied_valid = false;
	req->rnr_wait = false;
	req->events = 0;
	weft_recovery_reset(qp);

	memset(&resp->st, 0, sizeof(resp->st));
	resp->have_rwqe = false;
	resp->broken = false;
	resp->comm_est = false;
	resp->ack_pending = false;
	resp->late = false;
	resp->rnr = false;
	memset(&resp->peer, 0, sizeof(resp->peer));
	weft_placement_reset(resp);
	resp->res_todo = 0;
	resp->res_head = 0;
	if (resp->res)
		memset(resp->res, 0, resp->res_size * sizeof(*resp->res));
	while (left-- && weft_rq_pop(&qp->rq, &resp->rwqe) != -ENOENT)
		; /* no more than there are slots, whatever the user writes */
}

static void weft_enter_state(struct weft_qp *qp, enum ib_qp_state next)
{
	if (next == IB_QPS_SQD && qp->state != IB_QPS_SQD) {
		qp->req.drained = false;
		qp->attr.sq_draining = 1;
	}
	if (next != IB_QPS_SQD)
		qp->attr.sq_draining = 0;
	if (next == IB_QPS_RESET || next == IB_QPS_ERR)
		weft_responder_settle(qp);
	/* Pairs with the acquire in weft_packet_ok(). */
	smp_store_release(&qp->state, next);
	if (next == IB_QPS_RESET)
		weft_reset_locked(qp);
}

static void weft_after_transition(struct weft_qp *qp, enum ib_qp_state next)
{
	switch (next) {
	case IB_QPS_RESET:
		hrtimer_cancel(&qp->req.ack_timer);
		hrtimer_cancel(&qp->req.rnr_timer);
		break;
	case IB_QPS_ERR:
		weft_qp_flush(qp);
		if (qp->srq)
			weft_qp_async_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		break;
	default:
		weft_qp_schedule(qp);
		break;
	}
}

static int weft_modify_check(struct weft_qp *qp, struct ib_qp_attr *attr, int mask,
			     enum ib_qp_state cur, enum ib_qp_state *next)
{
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != cur)
		return -EINVAL;
	*next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, *next, qp->type, mask))
		return -EINVAL;
	err = weft_check_path(qp->dev, attr, mask);
	return err ? err : weft_check_attr(attr, mask);
}

int weft_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	enum ib_qp_state cur = READ_ONCE(qp->state);
	struct weft_res *res = NULL;
	enum ib_qp_state next;
	struct weft_av av;
	int err;

	err = weft_modify_check(qp, attr, mask, cur, &next);
	if (!err && (mask & IB_QP_AV))
		err = weft_av_init(qp->dev, &av, &attr->ah_attr);
	if (err)
		return err;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic) {
		res = kcalloc(attr->max_dest_rd_atomic, sizeof(*res), GFP_KERNEL);
		if (!res)
			return -ENOMEM;
	}

	spin_lock_bh(&qp->req.lock);
	spin_lock(&qp->resp.lock);
	/* An error, or another modify, may have come in between. */
	if (qp->state != cur)
		err = -EINVAL;
	if (!err && (mask & IB_QP_MAX_DEST_RD_ATOMIC))
		err = weft_swap_resources(qp, &res, attr->max_dest_rd_atomic);
	if (!err) {
		weft_set_path(qp, attr, mask, &av);
		weft_set_req(qp, attr, mask);
		weft_set_resp(qp, attr, mask);
		if (mask & IB_QP_STATE)
			weft_enter_state(qp, next);
	}
	spin_unlock(&qp->resp.lock);
	spin_unlock_bh(&qp->req.lock);
	kfree(res);
	if (!err && (mask & IB_QP_STATE))
		weft_after_transition(qp, next);
	return err;
}

int weft_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct weft_qp *qp = weft_from_ibqp(ibqp);

	spin_lock_bh(&qp->req.lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->sq_psn = qp->req.psn;
	attr->rq_psn = qp->resp.st.epsn;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->cap.max_send_wr = qp->sq.max_wr;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_inline_data = qp->sq.max_inline;
	if (!qp->srq) {
		attr->cap.max_recv_wr = qp->rq.max_wr;
		attr->cap.max_recv_sge = qp->rq.max_sge;
	}
	if (qp->transport != WEFT_UD)
		weft_av_to_attr(&qp->av, &attr->ah_attr);
	spin_unlock_bh(&qp->req.lock);

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sq_sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	return 0;
}
