// SPDX-License-Identifier: GPL-2.0
/*
 * Responder resources: READs and atomics that were taken, their answers, and answers to duplicates.
 *
 * The ring holds the last max_dest_rd_atomic of them. Answers go out in ring order, then the
 * pending acknowledgment: an ACK that overtook a READ response would tell the peer that the
 * response was lost.
 */
#include <weft/ack.h>
#include <weft/sack.h>

#include "burst.h"
#include "qp.h"
#include "rx.h"

static void weft_answer_init(struct weft_qp *qp, struct weft_pkt *pkt, u8 operation, u32 psn)
{
	weft_pkt_init(pkt, WEFT_RC | operation, qp->attr.dest_qp_num, psn);
	pkt->resv6 = WEFT_RESV6_WEFT;
	pkt->syndrome = WEFT_SYNDROME_ACK;
	pkt->msn = qp->resp.st.msn;
}

static bool weft_packet_send_burst(struct weft_qp *qp, struct weft_dev *to,
				   const struct weft_pkt *pkt, const void *data)
{
	struct weft_burst *burst = weft_burst_alloc(qp, &qp->av);

	if (!burst)
		return false;
	burst->pkt = *pkt;
	memcpy(weft_burst_room(burst, pkt->payload_len), data, pkt->payload_len);
	weft_burst_size(burst, 1, pkt->payload_len);
	weft_burst_send(qp, to, burst);
	return true;
}

static bool weft_packet_send_skb(struct weft_qp *qp, struct net_device *ndev,
				 const struct weft_pkt *pkt, const void *data)
{
	struct weft_tx_batch batch;
	struct sk_buff *skb;
	void *payload;
	bool sent;

	weft_tx_begin(&batch, qp, ndev, &qp->av);
	skb = weft_tx_alloc(&batch, pkt, &payload);
	sent = skb;
	if (sent) {
		memcpy(payload, data, pkt->payload_len);
		weft_tx_plan(&batch, qp, pkt->payload_len, 1);
		weft_tx_add(&batch, qp, pkt, skb);
	}
	weft_tx_send(&batch, qp);
	return sent;
}

bool weft_packet_send(struct weft_qp *qp, const struct weft_path *path, const struct weft_pkt *pkt,
		      const void *data)
{
	return path->to ? weft_packet_send_burst(qp, path->to, pkt, data) :
			  weft_packet_send_skb(qp, path->ndev, pkt, data);
}

/* An answer. Lost if there is no memory or no way: the peer asks again. */
static void weft_answer_send(struct weft_qp *qp, const struct weft_pkt *pkt, const void *data)
{
	struct weft_path path;

	if (weft_path_find(qp, &qp->av, pkt->qpn, &qp->resp.path, &path))
		weft_count(qp->dev, no_route);
	else
		weft_packet_send(qp, &path, pkt, data);
}

/* An acknowledgment that is still to be passed to the peer's link when the lock is free. */
struct weft_passed_ack {
	struct weft_dev *to; /* NULL: there is none */
	struct weft_pkt pkt;
};

/*
 * Acknowledge. Where a burst would be the next that the poll under way takes, the packet need not
 * become one: it is left in @pkt, and the link is returned that weft_rx_pass_ack() gives it to.
 */
static struct weft_dev *weft_responder_ack(struct weft_qp *qp, struct weft_pkt *pkt)
{
	struct weft_dev *dev = qp->dev;
	struct weft_path path __uninitialized;
	u32 bytes;

	weft_answer_init(qp, pkt, WEFT_ACKNOWLEDGE, qp->resp.ack_psn);
	weft_count(dev, ack_sent);
	if (weft_path_find(qp, &qp->av, pkt->qpn, &qp->resp.path, &path)) {
		weft_count(dev, no_route);
		return NULL;
	}
	if (!path.to || READ_ONCE(dev->cfg.icrc_always) || !weft_rx_passes_ack(path.to)) {
		weft_packet_send(qp, &path, pkt, NULL);
		return NULL;
	}
	bytes = weft_burst_packet_bytes(pkt->hdr_len, 0);
	weft_count(dev, sent_pkts);
	weft_count_add(dev, sent_bytes, bytes);
	weft_count(dev, tx_shortcut_pkts);
	weft_count(dev, tx_icrc_offloaded);
	return path.to;
}

static void weft_responder_answer(struct weft_qp *qp, u8 syndrome, u32 psn)
{
	struct weft_pkt pkt;

	weft_answer_init(qp, &pkt, WEFT_ACKNOWLEDGE, psn);
	pkt.syndrome = syndrome;
	if (weft_syndrome_kind(syndrome) == WEFT_ACK_POSITIVE)
		weft_count(qp->dev, ack_sent);
	weft_answer_send(qp, &pkt, NULL);
}

/*
 * Say how far it is, and to a Weft peer what is held behind the gap and what came twice. Rare; its
 * caller shall not have the stack of it.
 */
static noinline_for_stack void weft_responder_report(struct weft_qp *qp)
{
	struct weft_hold *hold = &qp->resp.hold;
	u32 epsn = qp->resp.st.epsn;
	struct weft_sack sack;
	struct weft_pkt pkt;

	static_assert(sizeof(sack) <= WEFT_BURST_INLINE);
	hold->report = false;
	qp->resp.ack_pending = false;
	if (!hold->num && hold->duplicates == hold->reported)
		return weft_responder_answer(qp, WEFT_SYNDROME_ACK,
					     weft_psn_add(epsn, WEFT_PSN_MASK));
	weft_answer_init(qp, &pkt, WEFT_ACKNOWLEDGE, epsn);
	pkt.syndrome = weft_syndrome_nak(WEFT_NAK_PSN_SEQUENCE);
	pkt.payload_len = weft_sack_build(&sack, &hold->set, epsn, hold->duplicates);
	hold->reported = hold->duplicates;
	weft_count(qp->dev, nak_sent);
	weft_count(qp->dev, ext_nak_sent);
	weft_answer_send(qp, &pkt, &sack);
}

static void weft_responder_refuse_now(struct weft_qp *qp)
{
	struct weft_resp *resp = &qp->resp;

	weft_responder_answer(qp, resp->late_syndrome, resp->late_psn);
	resp->late = false;
	resp->broken = resp->late_fatal;
}

void weft_responder_refuse(struct weft_qp *qp, u8 syndrome, bool fatal)
{
	struct weft_resp *resp = &qp->resp;

	resp->late_syndrome = syndrome;
	resp->late_psn = resp->st.epsn;
	resp->late_fatal = fatal;
	resp->late = true;
	/* It acknowledges all that is before it. */
	resp->ack_pending = false;
	if (!resp->res_todo)
		weft_responder_refuse_now(qp);
}

void weft_responder_settle(struct weft_qp *qp)
{
	struct weft_resp *resp = &qp->resp;

	weft_hold_purge(resp);
	if (qp->state < IB_QPS_RTR || qp->state > IB_QPS_SQE || resp->broken || resp->res_todo ||
	    !resp->ack_pending)
		return;
	resp->ack_pending = false;
	rcu_read_lock();
	weft_responder_answer(qp, WEFT_SYNDROME_ACK, resp->ack_psn);
	rcu_read_unlock();
}

/* --- the ring; resp.lock --- */

static void weft_res_set_todo(struct weft_resp *resp, struct weft_res *res, bool todo)
{
	if (res->todo == todo)
		return;
	res->todo = todo;
	if (todo)
		resp->res_todo++;
	else
		resp->res_todo--;
}

static void weft_res_read_from(struct weft_res *res, const struct weft_pkt *pkt)
{
	res->cur_psn = pkt->psn;
	res->va = pkt->va;
	res->rkey = pkt->rkey;
	res->resid = pkt->dmalen;
	res->restart = true;
}

struct weft_res *weft_res_new(struct weft_qp *qp, const struct weft_pkt *pkt,
			      enum weft_res_kind kind)
{
	struct weft_resp *resp = &qp->resp;
	struct weft_res *res;
	u32 psns = 1;

	if (!resp->res_size)
		return NULL;
	res = &resp->res[resp->res_head];
	/* More at a time than was agreed on. */
	if (res->todo && !res->again)
		return NULL;
	weft_res_set_todo(resp, res, false);
	res->again = false;
	resp->res_head = (resp->res_head + 1) % resp->res_size;
	if (kind == WEFT_RES_READ)
		psns = weft_wr_psn_count(WEFT_WR_READ, pkt->dmalen, qp->mtu);
	res->kind = kind;
	res->first_psn = pkt->psn;
	res->last_psn = weft_psn_add(pkt->psn, psns - 1);
	res->msn = (resp->st.msn + 1) & WEFT_PSN_MASK;
	weft_res_read_from(res, pkt);
	weft_res_set_todo(resp, res, true);
	return res;
}

static enum weft_res_kind weft_res_kind_of(const struct weft_pkt *pkt)
{
	if (pkt->op->flags & WEFT_OP_READ)
		return WEFT_RES_READ;
	return pkt->op->flags & WEFT_OP_ATOMIC ? WEFT_RES_ATOMIC : WEFT_RES_ATOMIC_WRITE;
}

static struct weft_res *weft_res_find(struct weft_resp *resp, enum weft_res_kind kind, u32 psn)
{
	struct weft_res *res;
	u32 i;

	for (i = 0; i < resp->res_size; i++) {
		res = &resp->res[i];
		if (res->kind == kind && weft_psn_diff(psn, res->first_psn) >= 0 &&
		    weft_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

/*
 * A duplicate READ may ask for the tail of the first one, under the PSNs that the tail had; its
 * keys are checked again when the bytes are read. An atomic is answered with what it was answered
 * before.
 */
void weft_res_again(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	struct weft_resp *resp = &qp->resp;
	struct weft_res *res = weft_res_find(resp, weft_res_kind_of(pkt), pkt->psn);
	u32 count;

	if (!res)
		return;
	if (res->kind == WEFT_RES_READ) {
		count = weft_wr_psn_count(WEFT_WR_READ, pkt->dmalen, qp->mtu);
		if (pkt->dmalen > WEFT_MAX_RECV ||
		    weft_psn_diff(weft_psn_add(pkt->psn, count - 1), res->last_psn) > 0)
			return;
		weft_res_read_from(res, pkt);
	}
	res->again = true;
	weft_res_set_todo(resp, res, true);
}

/* --- answers --- */

static u8 weft_read_operation(const struct weft_res *res, bool first, bool last)
{
	if (first && res->restart)
		return last ? WEFT_READ_RESPONSE_ONLY : WEFT_READ_RESPONSE_FIRST;
	return last ? WEFT_READ_RESPONSE_LAST : WEFT_READ_RESPONSE_MIDDLE;
}

/*
 * The payload of as many responses as @burst gets: @len bytes by name, or a copy of as many as
 * there is memory for. Returns how many bytes it has; -ENOMEM: not even those of @pkt.
 */
static int weft_res_read_payload(struct weft_qp *qp, struct weft_res *res, struct weft_burst *burst,
				 const struct weft_pkt *pkt, struct weft_mr *mr, u32 len)
{
	void *data;

	/* Others may write what is read: an ICRC needs bytes that stay. */
	if (len > WEFT_BURST_INLINE && !READ_ONCE(qp->dev->cfg.icrc_always) &&
	    weft_burst_name_mr(burst, &qp->resp.keys, mr, res->va, len))
		return len;
	len = min_t(u32, len, WEFT_BURST_COPIED);
	data = weft_burst_room(burst, len);
	if (!data && len > pkt->payload_len) {
		len = pkt->payload_len;
		data = weft_burst_room(burst, len);
	}
	if (!data)
		return -ENOMEM;
	if (len)
		weft_mr_to_buf(mr, res->va, data, len);
	return len;
}

/* To this host: as many responses as fit a burst. Returns how many; 0: no memory. */
static u32 weft_res_send_read_burst(struct weft_qp *qp, struct weft_res *res, struct weft_dev *to,
				    const struct weft_pkt *pkt, struct weft_mr *mr, u32 room)
{
	struct weft_burst *burst = weft_burst_alloc(qp, &qp->av);
	int len;
	u32 num;

	if (!burst)
		return 0;
	burst->pkt = *pkt;
	len = weft_res_read_payload(qp, res, burst, pkt, mr, room);
	if (len < 0) {
		weft_burst_free(burst);
		return 0;
	}
	num = max_t(u32, DIV_ROUND_UP(len, qp->mtu), 1);
	burst->mtu = qp->mtu;
	burst->ackreq = 0;
	burst->middle_opcode = WEFT_RC | WEFT_READ_RESPONSE_MIDDLE;
	burst->middle = weft_opcode_info(burst->middle_opcode);
	burst->last_opcode = WEFT_RC | weft_read_operation(res, false, len == res->resid);
	burst->last = weft_opcode_info(burst->last_opcode);
	burst->last_solicited = false;
	weft_burst_size(burst, num, len);
	weft_burst_send(qp, to, burst);
	return num;
}

/*
 * Through the stack: as many responses as fit a batch. Others may write what is read, so it is
 * copied. Returns how many; 0: no memory. @pkt: the first; becomes the last.
 */
static u32 weft_res_send_read_batch(struct weft_qp *qp, struct weft_res *res,
				    struct net_device *ndev, struct weft_pkt *pkt,
				    struct weft_mr *mr, u32 len)
{
	struct weft_tx_batch batch;
	struct sk_buff *skb;
	void *payload;
	u32 i, num;
	u64 va = res->va;
	bool last;

	weft_tx_begin(&batch, qp, ndev, &qp->av);
	num = weft_tx_plan(&batch, qp, qp->mtu, DIV_ROUND_UP(len, qp->mtu));
	for (i = 0; i < num; i++) {
		if (i) {
			va += pkt->payload_len;
			len -= pkt->payload_len;
			last = va + len == res->va + res->resid && len <= qp->mtu;
			pkt->opcode = WEFT_RC | weft_read_operation(res, false, last);
			pkt->op = weft_opcode_info(pkt->opcode);
			pkt->psn = weft_psn_add(pkt->psn, 1);
			pkt->payload_len = min(len, qp->mtu);
		}
		skb = weft_tx_alloc(&batch, pkt, &payload);
		if (!skb)
			break;
		if (pkt->payload_len)
			weft_mr_to_buf(mr, va, payload, pkt->payload_len);
		weft_tx_add(&batch, qp, pkt, skb);
	}
	weft_tx_send(&batch, qp);
	return i;
}

/* The region went away under way. */
static void weft_res_read_gone(struct weft_qp *qp, struct weft_res *res)
{
	weft_count(qp->dev, resp_remote_access_errors);
	weft_count(qp->dev, nak_sent);
	weft_responder_answer(qp, weft_syndrome_nak(WEFT_NAK_REMOTE_ACCESS), res->cur_psn);
	weft_res_set_todo(&qp->resp, res, false);
	qp->resp.broken = true;
}

/* The next READ responses. False: no memory, try later. */
static noinline_for_stack bool weft_res_send_read(struct weft_qp *qp, struct weft_res *res)
{
	u32 room = min_t(u64, res->resid, (u64)WEFT_BURST_PACKETS * qp->mtu);
	u32 len = min(res->resid, qp->mtu);
	struct weft_mr *mr = NULL;
	struct weft_path path;
	struct weft_pkt pkt;
	u32 num;

	weft_answer_init(qp, &pkt, weft_read_operation(res, true, len == res->resid), res->cur_psn);
	pkt.payload_len = len;
	pkt.msn = res->msn;
	if (len) {
		mr = weft_rkey_find(qp, res->rkey, res->va, room, IB_ACCESS_REMOTE_READ);
		if (!mr) {
			weft_res_read_gone(qp, res);
			return true;
		}
	}
	if (weft_path_find(qp, &qp->av, pkt.qpn, &qp->resp.path, &path)) {
		weft_count(qp->dev, no_route);
		num = 1;
	} else if (path.to) {
		num = weft_res_send_read_burst(qp, res, path.to, &pkt, mr, room);
	} else {
		num = weft_res_send_read_batch(qp, res, path.ndev, &pkt, mr, room);
	}
	if (!num)
		return false;
	len = min(res->resid, num * qp->mtu);
	res->restart = false;
	res->cur_psn = weft_psn_add(res->cur_psn, num);
	res->va += len;
	res->resid -= len;
	if (!res->resid)
		weft_res_set_todo(&qp->resp, res, false);
	return true;
}

static noinline_for_stack void weft_res_send_atomic(struct weft_qp *qp, struct weft_res *res)
{
	struct weft_pkt pkt;

	weft_answer_init(qp, &pkt,
			 res->kind == WEFT_RES_ATOMIC ? WEFT_ATOMIC_ACKNOWLEDGE
						      : WEFT_READ_RESPONSE_ONLY,
			 res->first_psn);
	pkt.orig = res->orig;
	pkt.msn = res->msn;
	weft_answer_send(qp, &pkt, NULL);
	weft_res_set_todo(&qp->resp, res, false);
}

/* Oldest resource with something to send. */
static struct weft_res *weft_res_todo(struct weft_resp *resp)
{
	struct weft_res *res;
	u32 i;

	for (i = 0; i < resp->res_size; i++) {
		res = &resp->res[(resp->res_head + i) % resp->res_size];
		if (res->todo)
			return res;
	}
	return NULL;
}

static bool weft_responder_loop(struct weft_qp *qp, int budget, struct weft_passed_ack *ack)
{
	struct weft_resp *resp = &qp->resp;
	struct weft_res *res;

	while (resp->res_todo && !resp->broken) {
		res = weft_res_todo(resp);
		if (!budget--)
			return true;
		if (weft_tx_full(qp->flow))
			return false;
		if (res->kind != WEFT_RES_READ)
			weft_res_send_atomic(qp, res);
		else if (!weft_res_send_read(qp, res))
			return true;
	}
	if (resp->late && !resp->broken)
		weft_responder_refuse_now(qp);
	if (resp->broken)
		return false;
	if (resp->hold.report || (resp->ack_pending && resp->hold.num)) {
		weft_responder_report(qp);
	} else if (resp->ack_pending) {
		resp->ack_pending = false;
		ack->to = weft_responder_ack(qp, &ack->pkt);
	}
	return false;
}

bool weft_responder_run(struct weft_qp *qp, int budget)
{
	struct weft_resp *resp = &qp->resp;
	struct weft_passed_ack ack __uninitialized;
	bool more = false;
	bool broken = false;

	ack.to = NULL;
	if (!READ_ONCE(resp->res_todo) && !READ_ONCE(resp->ack_pending) &&
	    !READ_ONCE(resp->hold.report))
		return false;
	spin_lock(&resp->lock);
	if (qp->state >= IB_QPS_RTR && qp->state <= IB_QPS_SQE) {
		more = weft_responder_loop(qp, budget, &ack);
		broken = resp->broken;
	}
	spin_unlock(&resp->lock);
	if (ack.to)
		weft_rx_pass_ack(ack.to, &qp->av, &ack.pkt);
	if (broken)
		weft_qp_error(qp);
	return more;
}
