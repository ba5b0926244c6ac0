/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transmit: from a decoded packet header and payload to an skb on its way.
 *
 * A flow is what skbs and bursts in flight hold on to: it counts them, so that a QP stops when too
 * much of it is queued below, and it outlives the QP, so that a qdisc may keep an skb as long as it
 * likes.
 */
#ifndef WEFT_TX_H
#define WEFT_TX_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <weft/bth.h>

#include "av.h"
#include "mr.h"

struct weft_qp;

enum {
	WEFT_TX_INFLIGHT_HIGH = 64, /* packets of one QP in the stack or a queue: stop above */
	WEFT_TX_INFLIGHT_LOW = 16,  /* and go on below */
	WEFT_TX_BATCH = 32,         /* packets of one skb, at most */
};

struct weft_tx_flow {
	refcount_t refs;            /* the QP, and each skb and burst in flight */
	atomic_t inflight;          /* packets */
	atomic_t stopped;           /* the requester waits for inflight to sink */
	u32 epoch;                  /* another one when what is posted is given up; req.lock */
	struct weft_qp __rcu *qp;   /* NULL once the QP is being destroyed */
	struct rcu_head rcu;
	/* tickets[n] = n: an skb's destructor knows flow and packets by a pointer to its ticket */
	u8 tickets[WEFT_TX_BATCH + 1];

	/*
	 * the route of connected QPs, revalidated by dst_check(); req and resp may both use it:
	 * spinlock
	 */
	spinlock_t route_lock;
	struct dst_entry *dst;
	u32 dst_cookie;
	atomic_t ip_id;
};

struct weft_tx_flow *weft_tx_flow_alloc(struct weft_qp *qp);
/* The QP is going: no further wakeups reach it. */
void weft_tx_flow_detach(struct weft_tx_flow *flow);
/*
 * Too much in flight? The wake-up is then certain: either the destructor sees stopped, or the
 * second look sees what it did before.
 */
static inline bool weft_tx_full(struct weft_tx_flow *flow)
{
	if (likely(atomic_read(&flow->inflight) < WEFT_TX_INFLIGHT_HIGH))
		return false;
	atomic_set(&flow->stopped, 1);
	smp_mb__after_atomic(); /* pairs with the one in weft_tx_destructor() */
	if (atomic_read(&flow->inflight) > WEFT_TX_INFLIGHT_LOW)
		return true;
	atomic_set(&flow->stopped, 0);
	return false;
}

/* The last reference is gone. */
void weft_tx_flow_free(struct weft_tx_flow *flow);
static inline void weft_tx_flow_put(struct weft_tx_flow *flow)
{
	if (refcount_dec_and_test(&flow->refs))
		weft_tx_flow_free(flow);
}

/* The requester waited for inflight to sink, and it has. */
void weft_tx_flow_resume(struct weft_tx_flow *flow);
/* Count an skb or a burst as in flight, which then holds the flow; and no longer. BH off. */
static inline void weft_tx_flow_take(struct weft_tx_flow *flow, u32 packets)
{
	refcount_inc(&flow->refs);
	atomic_add(packets, &flow->inflight);
}

static inline void weft_tx_flow_give(struct weft_tx_flow *flow, u32 packets)
{
	if (atomic_sub_return(packets, &flow->inflight) <= WEFT_TX_INFLIGHT_LOW) {
		smp_mb__after_atomic(); /* pairs with the one in weft_tx_full() */
		if (unlikely(atomic_read(&flow->stopped)))
			weft_tx_flow_resume(flow);
	}
	weft_tx_flow_put(flow);
}

/*
 * The user gets the memory of what is posted back, by a flush or a reset: bursts in flight name it
 * no more. req.lock.
 */
static inline void weft_tx_flow_give_up(struct weft_tx_flow *flow)
{
	WRITE_ONCE(flow->epoch, flow->epoch + 1);
}

/* IPv4 identification of the first of @num packets. */
static inline u16 weft_tx_flow_ids(struct weft_tx_flow *flow, u32 num)
{
	return atomic_fetch_add(num, &flow->ip_id) + 1;
}

/* Forget the cached route: address vector changed. */
void weft_tx_flow_reset(struct weft_tx_flow *flow);

/* Does the skb still count as in flight of a flow on this host? */
bool weft_tx_owns(const struct sk_buff *skb);

/* Packets of one connection that take one way together: one skb for the stack. */
struct weft_tx_batch {
	struct dst_entry *dst;      /* ours */
	const struct weft_av *av;
	struct sk_buff *first;
	struct sk_buff *last;
	u32 num;
	u32 bytes;                  /* of UDP payload, of all */
	u32 size;                   /* of UDP payload, of the first */
	u16 ip_id;                  /* of the next */
	bool tapped;                /* somebody listens: packets one by one, payload copied */
	bool linear;                /* the netdev takes no fragments: payload copied */
};

/*
 * Begin: find the route from @ndev, which carries the source GID. -ENETUNREACH: there is none; what
 * is added is counted as sent, and lost. Under RCU, BH off, up to the end of weft_tx_send().
 */
int weft_tx_begin(struct weft_tx_batch *batch, struct weft_qp *qp, struct net_device *ndev,
		  const struct weft_av *av);
/* How many of @want packets with up to @payload_len bytes each may go, at least 1. Once. */
u32 weft_tx_plan(struct weft_tx_batch *batch, struct weft_qp *qp, u32 payload_len, u32 want);
/*
 * An skb with room for @pkt's headers and payload, which is to be copied to *payload. NULL: no
 * memory.
 */
struct sk_buff *weft_tx_alloc(const struct weft_tx_batch *batch, const struct weft_pkt *pkt,
			      void **payload);
/*
 * As weft_tx_alloc(), with the payload by reference: the bytes of the sender's list from @offset
 * on. NULL: they cannot be named, or there is no memory.
 */
struct sk_buff *weft_tx_alloc_named(const struct weft_tx_batch *batch, const struct weft_pkt *pkt,
				    struct weft_keys *keys, const struct ib_sge *sge, int num_sge,
				    u32 offset);

/* Build headers, pad and ICRC, and add the packet. Consumes the skb. */
void weft_tx_add(struct weft_tx_batch *batch, struct weft_qp *qp, const struct weft_pkt *pkt,
		 struct sk_buff *skb);
/* Send what was added, if any; what does not get out is lost, as on a wire. */
void weft_tx_send(struct weft_tx_batch *batch, struct weft_qp *qp);

/* Wait until no skb refers to this module any more. At module exit. */
void weft_tx_drain(void);

#endif
