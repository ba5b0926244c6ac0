// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit path of one packet: headers, ICRC, route, out.
 *
 * weft_tx_send() takes one of two ways. The wire: through the IP stack, with a complete ICRC. The
 * same host, when the destination is a link's own address and nobody taps: straight into that
 * link's receive queue, the same bytes but for the ICRC, which only a wire needs (`icrc always`
 * computes and checks it all the same).
 *
 * skb->destructor gives the flow its credit back wherever the skb ends, also after the QP is gone.
 */
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/wait.h>
#include <net/addrconf.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <rdma/ib_cache.h>
#include <weft/icrc.h>
#include <weft/opcode.h>

#include "crc.h"
#include "gid.h"
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

static void weft_tx_destructor(struct sk_buff *skb)
{
	struct weft_tx_flow *flow = skb_shinfo(skb)->destructor_arg;
	struct weft_qp *qp;

	if (atomic_dec_return(&flow->inflight) <= WEFT_TX_INFLIGHT_LOW) {
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
	if (atomic_dec_and_test(&weft_skbs_out))
		wake_up(&weft_skbs_none);
}

static void weft_tx_own(struct weft_tx_flow *flow, struct sk_buff *skb)
{
	refcount_inc(&flow->refs);
	atomic_inc(&flow->inflight);
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

/* --- route --- */

static struct dst_entry *weft_route_v4(struct net *net, const struct weft_av *av, int oif)
{
	struct flowi4 fl;
	struct rtable *rt;

	/* An address of the host itself is reached through lo, whichever netdev has it. */
	if (inet_addr_type(net, av->daddr.s6_addr32[3]) == RTN_LOCAL)
		oif = 0;
	flowi4_init_output(&fl, oif, 0, av->tclass & ~INET_ECN_MASK, RT_SCOPE_UNIVERSE,
			   IPPROTO_UDP, 0, av->daddr.s6_addr32[3], av->saddr.s6_addr32[3], 0, 0,
			   GLOBAL_ROOT_UID);
	rt = ip_route_output_key(net, &fl);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *weft_route_v6(struct net *net, const struct weft_av *av, int oif)
{
	struct flowi6 fl = {
		.flowi6_oif = oif,
		.saddr = av->saddr,
		.daddr = av->daddr,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl);

	if (!dst->error)
		return dst;
	dst_release(dst);
	return NULL;
}

static struct dst_entry *weft_route_lookup(struct net_device *ndev, const struct weft_av *av)
{
	struct net *net = dev_net(ndev);

	return av->v6 ? weft_route_v6(net, av, ndev->ifindex)
		      : weft_route_v4(net, av, ndev->ifindex);
}

static u32 weft_route_cookie(const struct weft_av *av, const struct dst_entry *dst)
{
	return av->v6 ? rt6_get_cookie(container_of(dst, struct rt6_info, dst)) : 0;
}

/* A reference to the route for @av; the QP's own address vector has it cached. */
static struct dst_entry *weft_route_get(struct weft_qp *qp, struct net_device *ndev,
					const struct weft_av *av)
{
	struct weft_tx_flow *flow = qp->flow;
	struct dst_entry *dst;

	if (av != &qp->av)
		return weft_route_lookup(ndev, av);
	spin_lock(&flow->route_lock);
	dst = flow->dst;
	if (dst && !dst_check(dst, flow->dst_cookie)) {
		dst_release(dst);
		dst = NULL;
	}
	if (!dst) {
		dst = weft_route_lookup(ndev, av);
		if (dst)
			flow->dst_cookie = weft_route_cookie(av, dst);
		flow->dst = dst;
	}
	if (dst)
		dst_hold(dst);
	spin_unlock(&flow->route_lock);
	return dst;
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

static void weft_tx_push_udp(const struct weft_qp *qp, struct sk_buff *skb)
{
	struct udphdr *udp;

	udp = skb_push(skb, sizeof(*udp));
	skb_reset_transport_header(skb);
	udp->source = htons(qp->src_port);
	udp->dest = htons(WEFT_UDP_PORT);
	udp->len = htons(skb->len);
	udp->check = 0;
}

static u8 weft_hop_limit(const struct weft_av *av)
{
	return av->hop_limit ? av->hop_limit : IPDEFTTL;
}

static void weft_tx_push_v4(struct weft_tx_flow *flow, const struct weft_av *av,
			    struct sk_buff *skb)
{
	struct iphdr *ip;

	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = av->tclass,
		.tot_len = htons(skb->len),
		.id = htons(atomic_inc_return(&flow->ip_id)),
		.frag_off = htons(IP_DF),
		.ttl = weft_hop_limit(av),
		.protocol = IPPROTO_UDP,
		.saddr = av->saddr.s6_addr32[3],
		.daddr = av->daddr.s6_addr32[3],
	};
	ip->check = ip_fast_csum(ip, ip->ihl);
	skb->protocol = htons(ETH_P_IP);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
}

static void weft_tx_push_v6(const struct weft_av *av, struct sk_buff *skb)
{
	u32 payload_len = skb->len;
	struct ipv6hdr *ip6;

	ip6 = skb_push(skb, sizeof(*ip6));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip6, av->tclass, htonl(av->flow_label) & IPV6_FLOWLABEL_MASK);
	ip6->payload_len = htons(payload_len);
	ip6->nexthdr = IPPROTO_UDP;
	ip6->hop_limit = weft_hop_limit(av);
	ip6->saddr = av->saddr;
	ip6->daddr = av->daddr;
	skb->protocol = htons(ETH_P_IPV6);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
}

static void weft_tx_icrc(const struct weft_av *av, struct sk_buff *skb)
{
	const void *udp = skb_transport_header(skb);
	const u8 *bth = udp + sizeof(struct udphdr);
	const u8 *end = skb_tail_pointer(skb) - WEFT_ICRC_LEN;
	const void *ip = skb_network_header(skb);
	u32 crc;

	crc = av->v6 ? weft_icrc_v6(weft_crc32, ip, udp, bth)
		     : weft_icrc_v4(weft_crc32, ip, sizeof(struct iphdr), udp, bth);
	crc = weft_crc32(crc, bth + sizeof(struct weft_bth), end - bth - sizeof(struct weft_bth));
	memcpy((void *)end, &(__le32){ weft_icrc_finish(crc) }, WEFT_ICRC_LEN);
}

/* --- the two ways --- */

/* Link of this host whose QP @qpn has the address; NULL: another host, or nobody here. */
static struct weft_dev *weft_shortcut_peer(struct net *net, const struct weft_av *av, u32 qpn,
					   int ifindex)
{
	struct weft_dev *dev;
	struct weft_qp *qp;

	if (qpn == 1) {
		dev = weft_gid_find(net, &av->daddr, ifindex);
		return dev && rcu_access_pointer(dev->gsi) ? dev : NULL;
	}
	qp = weft_qp_find(qpn);
	return qp && weft_gid_owned(qp->dev, net, &av->daddr, ifindex) ? qp->dev : NULL;
}

/* The link to hand the packet to, or NULL: it goes through the stack, for somebody may watch. */
static struct weft_dev *weft_shortcut_to(struct weft_qp *qp, struct net_device *ndev,
					 const struct weft_av *av, u32 qpn)
{
	struct net *net = dev_net(ndev);
	struct net_device *peer;
	struct weft_dev *to;

	if (!READ_ONCE(qp->dev->cfg.shortcut) || qpn == WEFT_QPN_MULTICAST)
		return NULL;
	to = weft_shortcut_peer(net, av, qpn, ndev->ifindex);
	if (!to)
		return NULL;
	peer = rcu_dereference(to->netdev);
	if (!peer || !netif_running(peer) || !netif_running(ndev) || dev_nit_active(ndev) ||
	    dev_nit_active(net->loopback_dev))
		return NULL;
	return to;
}

static void weft_tx_shortcut(struct weft_qp *qp, struct weft_dev *to, const struct weft_av *av,
			     struct sk_buff *skb)
{
	struct weft_rx_cb *cb = WEFT_RX_CB(skb);
	u32 ip_len = skb_network_header_len(skb);

	cb->ip_offset = skb_network_header(skb) - skb->head;
	cb->ip_len = ip_len;
	cb->v6 = av->v6;
	cb->icrc_offloaded = !READ_ONCE(qp->dev->cfg.icrc_always);
	if (cb->icrc_offloaded)
		weft_count(qp->dev, tx_icrc_offloaded);
	else
		weft_tx_icrc(av, skb);
	weft_count(qp->dev, tx_shortcut_pkts);
	__skb_pull(skb, ip_len + sizeof(struct udphdr));
	weft_rx_enqueue_here(to, skb);
}

static int weft_tx_wire(struct weft_qp *qp, struct net_device *ndev, const struct weft_av *av,
			struct sk_buff *skb)
{
	struct net *net = dev_net(ndev);
	struct dst_entry *dst = weft_route_get(qp, ndev, av);
	int err;

	if (!dst) {
		weft_count(qp->dev, no_route);
		kfree_skb(skb);
		return -ENETUNREACH;
	}
	weft_tx_icrc(av, skb);
	skb_dst_set(skb, dst);
	skb->priority = rt_tos2priority(av->tclass);
	err = av->v6 ? ip6_local_out(net, NULL, skb) : ip_local_out(net, NULL, skb);
	err = net_xmit_eval(err);
	if (err)
		weft_count(qp->dev, send_err);
	return err < 0 ? err : err ? -ENOBUFS : 0;
}

/*
 * The netdev that carries the GID the packet comes from: the link's own, or a VLAN of it. Under
 * RCU.
 */
static struct net_device *weft_tx_netdev(struct weft_qp *qp, const struct weft_av *av)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(&qp->dev->ib_dev, WEFT_PORT,
							   av->sgid_index);
	struct net_device *ndev;

	if (IS_ERR(attr))
		return NULL;
	ndev = rcu_dereference(attr->ndev);
	rdma_put_gid_attr(attr);
	return ndev;
}

int weft_tx_send(struct weft_qp *qp, const struct weft_av *av, const struct weft_pkt *pkt,
		 struct sk_buff *skb)
{
	struct net_device *ndev;
	struct weft_dev *to;
	void *hdr;
	int err = 0;

	hdr = skb_push(skb, pkt->op->hdr_len);
	weft_pkt_build(hdr, pkt);
	weft_count(qp->dev, sent_pkts);
	weft_count_add(qp->dev, sent_bytes, skb->len);

	rcu_read_lock();
	ndev = weft_tx_netdev(qp, av);
	if (!ndev) {
		weft_count(qp->dev, no_route);
		kfree_skb(skb);
		err = -ENODEV;
		goto unlock;
	}
	weft_tx_push_udp(qp, skb);
	if (av->v6)
		weft_tx_push_v6(av, skb);
	else
		weft_tx_push_v4(qp->flow, av, skb);
	weft_tx_own(qp->flow, skb);
	to = weft_shortcut_to(qp, ndev, av, pkt->qpn);
	if (to)
		weft_tx_shortcut(qp, to, av, skb);
	else
		err = weft_tx_wire(qp, ndev, av, skb);
unlock:
	rcu_read_unlock();
	return err;
}
