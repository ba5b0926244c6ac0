// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit path of one packet that goes through the IP stack: headers, ICRC, route, out. What stays
 * on the host takes the shorter way of burst.c.
 *
 * skb->destructor gives the flow its credit back wherever the skb ends, also after the QP is gone.
 */
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/wait.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <weft/icrc.h>
#include <weft/opcode.h>

#include "crc.h"
#include "ip.h"
#include "path.h"
#include "qp.h"
#include "rx.h"

/* skbs that still call into this module; the module's exit waits for them. */
static atomic_t weft_skbs_out = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(weft_skbs_none);

enum {
	WEFT_TX_HEADROOM = LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
			   WEFT_HDR_MAX
};

/* --- flow --- */

struct weft_tx_flow *weft_tx_flow_alloc(struct weft_qp *qp)
{
	struct weft_tx_flow *flow = kzalloc(sizeof(*flow), GFP_KERNEL);

	if (!flow)
		return NULL;
	refcount_set(&flow->refs, 1);
	rcu_assign_pointer(flow->qp, qp);
	spin_lock_init(&flow->route_lock);
	return flow;
}

static void weft_tx_flow_put(struct weft_tx_flow *flow)
{
	if (!refcount_dec_and_test(&flow->refs))
		return;
	dst_release(flow->dst);
	kfree_rcu(flow, rcu);
}

void weft_tx_flow_reset(struct weft_tx_flow *flow)
{
	struct dst_entry *dst;

	spin_lock_bh(&flow->route_lock);
	dst = flow->dst;
	flow->dst = NULL;
	spin_unlock_bh(&flow->route_lock);
	dst_release(dst);
}

void weft_tx_flow_detach(struct weft_tx_flow *flow)
{
	rcu_assign_pointer(flow->qp, NULL);
	/* A route pins its netdev: do not leave that to skbs that somebody keeps. */
	weft_tx_flow_reset(flow);
	weft_tx_flow_put(flow);
}

void weft_tx_flow_take(struct weft_tx_flow *flow, u32 packets)
{
	refcount_inc(&flow->refs);
	atomic_add(packets, &flow->inflight);
}

void weft_tx_flow_give(struct weft_tx_flow *flow, u32 packets)
{
	struct weft_qp *qp;

	if (atomic_sub_return(packets, &flow->inflight) <= WEFT_TX_INFLIGHT_LOW) {
		smp_mb__after_atomic(); /* pairs with the one in weft_tx_full() */
		if (atomic_read(&flow->stopped) && atomic_xchg(&flow->stopped, 0)) {
			/* The QP is not freed before a grace period after detach. */
			rcu_read_lock();
			qp = rcu_dereference(flow->qp);
			if (qp)
				weft_qp_schedule(qp);
			rcu_read_unlock();
		}
	}
	weft_tx_flow_put(flow);
}

static void weft_tx_destructor(struct sk_buff *skb)
{
	weft_tx_flow_give(skb_shinfo(skb)->destructor_arg, 1);
	if (atomic_dec_and_test(&weft_skbs_out))
		wake_up(&weft_skbs_none);
}

static void weft_tx_own(struct weft_tx_flow *flow, struct sk_buff *skb)
{
	weft_tx_flow_take(flow, 1);
	atomic_inc(&weft_skbs_out);
	skb_shinfo(skb)->destructor_arg = flow;
	skb->destructor = weft_tx_destructor;
}

bool weft_tx_owns(const struct sk_buff *skb)
{
	return skb->destructor == weft_tx_destructor;
}

void weft_tx_drain(void)
{
	wait_event(weft_skbs_none, !atomic_read(&weft_skbs_out));
	/*
	 * The last destructor may still be between its wake-up and its return, within a BH-off
	 * section.
	 */
	synchronize_rcu();
}

/* --- headers --- */

struct sk_buff *weft_tx_alloc(struct weft_qp *qp, const struct weft_pkt *pkt, void **payload)
{
	u32 pad = weft_pad(pkt->payload_len);
	u32 len = pkt->payload_len + pad + WEFT_ICRC_LEN;
	struct sk_buff *skb = alloc_skb(WEFT_TX_HEADROOM + len, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_reserve(skb, WEFT_TX_HEADROOM);
	*payload = skb_put(skb, len);
	memset(*payload + pkt->payload_len, 0, pad);
	return skb;
}

static void weft_tx_push_ip(struct weft_qp *qp, const struct weft_av *av, struct sk_buff *skb)
{
	u16 udp_len;

	skb_push(skb, sizeof(struct udphdr));
	skb_reset_transport_header(skb);
	udp_len = skb->len;
	weft_udp_build(udp_hdr(skb), qp->src_port, udp_len);

	skb_push(skb, weft_ip_len(av));
	skb_reset_network_header(skb);
	weft_ip_build(skb_network_header(skb), av, udp_len, weft_tx_flow_ids(qp->flow, 1));
	skb->protocol = av->v6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	if (av->v6)
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	else
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
}

static void weft_tx_icrc(const struct weft_av *av, const struct weft_pkt *pkt, struct sk_buff *skb)
{
	u8 *end = skb_tail_pointer(skb) - WEFT_ICRC_LEN;
	u8 *payload = skb_transport_header(skb) + sizeof(struct udphdr) + pkt->op->hdr_len;
	__le32 icrc;
	u32 crc;

	crc = weft_ip_icrc(skb_network_header(skb), weft_ip_len(av), av->v6, pkt->op->hdr_len);
	icrc = weft_icrc_finish(weft_crc32(crc, payload, end - payload));
	memcpy(end, &icrc, sizeof(icrc));
}

int weft_tx_send(struct weft_qp *qp, struct net_device *ndev, const struct weft_av *av,
		 const struct weft_pkt *pkt, struct sk_buff *skb)
{
	struct net *net = dev_net(ndev);
	struct dst_entry *dst;
	int err;

	weft_pkt_build(skb_push(skb, pkt->op->hdr_len), pkt);
	weft_count(qp->dev, sent_pkts);
	weft_count_add(qp->dev, sent_bytes, skb->len);

	weft_tx_push_ip(qp, av, skb);
	weft_tx_own(qp->flow, skb);
	dst = weft_route_get(qp, ndev, av);
	if (!dst) {
		weft_count(qp->dev, no_route);
		kfree_skb(skb);
		return -ENETUNREACH;
	}
	weft_tx_icrc(av, pkt, skb);
	skb_dst_set(skb, dst);
	skb->priority = rt_tos2priority(av->tclass);
	err = av->v6 ? ip6_local_out(net, NULL, skb) : ip_local_out(net, NULL, skb);
	err = net_xmit_eval(err);
	if (err)
		weft_count(qp->dev, send_err);
	return err < 0 ? err : err ? -ENOBUFS : 0;
}
