/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scoreboard: what the requester knows of each PSN that is out.
 *
 * A PSN is held (the peer has it, though not yet what is before it), lost (to be sent again), or
 * under way. It is found lost by time, not by counting: when a packet that was sent later has
 * arrived and this one would have had to arrive, too, even if it took a detour of the reorder
 * window. The same rule finds a resend that got lost.
 *
 * Times are ticks of 1.024 µs, which wrap after an hour and are compared by their difference.
 */
#ifndef WEFT_BOARD_H
#define WEFT_BOARD_H

#include <weft/psn_set.h>
#include <weft/sack.h>

#define WEFT_TICK_SHIFT 10 /* of nanoseconds */

/* Sent again when news stayed away, while nothing says that it is lost. */
struct weft_board_guess {
	u32 psn;
	u32 sent;      /* tick of the time before */
	bool was_lost; /* that was a resend */
	bool made;
};

enum weft_board_guesses {
	WEFT_BOARD_TAIL,
	WEFT_BOARD_OLDEST,
	WEFT_BOARD_REFUSED,
	WEFT_BOARD_GUESSES,
};

struct weft_board {
	u32 base;       /* oldest PSN that is not acknowledged */
	u32 end;        /* behind the furthest one that was sent */
	u32 known;      /* those before tell nothing of the path: weft_board_distrust() */
	u32 newest;     /* when the packet was sent, of all that arrived, that was sent last */
	u32 newest_psn;
	u32 latency;    /* ticks from then to the news of it, or of what it overtook, if longer */
	u32 num_held;
	u32 num_lost;
	struct weft_board_guess guesses[WEFT_BOARD_GUESSES];
	struct weft_psn_set held;
	struct weft_psn_set lost;
	struct weft_psn_set again; /* was sent more than once */
	u32 sent[WEFT_PSN_SET_SIZE]; /* tick of the last time that it was sent */
};

/* What an acknowledgment or an extended NAK told. */
struct weft_board_news {
	u32 arrived;   /* PSNs that were not known to have arrived */
	u32 rtt;       /* ticks, of one that had nothing missing before it; 0: no sample */
	u32 extent;    /* ticks by which one came later than one that was sent after it */
	u32 recovered; /* of those that arrived, how many were sent again */
	u32 guessed;   /* of those, how many the path is not known to have lost */
	u32 spurious;  /* resends that were not needed; not of this scoreboard's making */
};

/* @base … @end - 1 are out already, count as sent now, and are not trusted. */
void weft_board_init(struct weft_board *board, u32 base, u32 end, u32 now);

/* @num packets from @psn on were sent, for the first time or again. */
void weft_board_sent(struct weft_board *board, u32 psn, u32 num, u32 now);

/* No packets are sent under these PSNs: those of a READ's responses but the first. */
void weft_board_pass(struct weft_board *board, u32 psn, u32 end);

/*
 * Everything before @psn is acknowledged. @min_rtt: ticks; what is answered faster answers an
 * earlier packet of the same PSN. Adds to @news.
 */
void weft_board_ack(struct weft_board *board, u32 psn, u32 now, u32 min_rtt,
		    struct weft_board_news *news);

/* The peer has everything before @epsn, and what @sack of @bytes says. Adds to @news. */
void weft_board_sack(struct weft_board *board, u32 epsn, const struct weft_sack *sack, u32 bytes,
		     u32 now, u32 min_rtt, struct weft_board_news *news);

/*
 * Find what is lost, with a reorder window of @window ticks. Returns the ticks after which there
 * may be more, 0: not before other news.
 */
u32 weft_board_detect(struct weft_board *board, u32 now, u32 window);

/*
 * Is the oldest overdue by that rule? If not, *@left: the ticks after which it is, 0: not before
 * other news.
 */
bool weft_board_overdue(const struct weft_board *board, u32 now, u32 window, u32 *left);

/*
 * How long what is out by now takes, and that it is sent again, tells nothing of the path: the
 * receiver keeps it waiting, or a READ's answers are missing.
 */
void weft_board_distrust(struct weft_board *board);

/* A PSN that is out and not held is lost, whatever the rule and guesses say. */
void weft_board_lose(struct weft_board *board, u32 psn);

/*
 * Send it again for want of news: it may as well be late. When it arrives nobody knows which of its
 * packets did; then it counts as the one before, or all that was sent between the two would seem
 * lost. The board remembers one guess of each kind. Of what is held only the oldest can be guessed.
 */
void weft_board_guess(struct weft_board *board, enum weft_board_guesses which, u32 psn);

/*
 * The peer's receiver was not ready for the oldest PSN: it is sent again, though it may have been
 * held. What waits behind it does not seem lost for it, as behind a guess.
 */
void weft_board_refused(struct weft_board *board, u32 psn);

/* How many of @num PSNs from @psn on are guesses of the timer? */
u32 weft_board_guessed(struct weft_board *board, u32 psn, u32 num);

/* It is not lost after all, or will be sent again another way. */
void weft_board_find(struct weft_board *board, u32 psn);

/* Nothing is lost: all of it will be sent again another way. */
void weft_board_find_all(struct weft_board *board);

/*
 * The first run of lost PSNs, at most @max of them: *@psn is its first one. Returns its length,
 * 0: nothing is lost.
 */
u32 weft_board_lost_run(const struct weft_board *board, u32 max, u32 *psn);

/* The furthest PSN that is out and not held: *@psn. False: there is none. */
bool weft_board_tail(const struct weft_board *board, u32 *psn);

#endif
