/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs. Three parts with a lock each:
 *
 *   sq    the posted work requests, copied once into kernel memory       post_lock (kernel users)
 *   req   requester and completer: what is sent, acknowledged, timed     req.lock
 *   resp  responder: what is expected, executed, answered                resp.lock
 *
 * Order: req.lock before resp.lock (only modify and the error flush take both); both are BH-off
 * spinlocks and are never held over a transmit that could come back into the same QP: looped
 * packets are queued.
 *
 * Lifetime: weft_qp is looked up by QPN under RCU; whoever keeps it past the read-side section
 * takes a reference. destroy removes the QPN, waits for the references and a grace period, then
 * lets ib_core free it. skbs in flight refer to a weft_tx_flow, not to the QP (tx.h).
 */
#ifndef WEFT_QP_H
#define WEFT_QP_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <weft/board.h>
#include <weft/bth.h>
#include <weft/peer.h>
#include <weft/requester.h>
#include <weft/responder.h>
#include <weft/rtt.h>

#include "av.h"
#include "cq.h"
#include "hold.h"
#include "mr.h"
#include "path.h"
#include "srq.h"
#include "tx.h"

/* What the requester does with a WQE that sends nothing. */
enum weft_local_op {
	WEFT_LOCAL_NONE,
	WEFT_LOCAL_INV,
	WEFT_LOCAL_REG_MR,
	WEFT_LOCAL_BIND_MW,
};

/*
 * A send work request: the kernel's own copy. Nothing of the user's ring is read after the fetch.
 */
struct weft_swqe {
	u64 wr_id;
	enum ib_wr_opcode opcode;
	enum weft_wr wr;
	enum weft_local_op local;
	u32 flags;        /* IB_SEND_* */
	__be32 imm;
	u32 inv_rkey;
	u32 length;       /* bytes, sum of the SGEs or inline */
	u64 remote_addr;
	u32 rkey;
	u64 compare_add;
	u64 swap;
	union {
		struct {
			u32 qpn;
			u32 qkey;
			u16 pkey_index;
			struct weft_av av;
		} ud;
		struct weft_mw_bind bind;
		struct {
			struct weft_mr *mr;
			u32 key;
			int access;
		} reg;
	};

	/* progress; req.lock */
	u32 first_psn;
	u32 last_psn;
	u32 resp_psn;     /* READ: next response expected */
	u32 offset;       /* bytes sent */
	enum ib_wc_status status;
	/* PSNs are assigned (a local operation: it was executed, and is not again) */
	bool started;
	bool rd_atomic;   /* holds one of the initiator's READ/atomic credits */
	bool done;        /* complete with @status when it is the oldest */

	u8 num_sge;
	union {
		DECLARE_FLEX_ARRAY(struct ib_sge, sge);
		DECLARE_FLEX_ARRAY(u8, inline_data);
	};
};

struct weft_sq {
	struct weft_ring *ring;  /* users: struct rxe_send_wqe; NULL for kernel users */
	void *wqes;              /* weft_swqe, stride bytes each, mask + 1 of them */
	u32 stride;
	u32 mask;
	u32 fetch;               /* users: ring index of the next slot to copy; req.lock */
	u32 max_wr;
	u32 max_sge;
	u32 max_inline;
	spinlock_t post_lock;    /* kernel users' post_send: producer; interrupts off */
	/* free running; written under post_lock (kernel users) or req.lock (users) */
	u32 producer;
};

/* Free-running indices: tail <= cur <= sq.producer. */
struct weft_req {
	spinlock_t lock; /* this struct, the WQEs' progress, qp->state with resp.lock; BH off */
	u32 psn;                 /* PSN that the next new request begins at */
	u32 max_psn;             /* furthest PSN ever sent + 1: a packet before it is a resend */
	u32 una;                 /* oldest PSN that is not acknowledged */
	u32 asked;               /* last PSN that an answer must come for + 1 */
	u32 tail;                /* oldest WQE that is not complete */
	u32 cur;                 /* WQE that is being sent */
	u32 rd_atomic;           /* READs and atomics in flight */
	/* READ response gap that was already acted on, while implied_valid */
	u32 implied_psn;
	bool implied_valid;
	bool rnr_wait;           /* the RNR timer runs: send nothing */
	bool drained;            /* SQD: the event was given */
	bool patient;            /* the end of what is being sent need not be acknowledged yet */
	u8 retries;              /* left */
	u8 rnr_retries;          /* left; 7: without end */
	struct hrtimer rnr_timer;
	struct hrtimer ack_timer;
	u64 ack_timer_ns;        /* when it fires, while it is queued */
	/*
	 * An ACK moved una, or a NAK or the timeout of the QP's attributes began a resend: those
	 * timeouts are counted from here
	 */
	u64 last_progress_ns;
	unsigned long events;    /* WEFT_REQ_EV_*: set by timers, handled in service */

	/* recovery.c: towards a Weft peer */
	struct weft_peer peer;
	struct weft_board *board; /* NULL: the peer is another device, or not known to be Weft */
	struct weft_rtt rtt;
	u64 learned_ns;          /* the peer told something new */
	u64 last_news_ns;        /* that, or a probe or the timeout was due */
	u64 last_sent_ns;
	bool probed;             /* the tail was sent again, nothing new since */
	bool doubted;            /* so was the oldest, for it was overdue */
	bool ask;                /* the next packet shall ask for an acknowledgment */
	u32 duplicates;          /* that the peer has seen */
	u32 probes;              /* sent that none of these was of */
	u32 resent;              /* the same of resends that something was thought lost for */
	u32 resend_hint;         /* WQE that the last resend was of */

	struct weft_path_cache path;
	struct weft_keys keys;   /* local: of what is sent, and where READs put theirs */
};

/* Is there an answer to wait for? */
static inline bool weft_req_waits(const struct weft_req *req)
{
	return weft_psn_before(req->una, req->asked);
}

/* The packet is answered when it arrives. */
static inline void weft_req_asked(struct weft_req *req, u32 psn)
{
	if (!weft_psn_before(psn, req->asked))
		req->asked = weft_psn_add(psn, 1);
}

enum {
	WEFT_REQ_EV_ACK_TIMEOUT,
	WEFT_REQ_EV_RNR_OVER,
};

enum weft_res_kind {
	WEFT_RES_FREE,
	WEFT_RES_READ,
	WEFT_RES_ATOMIC,
	WEFT_RES_ATOMIC_WRITE,
};

/*
 * Responder resource: a READ, atomic or ATOMIC_WRITE that was taken. Responses are sent from
 * here, in ring order, and sent again when a duplicate comes.
 */
struct weft_res {
	enum weft_res_kind kind;
	bool todo;        /* responses are to be sent */
	bool again;       /* todo for a duplicate: a new request proves that the peer has it all */
	bool restart;     /* READ: the next response is the first of an answer */
	u32 first_psn;    /* of the request as first taken */
	u32 last_psn;
	u32 msn;
	u32 cur_psn;      /* READ: PSN of the next response */
	u64 va;           /* READ: of the byte that cur_psn begins with */
	u32 rkey;
	u32 resid;        /* READ: bytes still to send */
	u64 orig;         /* ATOMIC: the value that was answered */
};

struct weft_resp {
	spinlock_t lock; /* this struct, qp->state with req.lock; BH off, inside req.lock */
	struct weft_resp_state st;
	struct weft_peer peer;

	/* open message */
	u64 va;                  /* WRITE: where the next byte goes */
	u32 rkey;
	u32 offset;              /* bytes received so far */
	bool have_rwqe;
	struct weft_rwqe rwqe;

	struct weft_res *res;    /* ring of max_dest_rd_atomic */
	u32 res_size;
	u32 res_head;            /* slot that the next one takes */
	u32 res_todo;            /* how many have responses to send */

	bool ack_pending;        /* an acknowledgment goes out behind the responses above */
	bool late;               /* a NAK or RNR NAK goes out behind them */
	bool late_fatal;         /* with it the QP is over */
	bool broken;             /* an error was answered: takes nothing more */
	u8 late_syndrome;
	u32 late_psn;
	bool comm_est;           /* RTR: the peer has spoken, the event was given */
	u32 ack_psn;
	bool rnr;                /* an RNR NAK is out: the peer knows what to send */
	struct weft_hold hold;
	struct weft_placement *placement; /* NULL: in order only */
	struct weft_path_cache path;
	struct weft_keys keys;   /* remote, and local ones of receive WQEs */
};

struct weft_qp {
	struct ib_qp ibqp;
	struct weft_dev *dev;
	u32 qpn;
	struct hlist_node table_node; /* qp_table.c */
	u8 transport;            /* WEFT_RC, WEFT_UC, WEFT_UD */
	enum ib_qp_type type;
	bool is_user;
	bool sq_sig_all;
	enum ib_qp_state state;  /* WRITE_ONCE under both locks; READ_ONCE elsewhere */
	struct ib_qp_attr attr;  /* as modify set it */
	u32 mtu;                 /* bytes */
	u16 src_port;            /* UDP; the flow's entropy */
	struct weft_av av;       /* RC, UC */
	struct weft_tx_flow *flow;

	struct weft_cq *scq;
	struct weft_cq *rcq;
	struct weft_srq *srq;
	struct weft_rq rq;       /* when there is no SRQ */

	struct weft_sq sq;
	struct weft_req req;
	struct weft_resp resp;

	refcount_t refs;
	struct completion unused; /* refs reached 0 */

	/* service by the receive queue's NAPI, rx.c */
	struct list_head service_node;   /* in weft_rxq.qps; rxq->qp_lock */
	/* index of the queue, mod their number; follows who posts while nothing is in flight */
	unsigned int service_queue;
	bool service_queued;             /* rxq->qp_lock */
	bool service_dead;               /* rxq->qp_lock: unscheduled for good */

	struct weft_qp *due_next;        /* in weft_rxq.due, while due */
	bool due;                        /* atomic: whoever turns it true puts the QP on one list */

	struct list_head mcast_nodes;    /* mcast.c: its attachments */
	struct work_struct event_work;   /* async events from process context */
	unsigned long async_events;      /* bit per ib_event_type */
};

/* Under RCU and resp.lock. NULL: no window has the key, or it is not for this QP. mr_copy.c */
struct weft_mr *weft_window_load(struct weft_qp *qp, u32 rkey);

/*
 * MR behind @rkey (an MR, or a window bound to one) if it grants the IB_ACCESS_REMOTE_* bits of
 * @access to [@addr, @addr + @len) for a packet to @qp. NULL: a remote access error. resp.lock.
 */
static inline struct weft_mr *weft_rkey_find(struct weft_qp *qp, u32 rkey, u64 addr, u64 len,
					     int access)
{
	struct weft_mr *mr = rkey >> 8 < WEFT_MW_INDEX_FIRST
				     ? weft_keys_load(&qp->resp.keys, rkey)
				     : weft_window_load(qp, rkey);

	if (!mr || mr->ibmr.pd != qp->ibqp.pd || (mr->access & access) != access ||
	    !weft_mr_covers(mr, addr, len))
		return NULL;
	return mr;
}

static inline struct weft_qp *weft_from_ibqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct weft_qp, ibqp);
}

/* --- qp_table.c: QPN → QP, for all devices of the host --- */
enum { WEFT_QP_BUCKETS = 1 << 12 };
extern struct hlist_head weft_qp_buckets[WEFT_QP_BUCKETS];

/* Under RCU; no reference is taken. QP1 is not in it (weft_dev.gsi). */
static inline struct weft_qp *weft_qp_find(u32 qpn)
{
	struct weft_qp *qp;

	hlist_for_each_entry_rcu(qp, &weft_qp_buckets[qpn % WEFT_QP_BUCKETS], table_node)
		if (qp->qpn == qpn)
			return qp;
	return NULL;
}

int weft_qp_table_add(struct weft_qp *qp);
void weft_qp_table_del(struct weft_qp *qp);
/* Call @fn for each QP of @dev; may sleep (a reference is held around the call). */
void weft_qp_for_each(struct weft_dev *dev, void (*fn)(struct weft_qp *qp, void *arg), void *arg);
int weft_qp_table_init(void);
void weft_qp_table_uninit(void);

static inline bool weft_qp_get(struct weft_qp *qp)
{
	return refcount_inc_not_zero(&qp->refs);
}

static inline void weft_qp_put(struct weft_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->unused);
}

/* Packets of one kind that a QP may send before other QPs have their turn. */
enum { WEFT_SERVICE_BUDGET = 64 };

/* --- data path entries, BH off --- */
/*
 * A packet from rx.c: validate, find the QP, hand to responder or completer. Consumes the skb.
 * receive.c
 */
void weft_receive(struct weft_dev *dev, struct sk_buff *skb);
/* The same with what this host sent itself. receive.c */
void weft_receive_burst(struct weft_dev *dev, struct weft_burst *burst);
/* The same of one RC acknowledgment, @bytes long, from who has @av. receive.c */
void weft_receive_ack(struct weft_dev *dev, const struct weft_av *av, const struct weft_pkt *pkt,
		      u32 bytes);
/*
 * Service that weft_qp_schedule() asked for: timers, sends, READ responses. True: there is more
 * to do.
 */
bool weft_qp_service(struct weft_qp *qp);

/*
 * requester.c: send up to @budget packets. True: the budget ended it, there is more.
 */
bool weft_requester_run(struct weft_qp *qp, int budget);
/*
 * segment.c: send packets of the request from wqe->offset on, at most @room; @psn is the first
 * one's. Returns how many are out (or lost on the way), -ENOMEM: try later, -EFAULT: the request's
 * keys or bounds are wrong. req.lock, under RCU.
 */
int weft_segment_send(struct weft_qp *qp, const struct weft_swqe *wqe, u32 psn, u32 room);
/* Send again from @psn on. req.lock. */
void weft_requester_rewind(struct weft_qp *qp, u32 psn);
/*
 * Of what is out, does nothing ask for an acknowledgment? Then ask. False: no memory, try later.
 * req.lock.
 */
bool weft_requester_pull(struct weft_qp *qp);
/*
 * Complete WQEs that are done, oldest first. req.lock. False: one failed, the QP must go to the
 * error state.
 */
bool weft_requester_reap(struct weft_qp *qp);

/* requester.c: start the ACK timer, or let it fire earlier. req.lock. */
void weft_ack_timer_before(struct weft_qp *qp, u64 ns);

/* --- recovery.c, the requester's towards a Weft peer; req.lock --- */
/* Take note of a response that came by wire: the peer may turn out to be a Weft device. */
void weft_recovery_peer(struct weft_qp *qp, const struct weft_pkt *pkt);
/* Packets were sent; @next: behind the PSNs that they take. */
void weft_recovery_sent(struct weft_qp *qp, u32 psn, u32 num, u32 next, u64 now);
/* Everything before @una is acknowledged. */
void weft_recovery_ack(struct weft_qp *qp, u32 una, u64 now);
/* An extended NAK. */
void weft_recovery_sack(struct weft_qp *qp, const struct weft_source *src,
			const struct weft_pkt *pkt);
/* See what is lost after news, and when to look again. */
void weft_recovery_detect(struct weft_qp *qp);
/* The timer fired: returns the time at which it must again, 0: no need. */
u64 weft_recovery_timer(struct weft_qp *qp, u64 now);
/* What the peer told counts no more: all is sent again. */
void weft_recovery_forget(struct weft_qp *qp);
/* Is something lost? */
static inline bool weft_recovery_due(const struct weft_qp *qp)
{
	return qp->req.board && qp->req.board->num_lost;
}

/*
 * Send the next lost packets. 0, -EBUSY: too much is queued below, -ENOMEM: try later, -EFAULT: the
 * request has failed.
 */
int weft_recovery_resend(struct weft_qp *qp);
/* As if the peer had told nothing, and is not known. */
void weft_recovery_reset(struct weft_qp *qp);
int weft_recovery_init(void);
void weft_recovery_uninit(void);

/* completer.c; under RCU */
void weft_completer_receive(struct weft_qp *qp, const struct weft_source *src,
			    const struct weft_pkt *pkt);
/* The ACK timer fired. */
void weft_completer_timeout(struct weft_qp *qp);

/* responder.c; under RCU */
void weft_responder_receive(struct weft_qp *qp, const struct weft_source *src,
			    const struct weft_pkt *pkt);
/*
 * resource.c: send READ responses, atomic answers and the pending ACK. True: the budget ended it.
 * Under RCU.
 */
bool weft_responder_run(struct weft_qp *qp, int budget);
/*
 * resource.c: a packet of its own to the peer; @data: its payload, WEFT_BURST_INLINE bytes at most.
 * False: no memory. Under RCU.
 */
bool weft_packet_send(struct weft_qp *qp, const struct weft_path *path, const struct weft_pkt *pkt,
		      const void *data);
/* resource.c: remember a READ or atomic (new), answer a duplicate (again). resp.lock. */
struct weft_res *weft_res_new(struct weft_qp *qp, const struct weft_pkt *pkt,
			      enum weft_res_kind kind);
void weft_res_again(struct weft_qp *qp, const struct weft_pkt *pkt);
/*
 * resource.c: the QP is about to answer no more. A user who saw the last message's completion may
 * end the QP before the batch's acknowledgment went out: it goes now. What is held is dropped.
 * resp.lock.
 */
void weft_responder_settle(struct weft_qp *qp);
/*
 * resource.c: NAK or RNR NAK of the PSN expected, behind the answers that are still to be sent.
 * @fatal: the QP is broken once it is out. resp.lock.
 */
void weft_responder_refuse(struct weft_qp *qp, u8 syndrome, bool fatal);

/* placement.c: WRITEs into memory ahead of their turn; resp.lock from reset() on */
/* -ENOMEM, or 0: as the link has it. */
int weft_placement_setup(struct weft_qp *qp);
void weft_placement_uninit(struct weft_qp *qp);
void weft_placement_reset(struct weft_resp *resp);
/* A WRITE's packet with a RETH is good. */
void weft_placement_begins(struct weft_qp *qp, const struct weft_pkt *pkt);
/* A request was executed in its turn. */
void weft_placement_ends(struct weft_resp *resp, const struct weft_pkt *pkt);
/*
 * Place a packet that is ahead of the expected PSN: *@place says where. False: it has to wait with
 * its bytes.
 */
bool weft_place_early(struct weft_qp *qp, const struct weft_source *src, const struct weft_pkt *pkt,
		      struct weft_place *place);

/* datagram.c */
void weft_datagram_receive(struct weft_qp *qp, const struct weft_source *src,
			   const struct weft_pkt *pkt);

/* --- send queue, sq.c --- */
int weft_sq_init(struct weft_qp *qp, const struct ib_qp_cap *cap, struct ib_ucontext *ucontext,
		 struct mminfo __user *info);
void weft_sq_uninit(struct weft_qp *qp);
void weft_sq_reset(struct weft_qp *qp);
/* The WQE with the free-running index; it must be in tail … producer - 1. */
static inline struct weft_swqe *weft_sq_wqe(const struct weft_qp *qp, u32 index)
{
	return qp->sq.wqes + (size_t)(index & qp->sq.mask) * qp->sq.stride;
}

/*
 * Can the request's completion wait until a later one asks for an acknowledgment? When half of the
 * queue is used up, none can.
 */
static inline bool weft_req_is_patient(const struct weft_qp *qp, const struct weft_swqe *wqe)
{
	return wqe->status == IB_WC_SUCCESS && !(wqe->flags & IB_SEND_SIGNALED) &&
	       !qp->sq_sig_all &&
	       READ_ONCE(qp->sq.producer) - qp->req.tail <= qp->sq.mask / 2;
}

/* WQE at req.cur, fetched from the user's ring if need be. NULL: nothing is posted. req.lock. */
struct weft_swqe *weft_sq_next(struct weft_qp *qp);

/* --- state --- */
/* Move to the error state and flush. No QP lock held; process or softirq context. */
void weft_qp_error(struct weft_qp *qp);
/* Complete what is posted with IB_WC_WR_FLUSH_ERR. No QP lock held. */
void weft_qp_flush(struct weft_qp *qp);
void weft_qp_async_event(struct weft_qp *qp, enum ib_event_type event);
/* Netdev events: the device's path MTU is now @mtu bytes; 0 for gone. */
void weft_qp_check_mtu(struct weft_qp *qp, u32 mtu);

/* --- verbs --- */
int weft_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int weft_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int weft_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);
int weft_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int weft_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int weft_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

#endif
