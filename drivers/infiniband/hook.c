// SPDX-License-Identifier: GPL-2.0
/*
 * Receive hooks: netfilter ingress per link, LOCAL_IN per network namespace that has a GID.
 *
 * Ingress sees what comes in on the link's netdev, before the IP stack; LOCAL_IN sees what reaches
 * an address of the host by any other way: lo, a VLAN or another upper netdev, ifb, a netdev that
 * does not own the address. Both classify without touching the packet. What belongs to a Weft QP is
 * taken, everything else passes unmodified: also a packet to a QPN that nobody has, which LOCAL_IN
 * only counts.
 *
 * From the moment a packet is taken the verdict is NF_STOLEN, whatever becomes of it. Multicast is
 * everybody's: Weft takes a clone, at ingress only.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <weft/bth.h>

#include "gid.h"
#include "hook.h"
#include "mcast.h"
#include "qp.h"
#include "rx.h"

/* QPNs that rdma_rxe may have given out: a packet to one of them may be its own. */
enum {
	WEFT_RXE_QPN_FIRST = 16,
	WEFT_RXE_QPN_LAST = 1 << 20,
};

/* What the classifier reads behind the IP header. */
struct weft_udp_bth {
	struct udphdr udp;
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;
} __packed;

struct weft_flow {
	struct in6_addr saddr; /* IPv4 as ::ffff:a.b.c.d */
	struct in6_addr daddr;
	__be16 sport;
	__be16 dport;
	u16 ip_len; /* bytes of the IP header */
	bool v6;
	bool has_qpn;
	u32 qpn;
};

struct weft_hook_net {
	unsigned int users; /* GIDs; under gid.c's lock */
};

static unsigned int weft_hook_net_id;

/* --- classify; skb->data is at the IP header and stays there --- */

static bool weft_flow_v4(struct weft_flow *flow, const struct sk_buff *skb)
{
	struct iphdr buf;
	const struct iphdr *ip = skb_header_pointer(skb, 0, sizeof(buf), &buf);

	if (!ip || ip->version != 4 || ip->ihl < 5 || ip->protocol != IPPROTO_UDP ||
	    ip_is_fragment(ip))
		return false;
	ipv6_addr_set_v4mapped(ip->saddr, &flow->saddr);
	ipv6_addr_set_v4mapped(ip->daddr, &flow->daddr);
	flow->ip_len = ip->ihl * 4;
	flow->v6 = false;
	return true;
}

/* An extension header, a fragment's too, stands where UDP would. */
static bool weft_flow_v6(struct weft_flow *flow, const struct sk_buff *skb)
{
	struct ipv6hdr buf;
	const struct ipv6hdr *ip = skb_header_pointer(skb, 0, sizeof(buf), &buf);

	if (!ip || ip->version != 6 || ip->nexthdr != IPPROTO_UDP)
		return false;
	flow->saddr = ip->saddr;
	flow->daddr = ip->daddr;
	flow->ip_len = sizeof(*ip);
	flow->v6 = true;
	return true;
}

static bool weft_flow_read(struct weft_flow *flow, const struct sk_buff *skb)
{
	const struct weft_udp_bth *bth;
	const struct udphdr *udp;
	struct weft_udp_bth buf;

	if (skb->protocol == htons(ETH_P_IP) ? !weft_flow_v4(flow, skb) :
	    skb->protocol != htons(ETH_P_IPV6) || !weft_flow_v6(flow, skb))
		return false;
	bth = skb_header_pointer(skb, flow->ip_len, sizeof(buf), &buf);
	flow->has_qpn = bth;
	udp = bth ? &bth->udp : skb_header_pointer(skb, flow->ip_len, sizeof(buf.udp), &buf);
	if (!udp || udp->dest != htons(WEFT_UDP_PORT))
		return false;
	if (ntohs(udp->len) < sizeof(buf))
		flow->has_qpn = false; /* what stands there is padding */
	if (flow->has_qpn)
		flow->qpn = be32_to_cpu(bth->qpn) & WEFT_QPN_MASK;
	flow->sport = udp->source;
	flow->dport = udp->dest;
	return true;
}

/* The link whose QP the packet is for. */
static struct weft_dev *weft_flow_owner(const struct weft_flow *flow, struct net *net, int ifindex)
{
	struct weft_dev *dev;
	struct weft_qp *qp;

	if (!flow->has_qpn)
		return NULL;
	if (flow->qpn == 1) {
		dev = weft_gid_find(net, &flow->daddr, ifindex);
		return dev && rcu_access_pointer(dev->gsi) ? dev : NULL;
	}
	qp = weft_qp_find(flow->qpn);
	return qp && weft_gid_owned(qp->dev, net, &flow->daddr, ifindex) ? qp->dev : NULL;
}

static bool weft_flow_is_multicast(const struct weft_flow *flow)
{
	return flow->v6 ? ipv6_addr_is_multicast(&flow->daddr) :
			  ipv4_is_multicast(flow->daddr.s6_addr32[3]);
}

static u32 weft_flow_hash(const struct weft_dev *dev, const struct weft_flow *flow)
{
	if (READ_ONCE(dev->num_rxq) == 1)
		return 0;
	if (flow->v6)
		return weft_rss_hash_v6(dev->rss_key, &flow->saddr, &flow->daddr, flow->sport,
					flow->dport);
	return weft_rss_hash_v4(dev->rss_key, flow->saddr.s6_addr32[3], flow->daddr.s6_addr32[3],
				flow->sport, flow->dport);
}

/* --- take; the skb is ours alone, apart from its data --- */

/*
 * Bytes of IP header and payload by the header's own word; 0: the header is broken. Headers are
 * linear.
 */
static u32 weft_ip_length(const struct sk_buff *skb, const struct weft_flow *flow)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;

	if (flow->v6)
		return sizeof(struct ipv6hdr) + ntohs(ipv6_hdr(skb)->payload_len);
	return ip_fast_csum(ip, ip->ihl) ? 0 : ntohs(ip->tot_len);
}

/* UDP checksum, which may be 0: not computed. skb->data is at UDP. */
static bool weft_udp_csum_ok(struct sk_buff *skb, const struct weft_flow *flow)
{
	__sum16 sum = udp_hdr(skb)->check;

	if (flow->v6)
		return !skb_checksum_validate_zero_check(skb, IPPROTO_UDP, sum, ip6_compute_pseudo);
	return !skb_checksum_validate_zero_check(skb, IPPROTO_UDP, sum, inet_compute_pseudo);
}

/*
 * Nothing validated the IP header at ingress, and Ethernet pads short frames. False: drop it as bad
 * IP.
 */
static bool weft_packet_trim(struct sk_buff *skb, const struct weft_flow *flow)
{
	u32 len = weft_ip_length(skb, flow);
	const struct udphdr *udp = (const struct udphdr *)(skb->data + flow->ip_len);

	if (len > skb->len || len < flow->ip_len + sizeof(*udp) ||
	    ntohs(udp->len) != len - flow->ip_len)
		return false;
	if (pskb_trim_rcsum(skb, len))
		return false;
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, flow->ip_len);
	skb_pull_rcsum(skb, flow->ip_len);
	if (!weft_udp_csum_ok(skb, flow))
		return false;
	__skb_pull(skb, sizeof(*udp));
	return true;
}

/* The lengths of a packet that stood for a batch; skb->data is at the IP header. */
static void weft_flow_set_length(const struct weft_flow *flow, struct sk_buff *skb)
{
	struct udphdr *udp = (struct udphdr *)(skb->data + flow->ip_len);
	struct iphdr *ip = (struct iphdr *)skb->data;

	udp->len = htons(skb->len - flow->ip_len);
	if (flow->v6) {
		((struct ipv6hdr *)ip)->payload_len = udp->len;
		return;
	}
	ip->tot_len = htons(skb->len);
	ip->check = 0;
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static void weft_packet_deliver(struct weft_dev *dev, struct sk_buff *skb,
				const struct weft_flow *flow, bool steered)
{
	const u32 headers = flow->ip_len + sizeof(struct udphdr) + WEFT_HDR_MAX;

	if (!pskb_may_pull(skb, min_t(u32, headers, skb->len))) {
		weft_count(dev, rx_drop_nomem);
		goto drop;
	}
	if (!weft_packet_trim(skb, flow)) {
		weft_count(dev, rx_drop_ip);
		goto drop;
	}

	/* A sender's socket must not wait for us; a Weft sender on this host shall. */
	if (!weft_tx_owns(skb))
		skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	*WEFT_RX_CB(skb) = (struct weft_rx_cb){
		.ip_offset = skb_network_header(skb) - skb->head,
		.ip_len = flow->ip_len,
		.v6 = flow->v6,
	};
	if (steered)
		weft_rx_inline(dev, skb);
	else
		weft_rx_enqueue(dev, skb, weft_flow_hash(dev, flow));
	return;

drop:
	kfree_skb(skb);
}

/*
 * A list of packets that have all their headers, but for the first one's lengths: those are the
 * batch's. @batch is ours alone, its list may be a tap's too.
 */
static void weft_list_deliver(struct weft_dev *dev, struct sk_buff *batch,
			      const struct weft_flow *flow, bool steered)
{
	struct sk_buff *list = skb_shinfo(batch)->frag_list, *skb, *next;
	struct sk_buff *rest = NULL, **end = &rest;
	u32 len = batch->len;

	skb_shinfo(batch)->frag_list = NULL;
	skb_gso_reset(batch);
	skb_list_walk_safe(list, skb, next) {
		len -= skb->len;
		batch->truesize -= skb->truesize;
		skb = skb_share_check(skb, GFP_ATOMIC);
		if (!skb) {
			weft_count(dev, rx_drop_nomem);
			continue;
		}
		skb_mark_not_on_list(skb);
		__skb_push(skb, -skb_network_offset(skb));
		*end = skb;
		end = &skb->next;
	}
	batch->data_len -= batch->len - len;
	batch->len = len;
	weft_flow_set_length(flow, batch);
	weft_packet_deliver(dev, batch, flow, steered);
	skb_list_walk_safe(rest, skb, next) {
		skb_mark_not_on_list(skb);
		weft_packet_deliver(dev, skb, flow, steered);
	}
}

/* A batch that GRO or the sender made: each packet has IP ID and ICRC of its own. */
static void weft_batch_deliver(struct weft_dev *dev, struct sk_buff *batch,
			       const struct weft_flow *flow, bool steered)
{
	struct sk_buff *segs = NULL, *skb, *next;

	if (skb_shinfo(batch)->gso_type & SKB_GSO_FRAGLIST) {
		if (!skb_unclone(batch, GFP_ATOMIC) &&
		    pskb_may_pull(batch, flow->ip_len + sizeof(struct udphdr)))
			return weft_list_deliver(dev, batch, flow, steered);
		weft_count(dev, rx_drop_nomem);
		kfree_skb(batch);
		return;
	}
	/*
	 * A merged batch has its checksum verified or still to be filled in; segmentation relies on
	 * it.
	 */
	if (batch->ip_summed != CHECKSUM_NONE)
		segs = __skb_gso_segment(batch, NETIF_F_SG | NETIF_F_HW_CSUM, false);
	if (IS_ERR_OR_NULL(segs)) {
		weft_count(dev, rx_drop_ip);
		kfree_skb(batch);
		return;
	}
	consume_skb(batch);
	skb_list_walk_safe(segs, skb, next) {
		skb_mark_not_on_list(skb);
		weft_packet_deliver(dev, skb, flow, steered);
	}
}

/* Consumes the skb, or its reference to it. */
static void weft_packet_take(struct weft_dev *dev, struct sk_buff *skb,
			     const struct weft_flow *flow)
{
	bool steered = skb->dev->real_num_rx_queues > 1 && skb_rx_queue_recorded(skb);

	skb = skb_share_check(skb, GFP_ATOMIC); /* taps hold it too */
	if (!skb || skb_orphan_frags_rx(skb, GFP_ATOMIC) || !skb_frags_readable(skb)) {
		weft_count(dev, rx_drop_nomem);
		kfree_skb(skb);
		return;
	}
	if (skb_is_gso(skb)) {
		if (!weft_tx_owns(skb))
			skb_orphan(skb);
		weft_batch_deliver(dev, skb, flow, steered);
	} else {
		weft_packet_deliver(dev, skb, flow, steered);
	}
}

static void weft_packet_take_clone(struct weft_dev *dev, struct sk_buff *skb,
				   const struct weft_flow *flow)
{
	struct sk_buff *clone = skb_clone(skb, GFP_ATOMIC);

	if (clone)
		weft_packet_take(dev, clone, flow);
	else
		weft_count(dev, rx_drop_nomem);
}

/* --- hooks --- */

/*
 * A tagged frame goes on to its VLAN netdev, and from there to LOCAL_IN; VLAN 0 is only a priority.
 */
static bool weft_skb_is_tagged(const struct sk_buff *skb)
{
	return skb_vlan_tag_present(skb) && skb_vlan_tag_get_id(skb);
}

static unsigned int weft_hook_ingress(void *priv, struct sk_buff *skb,
				      const struct nf_hook_state *state)
{
	struct weft_dev *link = priv;
	struct weft_flow flow;
	struct weft_dev *dev;

	if (skb->pkt_type == PACKET_OTHERHOST || weft_skb_is_tagged(skb) ||
	    !weft_flow_read(&flow, skb))
		return NF_ACCEPT;
	if (unlikely(weft_flow_is_multicast(&flow))) {
		if (flow.has_qpn && flow.qpn == WEFT_QPN_MULTICAST &&
		    weft_mcast_has_group(link, &flow.daddr))
			weft_packet_take_clone(link, skb, &flow);
		return NF_ACCEPT;
	}
	if (skb->pkt_type != PACKET_HOST)
		return NF_ACCEPT;
	dev = weft_flow_owner(&flow, state->net, skb->dev->ifindex);
	if (!dev)
		return NF_ACCEPT;
	weft_packet_take(dev, skb, &flow);
	return NF_STOLEN;
}

static bool weft_qpn_may_be_rxe(u32 qpn, const struct weft_dev *dev)
{
	return (qpn >= WEFT_RXE_QPN_FIRST && qpn <= WEFT_RXE_QPN_LAST) ||
	       (qpn == 1 && dev->gsi_refused);
}

/* Count what came to one of our addresses and nobody is known to take: a packet, or a batch. */
static void weft_count_stray(const struct sk_buff *skb, const struct weft_flow *flow,
			     struct net *net, int ifindex)
{
	u32 num = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;
	struct weft_dev *dev = weft_gid_find(net, &flow->daddr, ifindex);

	if (!dev)
		return;
	if (!flow->has_qpn)
		weft_count_add(dev, rx_drop_truncated, num);
	else if (!weft_qpn_may_be_rxe(flow->qpn, dev))
		weft_count_add(dev, rx_drop_qpn, num);
}

static bool weft_was_fragmented(const struct sk_buff *skb, bool v6)
{
	return v6 ? IP6CB(skb)->flags & IP6SKB_FRAGMENTED : IPCB(skb)->flags & IPSKB_FRAG_COMPLETE;
}

static unsigned int weft_hook_local_in(void *priv, struct sk_buff *skb,
				       const struct nf_hook_state *state)
{
	struct weft_flow flow;
	struct weft_dev *dev;
	int ifindex;

	if (!weft_flow_read(&flow, skb) || weft_flow_is_multicast(&flow) ||
	    weft_was_fragmented(skb, flow.v6))
		return NF_ACCEPT;
	/* On lo, the netdev that owns a link-local address is in the IPv6 control block. */
	ifindex = flow.v6 ? IP6CB(skb)->iif : 0;
	dev = weft_flow_owner(&flow, state->net, ifindex);
	if (!dev) {
		weft_count_stray(skb, &flow, state->net, ifindex);
		return NF_ACCEPT;
	}
	weft_packet_take(dev, skb, &flow);
	return NF_STOLEN;
}

int weft_hook_add(struct weft_dev *dev, struct net_device *netdev)
{
	int ret;

	ASSERT_RTNL();
	if (dev->ingress_hooked)
		return 0;
	/* Behind the user's own ingress rules, which may drop or police. */
	dev->ingress = (struct nf_hook_ops){
		.hook = weft_hook_ingress,
		.dev = netdev,
		.priv = dev,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MAX,
	};
	ret = nf_register_net_hook(dev_net(netdev), &dev->ingress);
	if (ret)
		return ret == -EOPNOTSUPP || ret == -EINVAL ? -EPROTONOSUPPORT : ret;
	dev->ingress_hooked = true;
	return 0;
}

/* nf would keep the hook over the netdev's end or move; dev_net() is still the old one in both. */
void weft_hook_remove(struct weft_dev *dev, struct net_device *netdev)
{
	ASSERT_RTNL();
	if (!dev->ingress_hooked)
		return;
	nf_unregister_net_hook(dev_net(netdev), &dev->ingress);
	dev->ingress_hooked = false;
}

/* First of all: like at ingress, and like on a hardware NIC, INPUT rules do not see RoCE. */
static const struct nf_hook_ops weft_local_in_ops = {
	.hook = weft_hook_local_in,
	.pf = NFPROTO_INET,
	.hooknum = NF_INET_LOCAL_IN,
	.priority = INT_MIN,
};

int weft_hook_get(struct net *net)
{
	struct weft_hook_net *hook = net_generic(net, weft_hook_net_id);
	int ret = 0;

	if (!hook->users)
		ret = nf_register_net_hook(net, &weft_local_in_ops);
	if (!ret)
		hook->users++;
	return ret;
}

void weft_hook_put(struct net *net)
{
	struct weft_hook_net *hook = net_generic(net, weft_hook_net_id);

	if (!--hook->users)
		nf_unregister_net_hook(net, &weft_local_in_ops);
}

static struct pernet_operations weft_hook_net_ops = {
	.exit = weft_gid_net_gone,
	.id = &weft_hook_net_id,
	.size = sizeof(struct weft_hook_net),
};

int weft_hook_init(void)
{
	return register_pernet_subsys(&weft_hook_net_ops);
}

void weft_hook_uninit(void)
{
	unregister_pernet_subsys(&weft_hook_net_ops);
	synchronize_net(); /* the last hook is gone; who still runs in it */
}
