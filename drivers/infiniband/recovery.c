// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of a requester whose peer is a Weft device: only what is lost is sent again.
 *
 * The scoreboard (board.h) is there from the moment that the peer's packets have told what it is.
 * Acknowledgments and extended NAKs feed it; weft_requester_run() sends what it calls lost before
 * anything new. When news stay away, the tail is sent again after two round trips, so that the
 * answer tells what is missing; then the oldest packet each time the adaptive timeout runs out,
 * which doubles. None of this touches the retry counter: that is for the timeout of the QP's
 * attributes (completer.c), which sends all again and begins a new scoreboard.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <weft/ack.h>

#include "burst.h"
#include "qp.h"

static struct kmem_cache *weft_board_cache;

static u32 weft_ticks(u64 ns)
{
	return ns >> WEFT_TICK_SHIFT;
}

static u64 weft_ticks_to_ns(u32 ticks)
{
	return (u64)ticks << WEFT_TICK_SHIFT;
}

void weft_recovery_peer(struct weft_qp *qp, const struct weft_pkt *pkt)
{
	struct weft_req *req = &qp->req;
	u64 now;

	if (likely(req->board))
		return;
	/* Nobody else extends a NAK. */
	if (weft_pkt_is_sack(pkt))
		weft_peer_known(&req->peer);
	else if (!weft_peer_packet(&req->peer, pkt->resv6))
		return;
	/* Without memory the next packet tries. */
	req->board = kmem_cache_alloc(weft_board_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!req->board)
		return;
	now = ktime_get_ns();
	weft_board_init(req->board, req->una, req->max_psn, weft_ticks(now));
	weft_rtt_init(&req->rtt, weft_ticks(now));
	req->learned_ns = now;
	req->last_news_ns = now;
	req->last_sent_ns = now;
	req->probed = false;
	req->doubted = false;
	req->duplicates = 0;
	req->probes = 0;
	req->resent = 0;
}

void weft_recovery_reset(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;

	if (req->board)
		kmem_cache_free(weft_board_cache, req->board);
	req->board = NULL;
	req->ask = false;
	memset(&req->peer, 0, sizeof(req->peer));
}

void weft_recovery_forget(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	u64 now = ktime_get_ns();

	weft_board_init(req->board, req->una, req->max_psn, weft_ticks(now));
	req->last_news_ns = now;
}

void weft_recovery_sent(struct weft_qp *qp, u32 psn, u32 num, u32 next, u64 now)
{
	struct weft_req *req = &qp->req;
	u64 probe = weft_ticks_to_ns(weft_rtt_probe(&req->rtt));

	if (psn == req->una && req->una == req->board->end)
		req->last_news_ns = now;
	req->last_sent_ns = now;
	weft_board_sent(req->board, psn, num, weft_ticks(now));
	if (next != weft_psn_add(psn, num))
		weft_board_pass(req->board, weft_psn_add(psn, num), next);
	weft_ack_timer_before(qp, now + probe);
}

static void weft_recovery_learn(struct weft_qp *qp, const struct weft_board_news *news, u64 now)
{
	struct weft_req *req = &qp->req;

	if (news->spurious)
		weft_count_add(qp->dev, spurious_retrans, news->spurious);
	weft_rtt_update(&req->rtt, news, weft_ticks(now));
	req->learned_ns = now;
	req->last_news_ns = now;
	req->probed = false;
	req->doubted = false;
}

void weft_recovery_ack(struct weft_qp *qp, u32 una, u64 now)
{
	struct weft_req *req = &qp->req;
	struct weft_board_news news = {};

	weft_board_ack(req->board, una, weft_ticks(now), req->rtt.min, &news);
	weft_recovery_learn(qp, &news, now);
}

/*
 * Of the duplicates that the peer has seen, those that are ours and not the network's: no more than
 * were sent again. A probe is not sent because a packet is late.
 */
static u32 weft_recovery_spurious(struct weft_req *req, u32 duplicates)
{
	u32 more = duplicates - req->duplicates;
	u32 mine;

	if ((s32)more <= 0)
		return 0;
	req->duplicates = duplicates;
	mine = min(more, req->probes);
	req->probes -= mine;
	more = min(more - mine, req->resent);
	req->resent -= more;
	return more;
}

void weft_recovery_sack(struct weft_qp *qp, const struct weft_source *src,
			const struct weft_pkt *pkt)
{
	struct weft_req *req = &qp->req;
	struct weft_board_news news = {};
	u64 now = ktime_get_ns();
	struct weft_sack sack;

	weft_source_read(src, &sack, pkt->payload_len);
	weft_board_sack(req->board, pkt->psn, &sack, pkt->payload_len, weft_ticks(now),
			req->rtt.min, &news);
	news.spurious = weft_recovery_spurious(req, be32_to_cpu(sack.duplicates));
	if (news.arrived || news.spurious)
		weft_recovery_learn(qp, &news, now);
}

void weft_recovery_detect(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	u64 now = req->learned_ns;
	u32 left;

	left = weft_board_detect(req->board, weft_ticks(now), req->rtt.reorder);
	if (left)
		weft_ack_timer_before(qp, now + weft_ticks_to_ns(left));
}

/* The request that @psn is of, if it is out. */
static struct weft_swqe *weft_recovery_wqe(struct weft_qp *qp, u32 psn)
{
	struct weft_req *req = &qp->req;
	u32 i = req->resend_hint;
	struct weft_swqe *wqe;

	/* The hint must be among the requests that are out, and not behind the PSN. */
	if (i - req->tail >= req->cur - req->tail || !weft_sq_wqe(qp, i)->started ||
	    weft_psn_before(psn, weft_sq_wqe(qp, i)->first_psn))
		i = req->tail;
	for (; i - req->tail <= req->cur - req->tail; i++) {
		/* Pairs with the release in weft_post_one(). */
		if (i == smp_load_acquire(&qp->sq.producer))
			break;
		wqe = weft_sq_wqe(qp, i);
		if (!wqe->started)
			break;
		if (wqe->local != WEFT_LOCAL_NONE || weft_psn_before(wqe->last_psn, psn))
			continue;
		req->resend_hint = i;
		return wqe->done ? NULL : wqe;
	}
	return NULL;
}

/* Has the requester gone back, and will send the PSN anyway? */
static bool weft_recovery_ahead(struct weft_qp *qp, u32 psn)
{
	struct weft_req *req = &qp->req;
	struct weft_swqe *wqe;

	/* Pairs with the release in weft_post_one(). */
	if (req->cur == smp_load_acquire(&qp->sq.producer))
		return false;
	wqe = weft_sq_wqe(qp, req->cur);
	return wqe->started && wqe->local == WEFT_LOCAL_NONE &&
	       !weft_psn_before(psn, weft_psn_add(wqe->first_psn, wqe->offset / qp->mtu));
}

/* Of a READ or an atomic the request alone is sent again here, and only while nothing came back. */
static bool weft_recovery_can_send(const struct weft_swqe *wqe, u32 psn)
{
	if (!wqe)
		return false;
	return !weft_wr_is_rd_atomic(wqe->wr) ||
	       (psn == wqe->first_psn && wqe->resp_psn == wqe->first_psn);
}

/* @num packets from @psn on. Returns how many are out, or an error of weft_segment_send(). */
static int weft_recovery_send(struct weft_qp *qp, struct weft_swqe *wqe, u32 psn, u32 num)
{
	u32 offset = wqe->offset;
	int sent;

	wqe->offset = weft_req_offset_of_psn(wqe->wr, wqe->first_psn, psn, qp->mtu, wqe->length);
	sent = weft_segment_send(qp, wqe, psn, num);
	wqe->offset = offset;
	return sent;
}

int weft_recovery_resend(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	struct weft_swqe *wqe;
	u32 guessed, num, psn;
	int sent;

	num = weft_board_lost_run(req->board, WEFT_BURST_PACKETS, &psn);
	wqe = weft_recovery_wqe(qp, psn);
	if (!weft_recovery_can_send(wqe, psn) || weft_recovery_ahead(qp, psn)) {
		weft_board_find(req->board, psn);
		return 0;
	}
	if (weft_tx_full(qp->flow))
		return -EBUSY;
	num = weft_wr_is_rd_atomic(wqe->wr) ? 1 :
	      min(num, (u32)weft_psn_diff(wqe->last_psn, psn) + 1);
	sent = weft_recovery_send(qp, wqe, psn, num);
	if (sent == -ENOMEM)
		return sent;
	if (sent < 0) {
		weft_board_find(req->board, psn);
		wqe->status = IB_WC_LOC_PROT_ERR;
		wqe->done = true;
		return sent;
	}
	weft_count_add(qp->dev, retransmitted_pkts, sent);
	guessed = weft_board_guessed(req->board, psn, sent);
	req->probes += guessed;
	req->resent += sent - guessed;
	req->ask = false;
	weft_recovery_sent(qp, psn, sent, weft_psn_add(psn, sent), ktime_get_ns());
	return 0;
}

/* The oldest packet is sent again. A READ whose answer has begun to come asks for the rest. */
static void weft_recovery_oldest(struct weft_qp *qp)
{
	struct weft_req *req = &qp->req;
	struct weft_swqe *wqe = weft_recovery_wqe(qp, req->una);

	if (wqe && weft_wr_is_rd_atomic(wqe->wr) && wqe->resp_psn != wqe->first_psn)
		weft_requester_rewind(qp, req->una);
	else
		weft_board_guess(req->board, WEFT_BOARD_OLDEST, req->una);
	req->ask = weft_recovery_due(qp);
}

/*
 * What is overdue without news. Where nothing has been lost so far it is the news that are late, as
 * a rule: the oldest packet asks for them, and they say what of the rest is lost. Returns as
 * weft_board_detect().
 */
static u32 weft_recovery_silence(struct weft_qp *qp, u64 now)
{
	struct weft_req *req = &qp->req;
	u32 left;

	if (req->rtt.lossy)
		return weft_board_detect(req->board, weft_ticks(now), req->rtt.reorder);
	if (!weft_board_overdue(req->board, weft_ticks(now), req->rtt.reorder, &left))
		return left;
	if (!req->doubted) {
		req->doubted = true;
		weft_board_guess(req->board, WEFT_BOARD_OLDEST, req->una);
		req->ask = weft_recovery_due(qp);
	}
	return 0;
}

u64 weft_recovery_timer(struct weft_qp *qp, u64 now)
{
	struct weft_req *req = &qp->req;
	u64 rto = weft_ticks_to_ns(weft_rtt_rto(&req->rtt));
	u64 due, detect = 0;
	u32 left, psn;

	left = weft_recovery_silence(qp, now);
	if (left)
		detect = now + weft_ticks_to_ns(left);
	if (!req->probed) {
		due = max(req->last_news_ns, req->last_sent_ns) +
		      weft_ticks_to_ns(weft_rtt_probe(&req->rtt));
		if (now >= due) {
			req->probed = true;
			req->last_news_ns = now;
			if (weft_board_tail(req->board, &psn)) {
				weft_count(qp->dev, tail_loss_probes);
				weft_board_guess(req->board, WEFT_BOARD_TAIL, psn);
				req->ask = true;
			}
			due = now + rto;
		}
	} else {
		due = req->last_news_ns + rto;
	}
	if (now >= due) {
		weft_count(qp->dev, roce_adp_retrans);
		if (req->rtt.backoff < WEFT_BACKOFF_MAX)
			req->rtt.backoff++;
		req->last_news_ns = now;
		weft_recovery_oldest(qp);
		due = now + weft_ticks_to_ns(weft_rtt_rto(&req->rtt));
	}
	return detect ? min(due, detect) : due;
}

int weft_recovery_init(void)
{
	weft_board_cache = KMEM_CACHE(weft_board, 0);
	return weft_board_cache ? 0 : -ENOMEM;
}

void weft_recovery_uninit(void)
{
	kmem_cache_destroy(weft_board_cache);
}
