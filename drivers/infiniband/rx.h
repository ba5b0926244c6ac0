/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive queues: NAPI contexts with moderation. Everything that runs in softirq for a device runs
 * here: packets from the hooks and the shortcut, and QPs that asked for service.
 *
 *   hook.c  →  weft_rx_enqueue()        →  queue (Toeplitz)  →  NAPI poll on the queue's CPU
 *   burst.c →  weft_rx_enqueue_burst()  →  this CPU's queue  →   ├ weft_receive()        receive.c
 *                                                                ├ weft_receive_burst()  receive.c
 *   timers, posts → weft_qp_schedule()  →  queue's QP list   →   └ weft_qp_service()     qp.c
 *
 * A doorbell polls this CPU's queue itself if nobody else does (weft_rx_doorbell_*): what a post
 * sends to this host has arrived when the system call ends.
 */
#ifndef WEFT_RX_H
#define WEFT_RX_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/smp.h>

#include "burst.h"
#include "device.h"

struct weft_qp;

/*
 * skb->cb from weft_rx_enqueue() on. skb->data is at the BTH; skb->len ends with the ICRC.
 */
struct weft_rx_cb {
	u16 ip_offset;     /* of the IP header, from skb->head */
	u16 ip_len;        /* bytes of the IP header (IPv6: 40) */
	bool v6;
};

#define WEFT_RX_CB(skb) ((struct weft_rx_cb *)(skb)->cb)

struct weft_rxq_stats { /* u64_stats not needed: 64-bit only */
	u64 packets;
	u64 bytes;
	u64 polls;
	u64 moderated;   /* polls that a moderation timer began */
	u64 drops;       /* queue full */
	u64 qp_services;
};

struct weft_rxq {
	struct weft_dev *dev;
	unsigned int index;
	int cpu;                      /* where it polls; WRITE_ONCE by resize */
	int polling_cpu;              /* where a poll runs now or a doorbell is about to; or -1 */
	bool timer_fired;             /* since the last poll */
	struct napi_struct napi;
	struct sk_buff_head skbs;     /* its lock; producers are hooks on any CPU; BH off */
	struct weft_burst_list bursts; /* skbs.lock */
	u32 num_bursts;               /* skbs.lock: packets in them */
	struct sk_buff_head todo;     /* taken from skbs by the poll; the poll's alone */
	struct weft_burst_list todo_bursts; /* the same of bursts, and of what this CPU queues */
	u32 num_todo;                 /* packets in todo_bursts */
	struct weft_qp *due;          /* that have answers to send; the poll's alone */
	struct weft_qp *serving;      /* whose service runs; written by the poll */
	spinlock_t qp_lock;           /* qps; interrupts off, for kernel users post so */
	struct list_head qps;         /* QPs that wait for service, weft_qp.service_node */
	u32 num_qps;                  /* in qps */
	u64 first_ns;                 /* when the oldest waiting packet came; skbs.lock */
	struct hrtimer timer;         /* moderation */
	struct irq_work irq_work;     /* kick from process context with interrupts off */
	call_single_data_t csd;       /* kick on another CPU; who set NAPI_STATE_SCHED owns it */
	struct weft_rxq_stats stats;
} ____cacheline_aligned;

enum { WEFT_RXQ_LIMIT = 8192 }; /* packets that wait in one queue */

/*
 * Take an skb that is Weft's own (unshared, orphaned, data at BTH, cb filled in). BH
 * off. Consumes it; a full queue drops it and counts.
 */
void weft_rx_enqueue(struct weft_dev *dev, struct sk_buff *skb, u32 hash);
/* The same, into this CPU's queue: a packet of the same host gains nothing from another one. */
void weft_rx_enqueue_burst(struct weft_dev *dev, struct weft_burst *burst);
/*
 * Would a burst to @dev be the next one that the poll under way on this CPU takes? Then an RC
 * acknowledgment may be passed instead, before anything else is sent there; no lock is held.
 */
bool weft_rx_passes_ack(struct weft_dev *dev);
void weft_rx_pass_ack(struct weft_dev *dev, const struct weft_av *av, const struct weft_pkt *pkt);
/*
 * The same without queue and moderation: the netdev steered the packet to this CPU already. In
 * softirq.
 */
void weft_rx_inline(struct weft_dev *dev, struct sk_buff *skb);

/*
 * Around a doorbell of the QP, BH off in between: what is queued for this CPU meanwhile is polled
 * at the end, without a softirq. False: another CPU is to send for the QP.
 */
bool weft_rx_doorbell_begin(struct weft_qp *qp);
void weft_rx_doorbell_end(void);

/*
 * Is this the CPU that serves the QP, and sends for it? The stack has a queue per CPU, so packets
 * stay in order only while one CPU sends. A QP with nothing in flight moves here. Any context.
 */
bool weft_qp_served_here(struct weft_qp *qp);
/*
 * Have weft_qp_service() called for the QP soon, on the CPU of its queue. Any context, also
 * hardirq.
 */
void weft_qp_schedule(struct weft_qp *qp);
/*
 * A packet of the poll under way has made an answer due: have weft_responder_run() called behind
 * its batch, or, if there is no poll, with the service. BH off, under RCU.
 */
void weft_qp_answer(struct weft_qp *qp);
/*
 * Take the QP off the list, if it is on one, and wait until no service of it runs. Process context.
 */
void weft_qp_unschedule(struct weft_qp *qp);

/*
 * @num: 1…WEFT_MAX_RX_QUEUES. Process context. start: allocates and enables; stop: drains, drops,
 * frees.
 */
int weft_rx_start(struct weft_dev *dev, unsigned int num);
void weft_rx_stop(struct weft_dev *dev);
/*
 * Change the number of queues of a running device; traffic goes on, packets in flight may be
 * dropped (RC resends).
 */
int weft_rx_resize(struct weft_dev *dev, unsigned int num);

#endif
