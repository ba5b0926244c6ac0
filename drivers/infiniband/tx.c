// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit path of packets that go through the IP stack: headers, ICRC, route, out. What stays on
 * the host takes the shorter way of burst.c.
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

#include "cable.h"
#include "crc.h"
#include "frags.h"
#include "ip.h"
#include "path.h"
#include "qp.h"
#include "rx.h"

/* skbs that still call into this module; the module's exit waits for them. */
static atomic_t weft_skbs_out = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(weft_skbs_none);

enum {
	WEFT_TX_HEADROOM = LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
			   WEFT_HDR_MAX,
	WEFT_TX_LINEAR = 256, /* bytes of payload, pad and ICRC that need no fragment */
};

/* --- flow --- */

struct weft_tx_flow *weft_tx_flow_alloc(struct weft_qp *qp)
{
	struct weft_tx_flow *flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	u8 i;

	if (!flow)
		return NULL;
	refcount_set(&flow->refs, 1);
	rcu_assign_pointer(flow->qp, qp);
	spin_lock_init(&flow->route_lock);
	for (i = 0; i <= WEFT_TX_BATCH; i++)
		flow->tickets[i] = i;
	return flow;
}

void weft_tx_flow_free(struct weft_tx_flow *flow)
{
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

void weft_tx_flow_resume(struct weft_tx_flow *flow)
{
	struct weft_qp *qp;

	if (!atomic_xchg(&flow->stopped, 0))
		return;
	/* The QP is not freed before a grace period after detach. */
	rcu_read_lock();
	qp = rcu_dereference(flow->qp);
	if (qp)
		weft_qp_schedule(qp);
	rcu_read_unlock();
}

static void weft_tx_destructor(struct sk_buff *skb)
{
	const u8 *ticket = skb_shinfo(skb)->destructor_arg;

	weft_tx_flow_give(container_of(ticket - *ticket, struct weft_tx_flow, tickets[0]), *ticket);
	if (atomic_dec_and_test(&weft_skbs_out))
		wake_up(&weft_skbs_none);
}

/* The skb has @packets of the flow in it. */
static void weft_tx_own(struct weft_tx_flow *flow, struct sk_buff *skb, u32 packets)
{
	weft_tx_flow_take(flow, packets);
	atomic_inc(&weft_skbs_out);
	skb_shinfo(skb)->destructor_arg = &flow->tickets[packets];
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

/* --- one packet --- */

/* While it is built. */
struct weft_tx_cb {
	void *icrc;
};

#define WEFT_TX_CB(skb) ((struct weft_tx_cb *)(skb)->cb)

static struct sk_buff *weft_tx_alloc_linear(u32 len)
{
	struct sk_buff *skb = alloc_skb(WEFT_TX_HEADROOM + len, GFP_ATOMIC | __GFP_NOWARN);

	if (skb)
		skb_reserve(skb, WEFT_TX_HEADROOM);
	return skb;
}

/* What stands behind the payload: @pad zeros, and the ICRC's place. */
static void weft_tx_set_trailer(struct sk_buff *skb, void *trailer, u32 pad)
{
	memset(trailer, 0, pad);
	WEFT_TX_CB(skb)->icrc = trailer + pad;
}

/*
 * Large payload has pages of its own: they come in larger pieces, and need not be cleared one by
 * one.
 */
struct sk_buff *weft_tx_alloc(const struct weft_tx_batch *batch, const struct weft_pkt *pkt,
			      void **payload)
{
	u32 pad = weft_pad(pkt->payload_len);
	u32 len = pkt->payload_len + pad + WEFT_ICRC_LEN;
	bool linear = batch->linear || len <= WEFT_TX_LINEAR;
	struct sk_buff *skb = weft_tx_alloc_linear(linear ? len : 0);

	if (!skb)
		return NULL;
	*payload = linear ? skb_put(skb, len) : weft_frags_add_room(skb, len);
	if (!*payload) {
		kfree_skb(skb);
		return NULL;
	}
	weft_tx_set_trailer(skb, *payload + pkt->payload_len, pad);
	return skb;
}

struct sk_buff *weft_tx_alloc_named(const struct weft_tx_batch *batch, const struct weft_pkt *pkt,
				    struct weft_keys *keys, const struct ib_sge *sge, int num_sge,
				    u32 offset)
{
	u32 pad = weft_pad(pkt->payload_len);
	struct sk_buff *skb;
	void *trailer;

	/* Small payload is cheaper to copy; and what a tap sees must stay as it is. */
	if (batch->tapped || batch->linear ||
	    pkt->payload_len + pad + WEFT_ICRC_LEN <= WEFT_TX_LINEAR)
		return NULL;
	skb = weft_tx_alloc_linear(0);
	if (!skb)
		return NULL;
	if (!weft_frags_name_sge(skb, keys, sge, num_sge, offset, pkt->payload_len))
		goto free;
	trailer = weft_frags_add_room(skb, pad + WEFT_ICRC_LEN);
	if (!trailer)
		goto free;
	weft_tx_set_trailer(skb, trailer, pad);
	return skb;
free:
	kfree_skb(skb);
	return NULL;
}

static void weft_tx_push_ip(struct weft_qp *qp, const struct weft_av *av, u16 ip_id,
			    struct sk_buff *skb)
{
	u16 udp_len;

	skb_push(skb, sizeof(struct udphdr));
	skb_reset_transport_header(skb);
	udp_len = skb->len;
	weft_udp_build(udp_hdr(skb), qp->src_port, udp_len);

	skb_push(skb, weft_ip_len(av));
	skb_reset_network_header(skb);
	weft_ip_build(skb_network_header(skb), av, udp_len, ip_id);
	skb->protocol = av->v6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
}

/* --- batches --- */

/* Does somebody listen on the netdev, or at the other end of a veth pair? */
static bool weft_tx_is_tapped(struct net_device *out)
{
	struct net_device *far = weft_cable_far(out);

	return dev_nit_active(out) || (far && dev_nit_active(far));
}

int weft_tx_begin(struct weft_tx_batch *batch, struct weft_qp *qp, struct net_device *ndev,
		  const struct weft_av *av)
{
	*batch = (struct weft_tx_batch){ .av = av, .dst = weft_route_get(qp, ndev, av) };
	if (!batch->dst)
		return -ENETUNREACH;
	batch->tapped = weft_tx_is_tapped(batch->dst->dev);
	batch->linear = !(batch->dst->dev->features & NETIF_F_SG);
	return 0;
}

/*
 * The stack takes a batch for what GRO makes of a list of UDP packets, each with headers of its own
 * (SKB_GSO_FRAGLIST). Where the netdev has no scatter-gather, and hence no GSO of its own, it makes
 * packets of it as well, as for TCP: there it counts what the netdev was asked for.
 */
static bool weft_tx_takes_lists(const struct weft_tx_batch *batch)
{
	const struct net_device *out = batch->dst->dev;

	return (batch->linear ? out->wanted_features : out->features) & NETIF_F_GSO;
}

static bool weft_tx_may_batch(const struct weft_tx_batch *batch)
{
	return batch->dst && !batch->tapped && weft_tx_takes_lists(batch) && !dst_xfrm(batch->dst);
}

/* The stack gives the packets of a batch identifications that follow each other. */
u32 weft_tx_plan(struct weft_tx_batch *batch, struct weft_qp *qp, u32 payload_len, u32 want)
{
	u32 packet = WEFT_HDR_MAX + payload_len + 3 + WEFT_ICRC_LEN;
	u32 room = U16_MAX - sizeof(struct ipv6hdr) - sizeof(struct udphdr);
	u32 num = 1;

	if (want > 1 && weft_tx_may_batch(batch))
		num = min3(want, max_t(u32, room / packet, 1), (u32)WEFT_TX_BATCH);
	batch->ip_id = weft_tx_flow_ids(qp->flow, num);
	return num;
}

/* skb->data is at the IP header. */
static void weft_tx_chain(struct weft_tx_batch *batch, struct sk_buff *skb)
{
	u32 len = skb->len - skb_network_header_len(skb) - sizeof(struct udphdr);

	batch->num++;
	batch->bytes += len;
	if (!batch->first) {
		batch->first = skb;
		batch->size = len;
		return;
	}
	/* Where GRO leaves it. */
	__skb_pull(skb, skb_transport_offset(skb) + sizeof(struct udphdr));
	if (batch->last)
		batch->last->next = skb;
	else
		skb_shinfo(batch->first)->frag_list = skb;
	batch->last = skb;
	batch->first->len += skb->len;
	batch->first->data_len += skb->len;
	batch->first->truesize += skb->truesize;
}

void weft_tx_add(struct weft_tx_batch *batch, struct weft_qp *qp, const struct weft_pkt *pkt,
		 struct sk_buff *skb)
{
	weft_pkt_build(skb_push(skb, pkt->op->hdr_len), pkt);
	weft_tx_push_ip(qp, batch->av, batch->ip_id++, skb);
	weft_tx_chain(batch, skb);
}

/* @skb of the batch with @len bytes from BTH to ICRC. */
static void weft_tx_icrc(const struct weft_tx_batch *batch, struct sk_buff *skb, u32 len,
			 weft_crc32_fn crc)
{
	u32 bth = skb_transport_offset(skb) + sizeof(struct udphdr);
	__le32 icrc = weft_skb_icrc(skb, bth, len - WEFT_ICRC_LEN, skb_network_header(skb),
				    weft_ip_len(batch->av), batch->av->v6, crc);

	memcpy(WEFT_TX_CB(skb)->icrc, &icrc, sizeof(icrc));
}

static void weft_tx_icrcs(const struct weft_tx_batch *batch)
{
	weft_crc32_fn crc = weft_crc_begin(batch->bytes);
	struct sk_buff *skb;

	weft_tx_icrc(batch, batch->first, batch->size, crc);
	skb_walk_frags(batch->first, skb)
		weft_tx_icrc(batch, skb, skb->len, crc);
	weft_crc_end(crc);
}

static void weft_tx_make_batch(struct weft_tx_batch *batch)
{
	struct skb_shared_info *shinfo = skb_shinfo(batch->first);

	if (batch->num == 1)
		return;
	/* There is no UDP checksum; as with what GRO hands on, none is asked for. */
	batch->first->ip_summed = CHECKSUM_UNNECESSARY;
	shinfo->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_FRAGLIST;
	shinfo->gso_size = batch->size;
	shinfo->gso_segs = batch->num;
}

void weft_tx_send(struct weft_tx_batch *batch, struct weft_qp *qp)
{
	struct sk_buff *skb = batch->first;
	struct net *net;
	int err;

	if (!skb) {
		dst_release(batch->dst);
		return;
	}
	weft_count_add(qp->dev, sent_pkts, batch->num);
	weft_count_add(qp->dev, sent_bytes, batch->bytes);
	if (!batch->dst) {
		weft_count_add(qp->dev, no_route, batch->num);
		kfree_skb(skb);
		return;
	}
	weft_tx_icrcs(batch);
	weft_tx_make_batch(batch);
	weft_tx_own(qp->flow, skb, batch->num);
	memset(skb->cb, 0, sizeof(skb->cb));
	net = dev_net(batch->dst->dev);
	skb_dst_set(skb, batch->dst);
	skb->priority = rt_tos2priority(batch->av->tclass);
	err = batch->av->v6 ? ip6_local_out(net, NULL, skb) : ip_local_out(net, NULL, skb);
	if (net_xmit_eval(err))
		weft_count_add(qp->dev, send_err, batch->num);
}
