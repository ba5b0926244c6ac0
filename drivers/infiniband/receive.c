// SPDX-License-Identifier: GPL-2.0
/*
 * Receive path of one packet: decode, check, find the QP, hand over.
 *
 * Read upward from weft_receive(), which rx.c calls from NAPI: parse, ICRC, QP, transport, keys
 * and addresses → responder.c (requests), completer.c (responses) or datagram.c. Each way out that
 * drops the packet has a counter.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <rdma/ib_mad.h>
#include <weft/icrc.h>
#include <weft/opcode.h>

#include "crc.h"
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

static bool weft_icrc_ok(struct weft_dev *dev, const struct sk_buff *skb)
{
	const struct weft_rx_cb *cb = WEFT_RX_CB(skb);
	const void *ip = skb->head + cb->ip_offset;
	const void *udp = ip + cb->ip_len;
	const u8 *bth = skb->data;
	size_t end = skb->len - WEFT_ICRC_LEN;
	u32 crc;

	if (cb->icrc_offloaded) {
		weft_count(dev, rx_icrc_offloaded);
		return true;
	}
	crc = cb->v6 ? weft_icrc_v6(weft_crc32, ip, udp, bth)
		     : weft_icrc_v4(weft_crc32, ip, cb->ip_len, udp, bth);
	crc = weft_crc32(crc, bth + sizeof(struct weft_bth), end - sizeof(struct weft_bth));
	return !memcmp(&(__le32){ weft_icrc_finish(crc) }, bth + end, WEFT_ICRC_LEN);
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
static bool weft_peer_ok(const struct weft_qp *qp, const struct sk_buff *skb)
{
	struct in6_addr saddr, daddr;

	weft_packet_addresses(skb, &saddr, &daddr);
	return ipv6_addr_equal(&saddr, &qp->av.daddr) && ipv6_addr_equal(&daddr, &qp->av.saddr);
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
static bool weft_packet_ok(struct weft_qp *qp, const struct sk_buff *skb,
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
	if (!weft_peer_ok(qp, skb)) {
		weft_count(dev, rx_drop_address);
		return false;
	}
	return true;
}

static void weft_deliver(struct weft_qp *qp, const struct sk_buff *skb, const struct weft_pkt *pkt)
{
	if (!weft_packet_ok(qp, skb, pkt))
		return;
	if (qp->transport == WEFT_UD)
		weft_datagram_receive(qp, skb, pkt);
	else if (pkt->op->flags & WEFT_OP_REQUEST)
		weft_responder_receive(qp, skb, pkt);
	else
		weft_completer_receive(qp, skb, pkt);
}

struct weft_mcast_packet {
	const struct sk_buff *skb;
	const struct weft_pkt *pkt;
};

static void weft_deliver_mcast(struct weft_qp *qp, void *arg)
{
	const struct weft_mcast_packet *packet = arg;

	weft_deliver(qp, packet->skb, packet->pkt);
}

static void weft_receive_mcast(struct weft_dev *dev, const struct sk_buff *skb,
			       const struct weft_pkt *pkt)
{
	struct weft_mcast_packet packet = { skb, pkt };
	struct in6_addr saddr, mgid;

	weft_packet_addresses(skb, &saddr, &mgid);
	weft_mcast_for_each(dev, &mgid, weft_deliver_mcast, &packet);
}

static void weft_receive_qp(struct weft_dev *dev, const struct sk_buff *skb,
			    const struct weft_pkt *pkt)
{
	struct weft_qp *qp;

	if (pkt->qpn == WEFT_QPN_MULTICAST)
		return weft_receive_mcast(dev, skb, pkt);
	qp = pkt->qpn == 1 ? rcu_dereference(dev->gsi) : weft_qp_find(pkt->qpn);
	if (qp && qp->dev == dev)
		weft_deliver(qp, skb, pkt);
	else
		weft_count(dev, rx_drop_qpn);
}

/* A congestion notification: BTH, 16 reserved bytes, ICRC; its opcode is of no QP's transport. */
static bool weft_receive_cnp(struct weft_dev *dev, const struct sk_buff *skb)
{
	if (skb->len != sizeof(struct weft_bth) + 16 + WEFT_ICRC_LEN ||
	    skb->data[0] != WEFT_OPCODE_CNP)
		return false;
	if (weft_icrc_ok(dev, skb))
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
	if (skb_linearize(skb)) {
		weft_count(dev, rx_drop_nomem);
		goto free;
	}
	if (weft_receive_cnp(dev, skb))
		goto free;
	drop = weft_pkt_parse(&pkt, skb->data, skb->len);
	if (drop != WEFT_DROP_NONE) {
		weft_count_parse_drop(dev, drop);
		goto free;
	}
	if (!weft_icrc_ok(dev, skb)) {
		weft_count(dev, rx_drop_icrc);
		goto free;
	}
	rcu_read_lock();
	weft_receive_qp(dev, skb, &pkt);
	rcu_read_unlock();
free:
	consume_skb(skb);
}
