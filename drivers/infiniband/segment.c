// SPDX-License-Identifier: GPL-2.0
/*
 * From a request to its packets: header fields and payload, as many as fit a batch for the stack,
 * or a burst when the peer is on this host.
 */
#include "burst.h"
#include "qp.h"

/* Ask for an acknowledgment at least each so many packets. */
enum { WEFT_ACK_INTERVAL = 32 };

static struct weft_segment weft_segment_at(const struct weft_qp *qp, const struct weft_swqe *wqe,
					   u32 offset)
{
	return weft_req_segment(qp->transport, wqe->wr, wqe->length, offset, qp->mtu);
}

static bool weft_segment_solicits(const struct weft_swqe *wqe, const struct weft_segment *seg,
				  const struct weft_opcode_info *op)
{
	return seg->last && (wqe->flags & IB_SEND_SOLICITED) && (op->flags & WEFT_OP_RECV_WQE);
}

/*
 * May the request's end do without an acknowledgment of its own? On this host a packet is lost only
 * where somebody drops it, and whoever waits for no completion can wait until the next request that
 * asks, or until WEFT_ACK_INTERVAL packets have gone. What is sent again asks. To a peer that is
 * known by wire losses matter, and how long answers take.
 */
static bool weft_segment_is_patient(const struct weft_qp *qp, const struct weft_swqe *wqe, u32 psn)
{
	return !qp->req.board && weft_req_is_patient(qp, wqe) &&
	       !weft_psn_before(psn, qp->req.max_psn);
}

static bool weft_segment_wants_ack(const struct weft_qp *qp, const struct weft_segment *seg,
				   u32 psn)
{
	const struct weft_req *req = &qp->req;

	return qp->transport == WEFT_RC &&
	       (req->ask || weft_req_want_ack(seg, !req->patient, psn, WEFT_ACK_INTERVAL));
}

/* The packet is going out. */
static void weft_segment_note(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	if (pkt->ackreq)
		weft_req_asked(&qp->req, pkt->psn);
}

static u32 weft_segment_qpn(const struct weft_qp *qp, const struct weft_swqe *wqe)
{
	return qp->transport == WEFT_UD ? wqe->ud.qpn : qp->attr.dest_qp_num;
}

static void weft_segment_fill(struct weft_qp *qp, const struct weft_swqe *wqe,
			      const struct weft_segment *seg, u32 offset, struct weft_pkt *pkt,
			      u32 psn)
{
	weft_pkt_init(pkt, seg->opcode, weft_segment_qpn(qp, wqe), psn);
	pkt->payload_len = seg->payload_len;
	pkt->resv6 = qp->transport == WEFT_RC ? WEFT_RESV6_WEFT : 0;
	pkt->solicited = weft_segment_solicits(wqe, seg, pkt->op);
	pkt->ackreq = weft_segment_wants_ack(qp, seg, psn);
	pkt->imm = wqe->imm;
	pkt->rkey = pkt->op->flags & WEFT_OP_IETH ? wqe->inv_rkey : wqe->rkey;
	pkt->va = wqe->remote_addr + offset;
	pkt->dmalen = wqe->length - offset;
	pkt->swap_add = wqe->wr == WEFT_WR_COMPARE_SWAP ? wqe->swap : wqe->compare_add;
	pkt->compare = wqe->compare_add;
	if (qp->transport != WEFT_UD)
		return;
	/* A Q_Key with the high bit set asks for the QP's own (IBTA 10.2.5). */
	pkt->qkey = wqe->ud.qkey & BIT(31) ? qp->attr.qkey : wqe->ud.qkey;
	pkt->src_qpn = qp->type == IB_QPT_GSI ? 1 : qp->qpn;
}

/* 0, or -EFAULT: the request's keys or bounds do not let us have the bytes. */
static int weft_segment_payload(struct weft_qp *qp, const struct weft_swqe *wqe, u32 offset,
				void *to, u32 len)
{
	if (!len)
		return 0;
	if (wqe->flags & IB_SEND_INLINE) {
		memcpy(to, wqe->inline_data + offset, len);
		return 0;
	}
	return weft_sge_to_buf(&qp->req.keys, wqe->sge, wqe->num_sge, offset, to, len);
}

/* Packets from wqe->offset on that may follow each other without a new request of the QP. */
static u32 weft_segment_run(const struct weft_qp *qp, const struct weft_swqe *wqe, u32 room)
{
	if (qp->transport != WEFT_RC || weft_wr_is_rd_atomic(wqe->wr))
		return 1;
	return min_t(u32, DIV_ROUND_UP(wqe->length - wqe->offset, qp->mtu), room);
}

/* --- through the stack: a batch --- */

/*
 * What is complete with its sending (UC, UD) must be copied: its user may have the memory back
 * while the packet waits in a queue.
 */
static struct sk_buff *weft_segment_skb(struct weft_qp *qp, const struct weft_swqe *wqe,
					u32 offset, const struct weft_tx_batch *batch,
					const struct weft_pkt *pkt)
{
	struct sk_buff *skb = NULL;
	void *payload;
	int err;

	if (qp->transport == WEFT_RC && !(wqe->flags & IB_SEND_INLINE))
		skb = weft_tx_alloc_named(batch, pkt, &qp->req.keys, wqe->sge, wqe->num_sge,
					  offset);
	if (skb)
		return skb;
	skb = weft_tx_alloc(batch, pkt, &payload);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	err = weft_segment_payload(qp, wqe, offset, payload, pkt->payload_len);
	if (!err)
		return skb;
	kfree_skb(skb);
	return ERR_PTR(-EFAULT);
}

/* @first: of the packets. */
static noinline int weft_segment_send_batch(struct weft_qp *qp, const struct weft_swqe *wqe,
					    struct net_device *ndev, const struct weft_av *av,
					    const struct weft_segment *first, u32 psn, u32 room)
{
	struct weft_segment seg = *first;
	struct weft_tx_batch batch;
	u32 offset = wqe->offset;
	struct sk_buff *skb;
	struct weft_pkt pkt;
	u32 i, num;
	int err = 0;

	weft_tx_begin(&batch, qp, ndev, av);
	num = weft_tx_plan(&batch, qp, qp->mtu, weft_segment_run(qp, wqe, room));
	for (i = 0; i < num; i++) {
		if (i) {
			offset += qp->mtu;
			seg = weft_segment_at(qp, wqe, offset);
		}
		weft_segment_fill(qp, wqe, &seg, offset, &pkt, weft_psn_add(psn, i));
		skb = weft_segment_skb(qp, wqe, offset, &batch, &pkt);
		if (IS_ERR(skb)) {
			err = PTR_ERR(skb);
			break;
		}
		weft_segment_note(qp, &pkt);
		weft_tx_add(&batch, qp, &pkt, skb);
	}
	/* What does not get out is lost, as if on the wire. */
	weft_tx_send(&batch, qp);
	return i ? i : err;
}

/* --- to this host: a burst --- */

/* Packets from wqe->offset on that may go as one: none has headers that the first has not. */
static u32 weft_segment_burst_max(const struct weft_qp *qp, const struct weft_swqe *wqe, u32 room)
{
	u32 num = min_t(u32, weft_segment_run(qp, wqe, room), WEFT_BURST_PACKETS);
	const struct weft_opcode_info *last;
	struct weft_segment seg;

	if (num < 2 || wqe->flags & IB_SEND_INLINE)
		return 1;
	seg = weft_segment_at(qp, wqe, wqe->offset + (num - 1) * qp->mtu);
	last = weft_opcode_info(seg.opcode);
	return last->flags & (WEFT_OP_IMM | WEFT_OP_IETH) ? num - 1 : num;
}

/* The burst has @num > 1 packets of @len bytes in all. */
static void weft_segment_burst_rest(struct weft_qp *qp, const struct weft_swqe *wqe,
				    struct weft_burst *burst, u32 num, u32 len)
{
	struct weft_segment seg;
	u32 i;

	burst->mtu = qp->mtu;
	burst->ackreq = 0;
	for (i = 1; i < num; i++) {
		seg = weft_segment_at(qp, wqe, wqe->offset + i * qp->mtu);
		if (weft_segment_wants_ack(qp, &seg, weft_psn_add(burst->pkt.psn, i))) {
			burst->ackreq |= BIT(i);
			weft_req_asked(&qp->req, weft_psn_add(burst->pkt.psn, i));
		}
		if (i == 1)
			burst->middle_opcode = seg.opcode;
	}
	burst->middle = weft_opcode_info(burst->middle_opcode);
	burst->last_opcode = seg.opcode;
	burst->last = weft_opcode_info(seg.opcode);
	burst->last_solicited = weft_segment_solicits(wqe, &seg, burst->last);
	weft_burst_size(burst, num, len);
}

/*
 * Name what can be named: small payload is cheaper to copy, and what is complete with its sending
 * (UC, UD) must be. Returns the packets that have all of their payload.
 */
static u32 weft_segment_burst_name(struct weft_qp *qp, const struct weft_swqe *wqe,
				   struct weft_burst *burst, u32 num)
{
	u32 want = min(wqe->length - wqe->offset, num * qp->mtu);
	u32 got;

	if (qp->transport != WEFT_RC || wqe->flags & IB_SEND_INLINE || want <= WEFT_BURST_INLINE)
		return 0;
	got = weft_burst_name_sge(burst, &qp->req.keys, wqe->sge, wqe->num_sge, wqe->offset, want);
	return got == want ? num : got / qp->mtu;
}

static int weft_segment_send_burst(struct weft_qp *qp, const struct weft_swqe *wqe,
				   struct weft_dev *to, const struct weft_av *av,
				   const struct weft_segment *seg, u32 psn, u32 room)
{
	struct weft_burst *burst = weft_burst_alloc(qp, av);
	u32 len = seg->payload_len;
	u32 num = 1;
	void *data;
	int err;

	if (!burst)
		return -ENOMEM;
	weft_segment_fill(qp, wqe, seg, wqe->offset, &burst->pkt, psn);
	if (len)
		num = weft_segment_burst_name(qp, wqe, burst,
					      weft_segment_burst_max(qp, wqe, room));
	if (num > 1) {
		len = min(wqe->length - wqe->offset, num * qp->mtu);
		weft_segment_burst_rest(qp, wqe, burst, num, len);
	} else if (num == 0) {
		data = weft_burst_room(burst, len);
		err = data ? weft_segment_payload(qp, wqe, wqe->offset, data, len) : -ENOMEM;
		if (err) {
			weft_burst_free(burst);
			return err;
		}
		num = 1;
	}
	if (num == 1)
		weft_burst_size(burst, 1, len);
	weft_segment_note(qp, &burst->pkt);
	weft_burst_send(qp, to, burst);
	return num;
}

int weft_segment_send(struct weft_qp *qp, const struct weft_swqe *wqe, u32 psn, u32 room)
{
	struct weft_segment seg = weft_segment_at(qp, wqe, wqe->offset);
	struct weft_req *req = &qp->req;
	const struct weft_av *av = &qp->av;
	struct weft_path path __uninitialized;

	if (qp->transport == WEFT_UD) {
		av = &wqe->ud.av;
		req->path.generation = 0; /* each has its own */
	}
	if (weft_path_find(qp, av, weft_segment_qpn(qp, wqe), &req->path, &path)) {
		weft_count(qp->dev, no_route);
		weft_req_asked(req, psn); /* lost with its question */
		return 1;
	}
	req->patient = path.to && weft_segment_is_patient(qp, wqe, psn);
	if (path.to)
		return weft_segment_send_burst(qp, wqe, path.to, av, &seg, psn, room);
	return weft_segment_send_batch(qp, wqe, path.ndev, av, &seg, psn, room);
}
