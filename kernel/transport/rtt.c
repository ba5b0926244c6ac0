// SPDX-License-Identifier: GPL-2.0
/*
 * Round-trip time, retransmission timeout, reorder window, send window.
 *
 * SRTT and its variation are those of RFC 6298. The reorder window begins at more than a round
 * trip, so that a path that reorders shows it before anything is sent again; with the first packet
 * that was really lost it shrinks towards what packets have been seen to overtake others by.
 */
#include <weft/rtt.h>

#define RTO_MAX 0x1000000u /* ticks, 17 s */
#define REORDER_MAX 0x40000u /* 268 ms */
#define MIN_LIFE 0x1000000u

void weft_rtt_init(struct weft_rtt *rtt, u32 now)
{
	memset(rtt, 0, sizeof(*rtt));
	rtt->window = WEFT_WINDOW_MIN;
	rtt->round_at = now;
	rtt->period_at = now;
	rtt->reorder = WEFT_RTO_INITIAL / 2;
}
EXPORT_SYMBOL_GPL(weft_rtt_init);

static void sample(struct weft_rtt *rtt, u32 ticks, u32 now)
{
	s32 error;

	if (!rtt->min || ticks <= rtt->min || now - rtt->min_at > MIN_LIFE) {
		rtt->min = ticks;
		rtt->min_at = now;
	}
	if (!rtt->srtt) {
		rtt->srtt = ticks << 3;
		rtt->var = ticks << 1;
		rtt->reorder = 0;
		return;
	}
	error = (s32)(ticks - (rtt->srtt >> 3));
	rtt->srtt += error;
	if (error < 0)
		error = -error;
	rtt->var += (s32)((u32)error - (rtt->var >> 2));
}

/* The peer tells late of a resend that it had no need of: count it out of those that it had. */
static void not_needed(struct weft_rtt *rtt, u32 spurious)
{
	u32 i, here;

	for (i = 0; i < 2; i++) {
		here = min(rtt->resent[i], spurious);
		rtt->resent[i] -= here;
		spurious -= here;
	}
}

/* Once in a while: has something been lost, so that the window may shrink? */
static void next_period(struct weft_rtt *rtt, u32 now)
{
	if (now - rtt->period_at < 2 * max(weft_rtt_smoothed(rtt), rtt->reorder))
		return;
	if (rtt->resent[0]) {
		rtt->lossy = true;
		rtt->reorder /= 2;
		rtt->extent -= rtt->extent / 16;
	}
	rtt->resent[0] = rtt->resent[1];
	rtt->resent[1] = 0;
	rtt->period_at = now;
}

static void learn_reordering(struct weft_rtt *rtt, const struct weft_board_news *news, u32 now)
{
	u32 srtt = weft_rtt_smoothed(rtt);
	u32 floor = max(rtt->min / 4, 8u);

	rtt->resent[1] += news->recovered - news->guessed;
	rtt->extent = max(rtt->extent, news->extent);
	if (news->spurious) {
		/* It was overtaken by more than the window. */
		not_needed(rtt, news->spurious);
		rtt->reorder = 2 * max(rtt->reorder, floor);
		rtt->extent = max(rtt->extent, rtt->reorder);
	}
	next_period(rtt, now);
	if (!rtt->lossy)
		rtt->reorder = max(rtt->reorder, srtt + srtt / 4);
	rtt->reorder = max(rtt->reorder, max(rtt->extent + rtt->extent / 4, floor));
	rtt->reorder = min(rtt->reorder, REORDER_MAX);
}

/* Twice of what arrives in the least round-trip time: one part on the way, one to find losses. */
static void learn_window(struct weft_rtt *rtt, u32 arrived, u32 now)
{
	u32 passed = now - rtt->round_at;
	u64 want;

	rtt->round += arrived;
	if (!rtt->srtt || passed < max(weft_rtt_smoothed(rtt), 1u))
		return;
	want = 2 * (u64)rtt->round * rtt->min / passed;
	want = max_t(u64, want, rtt->window - rtt->window / 8);
	rtt->window = min_t(u64, max_t(u64, want, WEFT_WINDOW_MIN), WEFT_WINDOW_MAX);
	rtt->round = 0;
	rtt->round_at = now;
}

void weft_rtt_update(struct weft_rtt *rtt, const struct weft_board_news *news, u32 now)
{
	if (news->rtt)
		sample(rtt, news->rtt, now);
	/* The answer to a resend does not tell that the timeout is long enough. */
	if (!news->recovered)
		rtt->backoff = 0;
	learn_reordering(rtt, news, now);
	learn_window(rtt, news->arrived, now);
}
EXPORT_SYMBOL_GPL(weft_rtt_update);

u32 weft_rtt_rto(const struct weft_rtt *rtt)
{
	u64 ticks = WEFT_RTO_INITIAL;

	if (rtt->srtt)
		ticks = max(weft_rtt_smoothed(rtt) + max(rtt->var, 64u), WEFT_RTO_MIN);
	return min_t(u64, ticks << rtt->backoff, RTO_MAX);
}
EXPORT_SYMBOL_GPL(weft_rtt_rto);

u32 weft_rtt_probe(const struct weft_rtt *rtt)
{
	u32 srtt = weft_rtt_smoothed(rtt);

	if (!rtt->srtt)
		return WEFT_RTO_INITIAL;
	return max(srtt + max(srtt, rtt->var), WEFT_RTO_MIN);
}
EXPORT_SYMBOL_GPL(weft_rtt_probe);
