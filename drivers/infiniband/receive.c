// SPDX-License-Identifier: GPL-2.0
/*
 * Receive path: decode, check, find the QP, hand over.
 *
 * Read upward from weft_receive(), which rx.c calls from NAPI with a packet from a wire: parse,
 * ICRC, QP, transport, keys and addresses → responder.c (requests), completer.c (responses) or
 * datagram.c. weft_receive_burst() does the same with packets of this host, which come decoded.
 * Each way out that drops a packet has a counter.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <rdma/ib_mad.h>
#include <weft/icrc.h>
#include <weft/opcode.h>

#include "burst.h"
#include "crc.h"
#include "frags.h"
#include "ip.h"
#include "mcast.h"
#include "qp.h"
#include "rx.h"

static void weft_count_parse_drop(struct weft_dev *dev, enum weft_drop drop)
{
	switch (drop) {
	case WEFT_DROP_VERSION:
		weft_count(dev, rx_drop_version);
		break;
	case WEFT_DROP_OPCODE:
		weft_count(dev, rx_drop_opcode);
		break;
	case WEFT_DROP_LENGTH:
		weft_count(dev, rx_drop_length);
		break;
	default:
		weft_count(dev, rx_drop_truncated);
		break;
	}
}

static bool weft_icrc_ok(const struct sk_buff *skb)
{
	const struct weft_rx_cb *cb = WEFT_RX_CB(skb);
	u32 len = skb->len - WEFT_ICRC_LEN;
	weft_crc32_fn crc = weft_crc_begin(len);
	__le32 icrc, got;

	icrc = weft_skb_icrc(skb, 0, len, skb->head + cb->ip_offset, cb->ip_len, cb->v6, crc);
	weft_crc_end(crc);
	skb_copy_bits(skb, len, &got, sizeof(got));
	return icrc == got;
}

unsigned int weft_source_ip_header(const struct weft_source *src, void *to)
{
	const struct weft_rx_cb *cb;
	unsigned int len;

	if (src->burst)
		return weft_burst_ip_header(src->burst, to);
	cb = WEFT_RX_CB(src->skb);
	len = cb->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	memcpy(to, src->skb->head + cb->ip_offset, len);
	return len;
}

/* Addresses of the packet, IPv4 as ::ffff:a.b.c.d. */
static void weft_packet_addresses(const struct sk_buff *skb, struct in6_addr *saddr,
				  struct in6_addr *daddr)
{
	const struct weft_rx_cb *cb = WEFT_RX_CB(skb);
	const struct ipv6hdr *ip6 = (void *)skb->head + cb->ip_offset;
	const struct iphdr *ip = (void *)ip6;

	if (cb->v6) {
		*saddr = ip6->saddr;
		*daddr = ip6->daddr;
	} else {
		ipv6_addr_set_v4mapped(ip->saddr, saddr);
		ipv6_addr_set_v4mapped(ip->daddr, daddr);
	}
}

/* A connected QP takes packets of its peer only. */
static bool weft_peer_ok(const struct weft_qp *qp, const struct weft_source *src)
{
	return ipv6_addr_equal(src->saddr, &qp->av.daddr) &&
	       ipv6_addr_equal(src->daddr, &qp->av.saddr);
}

/* Two P_Keys match if their low 15 bits do and one is of a full member (IBTA 10.9.3); ours is. */
static bool weft_pkey_ok(u16 pkey)
{
	return (pkey & 0x7fff) == (WEFT_PKEY_DEFAULT & 0x7fff);
}

static bool weft_qkey_ok(const struct weft_qp *qp, u32 qkey)
{
	return qkey == (qp->type == IB_QPT_GSI ? IB_QP1_QKEY : qp->attr.qkey);
}

/* Checks that need the QP; each failure is counted. */
static bool weft_packet_ok(struct weft_qp *qp, const struct weft_source *src,
			   const struct weft_pkt *pkt)
{
	struct weft_dev *dev = qp->dev;

	if ((pkt->opcode & WEFT_TRANSPORT_MASK) != qp->transport) {
		weft_count(dev, rx_drop_qp_type);
		return false;
	}
	if (!weft_pkey_ok(pkt->pkey)) {
		weft_count(dev, rx_drop_pkey);
		return false;
	}
	if (qp->transport == WEFT_UD) {
		if (weft_qkey_ok(qp, pkt->qkey))
			return true;
		weft_count(dev, rx_drop_qkey);
		return false;
	}
	/* Pairs with the release in weft_modify_qp(): the address vector is set before RTR. */
	if (smp_load_acquire(&qp->state) < IB_QPS_RTR) {
		weft_count(dev, rx_drop_qp_state);
		return false;
	}
	if (!weft_peer_ok(qp, src)) {
		weft_count(dev, rx_drop_address);
		return false;
	}
	return true;
}

static void weft_deliver_ok(struct weft_qp *qp, const struct weft_source *src,
			    const struct weft_pkt *pkt)
{
	if (qp->transport == WEFT_UD)
		weft_datagram_receive(qp, src, pkt);
	else if (pkt->op->flags & WEFT_OP_REQUEST)
		weft_responder_receive(qp, src, pkt);
	else
		weft_completer_receive(qp, src, pkt);
}

static void weft_deliver(struct weft_qp *qp, const struct weft_source *src,
			 const struct weft_pkt *pkt)
{
	if (weft_packet_ok(qp, src, pkt))
		weft_deliver_ok(qp, src, pkt);
}

struct weft_mcast_packet {
	const struct weft_source *src;
	const struct weft_pkt *pkt;
};

static void weft_deliver_mcast(struct weft_qp *qp, void *arg)
{
	const struct weft_mcast_packet *packet = arg;

	weft_deliver(qp, packet->src, packet->pkt);
}

/* The QP that the packets are for. NULL, and counted: there is none. */
static struct weft_qp *weft_receive_qp(struct weft_dev *dev, u32 qpn)
{
	struct weft_qp *qp = qpn == 1 ? rcu_dereference(dev->gsi) : weft_qp_find(qpn);

	return qp && qp->dev == dev ? qp : NULL;
}

static void weft_receive_packet(struct weft_dev *dev, const struct sk_buff *skb,
				const struct weft_pkt *pkt)
{
	struct in6_addr saddr, daddr;
	struct weft_source src = {
		.skb = skb,
		.offset = pkt->hdr_len,
		.v6 = WEFT_RX_CB(skb)->v6,
		.saddr = &saddr,
		.daddr = &daddr,
	};
	struct weft_mcast_packet mcast = { &src, pkt };
	struct weft_qp *qp;

	weft_packet_addresses(skb, &saddr, &daddr);
	if (pkt->qpn == WEFT_QPN_MULTICAST)
		return weft_mcast_for_each(dev, &daddr, weft_deliver_mcast, &mcast);
	qp = weft_receive_qp(dev, pkt->qpn);
	if (qp)
		weft_deliver(qp, &src, pkt);
	else
		weft_count(dev, rx_drop_qpn);
}

/* A congestion notification: BTH, 16 reserved bytes, ICRC; its opcode is of no QP's transport. */
static bool weft_receive_cnp(struct weft_dev *dev, const struct sk_buff *skb)
{
	if (skb->len != sizeof(struct weft_bth) + 16 + WEFT_ICRC_LEN ||
	    skb->data[0] != WEFT_OPCODE_CNP)
		return false;
	if (weft_icrc_ok(skb))
		weft_count(dev, rx_cnp);
	else
		weft_count(dev, rx_drop_icrc);
	return true;
}

void weft_receive(struct weft_dev *dev, struct sk_buff *skb)
{
	enum weft_drop drop;
	struct weft_pkt pkt;

	weft_count(dev, rcvd_pkts);
	weft_count_add(dev, rcvd_bytes, skb->len);
	if (weft_receive_cnp(dev, skb))
		goto free;
	drop = weft_pkt_parse(&pkt, skb->data, skb->len);
	if (drop != WEFT_DROP_NONE) {
		weft_count_parse_drop(dev, drop);
		goto free;
	}
	if (!weft_icrc_ok(skb)) {
		weft_count(dev, rx_drop_icrc);
		goto free;
	}
	weft_receive_packet(dev, skb, &pkt);
free:
	consume_skb(skb);
}

/* Takes the burst's header from packet to packet. */
static void weft_burst_deliver(struct weft_dev *dev, struct weft_qp *qp, struct weft_burst *burst)
{
	struct weft_pkt *pkt = &burst->pkt;
	struct weft_source src = {
		.burst = burst,
		.v6 = burst->av.v6,
		.saddr = &burst->av.saddr,
		.daddr = &burst->av.daddr,
	};
	u32 bad_icrcs = burst->has_icrc ? weft_burst_bad_icrcs(burst) : 0;
	bool ok = false;
	u32 i = 0;

	for (;;) {
		src.more = i + 1 < burst->num;
		if (bad_icrcs & BIT(i)) {
			weft_count(dev, rx_drop_icrc);
		} else {
			/* Where one packet is right, those behind it are. */
			ok = ok || weft_packet_ok(qp, &src, pkt);
			if (ok)
				weft_deliver_ok(qp, &src, pkt);
		}
		if (++i == burst->num)
			break;
		weft_burst_step(burst, i, pkt);
		src.offset += burst->mtu;
	}
}

void weft_receive_burst(struct weft_dev *dev, struct weft_burst *burst)
{
	struct weft_qp *qp;

	weft_count_add(dev, rcvd_pkts, burst->num);
	weft_count_add(dev, rcvd_bytes, burst->bytes);
	if (!burst->has_icrc)
		weft_count_add(dev, rx_icrc_offloaded, burst->num);
	qp = weft_receive_qp(dev, burst->pkt.qpn);
	if (!qp)
		weft_count_add(dev, rx_drop_qpn, burst->num);
	else if (!weft_burst_open(burst))
		weft_count_add(dev, rx_drop_sender_mr, burst->num);
	else
		weft_burst_deliver(dev, qp, burst);
	weft_burst_free(burst);
}

void weft_receive_ack(struct weft_dev *dev, const struct weft_av *av, const struct weft_pkt *pkt,
		      u32 bytes)
{
	struct weft_source src = { .v6 = av->v6, .saddr = &av->saddr, .daddr = &av->daddr };
	struct weft_qp *qp = weft_receive_qp(dev, pkt->qpn);

	weft_count(dev, rcvd_pkts);
	weft_count_add(dev, rcvd_bytes, bytes);
	weft_count(dev, rx_icrc_offloaded);
	if (!qp)
		weft_count(dev, rx_drop_qpn);
	else if (weft_packet_ok(qp, &src, pkt))
		weft_completer_receive(qp, &src, pkt);
}
