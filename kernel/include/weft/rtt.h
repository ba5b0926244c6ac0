/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a requester learns of its path: round-trip time, reordering, and how much fits on it.
 * Times are ticks as in board.h.
 */
#ifndef WEFT_RTT_H
#define WEFT_RTT_H

#include <weft/board.h>

struct weft_rtt {
	u32 srtt;     /* eighths of a tick; 0: no sample yet */
	u32 var;      /* quarters of a tick */
	u32 min;      /* least of the last while */
	u32 min_at;
	u32 extent;   /* by how much packets overtook others, fading */
	u32 reorder;  /* reorder window */
	u32 resent[2]; /* resends of what was lost that arrived, in the last period and this one */
	u32 period_at; /* this one began */
	bool lossy;   /* a packet was lost: the window need not be cautious any more */
	u8 backoff;   /* timeouts in a row */
	u32 window;   /* PSNs that may be out */
	u32 round_at; /* the window's current round trip began */
	u32 round;    /* PSNs that arrived in it */
};

#define WEFT_WINDOW_MIN 128u
#define WEFT_WINDOW_MAX WEFT_PSN_SET_SIZE
#define WEFT_RTO_MIN 600u      /* ticks */
#define WEFT_RTO_INITIAL 8000u /* before there is a sample */
#define WEFT_BACKOFF_MAX 12

void weft_rtt_init(struct weft_rtt *rtt, u32 now);

/* Learn from what an acknowledgment told. */
void weft_rtt_update(struct weft_rtt *rtt, const struct weft_board_news *news, u32 now);

static inline u32 weft_rtt_smoothed(const struct weft_rtt *rtt)
{
	return rtt->srtt >> 3;
}

/* Ticks without news after which the oldest packet is sent again. */
u32 weft_rtt_rto(const struct weft_rtt *rtt);

/* Ticks without news behind the last packet after which it is sent again. */
u32 weft_rtt_probe(const struct weft_rtt *rtt);

#endif
