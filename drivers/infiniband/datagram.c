// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: what arrives for a UD QP or the GSI QP becomes a receive completion.
 *
 * The first 40 bytes of the receive buffer are the GRH's place; for RoCEv2 they hold the IPv6
 * header, or 20 unused bytes and the IPv4 header.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "qp.h"
#include "rx.h"

enum { WEFT_GRH_LEN = 40 };
BUILD_BUG_ON_SIZE(struct ib_grh, 40);

static int weft_grh_place(struct weft_qp *qp, const struct weft_rwqe *rwqe,
			  const struct weft_source *src)
{
	u8 grh[WEFT_GRH_LEN] = {};
	u8 ip[sizeof(struct ipv6hdr)];
	size_t len;

	len = weft_source_ip_header(src, ip);
	memcpy(grh + sizeof(grh) - len, ip, len);
	return weft_buf_to_sge(&qp->resp.keys, rwqe->sge, rwqe->num_sge, 0, grh, sizeof(grh));
}

static void weft_datagram_complete(struct weft_qp *qp, const struct weft_rwqe *rwqe,
				   const struct weft_source *src, const struct weft_pkt *pkt,
				   enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_id = rwqe->wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.qp = &qp->ibqp,
		.src_qp = pkt->src_qpn,
		.wc_flags = IB_WC_GRH,
		.port_num = WEFT_PORT,
	};

	if (status != IB_WC_SUCCESS) {
		weft_count(qp->dev, resp_cqe_error);
	} else {
		wc.byte_len = WEFT_GRH_LEN + pkt->payload_len;
		weft_count(qp->dev, rdma_recvs);
	}
	if (pkt->op->flags & WEFT_OP_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = pkt->imm;
	}
	if (!qp->is_user) {
		wc.wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		wc.network_hdr_type = src->v6 ? RDMA_NETWORK_IPV6 : RDMA_NETWORK_IPV4;
	}
	if (weft_cq_post(qp->rcq, &wc, pkt->solicited) || status != IB_WC_SUCCESS)
		qp->resp.broken = true;
}

/*
 * The receive WQE that the next datagram goes to. It stays the next one's if this datagram does not
 * fit: a peer cannot end a QP with a datagram that is too long.
 */
static int weft_datagram_rwqe(struct weft_qp *qp)
{
	struct weft_resp *resp = &qp->resp;
	int err;

	if (resp->have_rwqe)
		return 0;
	err = qp->srq ? weft_srq_pop(qp->srq, &resp->rwqe) : weft_rq_pop(&qp->rq, &resp->rwqe);
	resp->have_rwqe = !err;
	return err;
}

static void weft_datagram_take(struct weft_qp *qp, const struct weft_source *src,
			       const struct weft_pkt *pkt)
{
	struct weft_rwqe *rwqe = &qp->resp.rwqe;
	enum ib_wc_status status = IB_WC_SUCCESS;
	int err = weft_datagram_rwqe(qp);

	if (err == -ENOENT) {
		weft_count(qp->dev, rx_drop_no_recv_wqe);
		return;
	}
	if (!err && (u64)WEFT_GRH_LEN + pkt->payload_len > rwqe->length) {
		weft_count(qp->dev, rx_drop_length);
		return;
	}
	qp->resp.have_rwqe = false;
	if (err) {
		weft_count(qp->dev, recv_queue_invalid);
		status = IB_WC_LOC_QP_OP_ERR;
	} else if (weft_grh_place(qp, rwqe, src) ||
		   weft_source_to_sge(&qp->resp.keys, rwqe->sge, rwqe->num_sge, WEFT_GRH_LEN,
				      src, pkt->payload_len)) {
		status = IB_WC_LOC_PROT_ERR;
	}
	weft_datagram_complete(qp, rwqe, src, pkt, status);
}

void weft_datagram_receive(struct weft_qp *qp, const struct weft_source *src,
			   const struct weft_pkt *pkt)
{
	bool broken = false;

	spin_lock(&qp->resp.lock);
	if (qp->resp.broken || qp->state < IB_QPS_RTR || qp->state > IB_QPS_SQE) {
		weft_count(qp->dev, rx_drop_qp_state);
	} else {
		weft_datagram_take(qp, src, pkt);
		broken = qp->resp.broken;
	}
	spin_unlock(&qp->resp.lock);
	if (broken)
		weft_qp_error(qp);
}
