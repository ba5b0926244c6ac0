// SPDX-License-Identifier: GPL-2.0
/*
 * Scoreboard of the requester.
 *
 * Slots that an acknowledgment frees are stamped with its time: a PSN may take a slot that no
 * packet of its own has stamped, when a READ has taken more PSNs than there are slots.
 */
#include <weft/board.h>

static bool tracked(const struct weft_board *board, u32 psn)
{
	s32 ahead = weft_psn_diff(psn, board->base);

	return ahead >= 0 && (u32)ahead < WEFT_PSN_SET_SIZE;
}

/* PSNs that are out and have a slot. */
static u32 span(const struct weft_board *board)
{
	return min_t(u32, weft_psn_diff(board->end, board->base), WEFT_PSN_SET_SIZE);
}

/* Out, and neither held nor lost. */
static bool outstanding(const struct weft_board *board, u32 psn)
{
	return tracked(board, psn) && weft_psn_before(psn, board->end) &&
	       !weft_psn_set_has(&board->held, psn) && !weft_psn_set_has(&board->lost, psn);
}

/* Packets that were sent at one tick left in the order of their PSNs. */
static bool sent_before_newest(const struct weft_board *board, u32 sent, u32 psn)
{
	s32 later = (s32)(board->newest - sent);

	return later > 0 || (!later && weft_psn_before(psn, board->newest_psn));
}

void weft_board_init(struct weft_board *board, u32 base, u32 end, u32 now)
{
	u32 i;

	memset(board, 0, sizeof(*board));
	board->base = base;
	board->end = end;
	board->known = end;
	board->newest = now - 1;
	board->newest_psn = weft_psn_add(base, WEFT_PSN_MASK);
	for (i = 0; i < WEFT_PSN_SET_SIZE; i++)
		board->sent[i] = now;
}
EXPORT_SYMBOL_GPL(weft_board_init);

void weft_board_find(struct weft_board *board, u32 psn)
{
	if (!weft_psn_set_has(&board->lost, psn))
		return;
	weft_psn_set_del(&board->lost, psn);
	board->num_lost--;
}
EXPORT_SYMBOL_GPL(weft_board_find);

void weft_board_find_all(struct weft_board *board)
{
	memset(&board->lost, 0, sizeof(board->lost));
	board->num_lost = 0;
}
EXPORT_SYMBOL_GPL(weft_board_find_all);

static void unhold(struct weft_board *board, u32 psn)
{
	if (!weft_psn_set_has(&board->held, psn))
		return;
	weft_psn_set_del(&board->held, psn);
	board->num_held--;
}

static void hold(struct weft_board *board, u32 psn)
{
	weft_board_find(board, psn);
	if (weft_psn_set_has(&board->held, psn))
		return;
	weft_psn_set_add(&board->held, psn);
	board->num_held++;
}

void weft_board_sent(struct weft_board *board, u32 psn, u32 num, u32 now)
{
	u32 end = weft_psn_add(psn, num);

	if (board->base == board->end && psn == board->end) {
		/* Nothing was out: however long ago that was, news begin here. */
		board->newest = now - 1;
		board->newest_psn = weft_psn_add(psn, WEFT_PSN_MASK);
	}
	for (; psn != end; psn = weft_psn_add(psn, 1)) {
		if (!tracked(board, psn))
			continue;
		if (weft_psn_before(psn, board->end))
			weft_psn_set_add(&board->again, psn);
		weft_board_find(board, psn);
		board->sent[weft_psn_slot(psn)] = now;
	}
	if (weft_psn_before(board->end, end))
		board->end = end;
}
EXPORT_SYMBOL_GPL(weft_board_sent);

void weft_board_pass(struct weft_board *board, u32 psn, u32 end)
{
	if (weft_psn_before(board->end, end))
		board->end = end;
	for (; psn != end && tracked(board, psn); psn = weft_psn_add(psn, 1))
		hold(board, psn);
}
EXPORT_SYMBOL_GPL(weft_board_pass);

static struct weft_board_guess *guess_of(struct weft_board *board, u32 psn)
{
	u32 i;

	for (i = 0; i < WEFT_BOARD_GUESSES; i++)
		if (board->guesses[i].made && board->guesses[i].psn == psn)
			return &board->guesses[i];
	return NULL;
}

/* @was: board->newest before the news. @early: something before it is missing. */
static void arrived(struct weft_board *board, u32 psn, bool early, u32 was, u32 now, u32 min_rtt,
		    struct weft_board_news *news)
{
	bool again = weft_psn_set_has(&board->again, psn);
	bool known = !weft_psn_before(psn, board->known);
	u32 sent = board->sent[weft_psn_slot(psn)];

	news->arrived++;
	if (again) {
		const struct weft_board_guess *guess = guess_of(board, psn);

		news->recovered++;
		if (!known || (guess && !guess->was_lost))
			news->guessed++;
		/* Of its packets the one that arrived may be the one before. */
		if (guess)
			sent = guess->sent;
		if (now - sent < min_rtt)
			return;
	} else if (known) {
		/* Of which of its packets does the answer to a resend tell? No sample (Karn). */
		if ((s32)(was - sent) > 0)
			news->extent = max(news->extent, was - sent);
		/* What has overtaken others is no measure of them. */
		if (!early)
			news->rtt = max(now - sent, 1u);
	}
	if (sent_before_newest(board, sent, psn)) {
		/* It was overtaken; what is still out of those before it may take as long. */
		if (!again && known)
			board->latency = max(board->latency, now - sent);
		return;
	}
	board->newest = sent;
	board->newest_psn = psn;
	board->latency = now - sent;
}

void weft_board_ack(struct weft_board *board, u32 psn, u32 now, u32 min_rtt,
		    struct weft_board_news *news)
{
	u32 was = board->newest;
	u32 i, slots;

	if (weft_psn_diff(psn, board->base) <= 0)
		return;
	slots = min_t(u32, weft_psn_diff(psn, board->base), WEFT_PSN_SET_SIZE);
	for (i = 0; i < slots; i++) {
		u32 old = weft_psn_add(board->base, i);

		if (weft_psn_set_has(&board->held, old))
			unhold(board, old);
		else
			arrived(board, old, false, was, now, min_rtt, news);
		weft_board_find(board, old);
		weft_psn_set_del(&board->again, old);
		board->sent[weft_psn_slot(old)] = now;
	}
	for (i = 0; i < WEFT_BOARD_GUESSES; i++)
		if (weft_psn_before(board->guesses[i].psn, psn))
			board->guesses[i].made = false;
	board->base = psn;
	if (weft_psn_before(board->end, psn))
		board->end = psn;
	if (weft_psn_before(board->known, psn))
		board->known = psn;
}
EXPORT_SYMBOL_GPL(weft_board_ack);

void weft_board_distrust(struct weft_board *board)
{
	board->known = board->end;
}
EXPORT_SYMBOL_GPL(weft_board_distrust);

void weft_board_sack(struct weft_board *board, u32 epsn, const struct weft_sack *sack, u32 bytes,
		     u32 now, u32 min_rtt, struct weft_board_news *news)
{
	u32 behind = weft_psn_diff(epsn, board->base);
	u32 was = board->newest;
	u32 limit = min(span(board), behind + 1 + weft_sack_bits(bytes));
	u32 i;

	/* Old, or about what was never sent. */
	if (weft_psn_before(epsn, board->base) || weft_psn_before(board->end, epsn))
		return;
	for (i = 0; i < limit; i++) {
		u32 psn = weft_psn_add(board->base, i);

		if (i == behind || (i > behind && !weft_sack_has(sack, i - behind - 1)) ||
		    weft_psn_set_has(&board->held, psn))
			continue;
		arrived(board, psn, i > behind, was, now, min_rtt, news);
		hold(board, psn);
	}
}
EXPORT_SYMBOL_GPL(weft_board_sack);

static s32 until_overdue(const struct weft_board *board, u32 psn, u32 now, u32 window)
{
	return (s32)(board->sent[weft_psn_slot(psn)] + board->latency + window - now);
}

/* Something that was sent after the oldest has arrived. */
static bool oldest_was_overtaken(const struct weft_board *board)
{
	return sent_before_newest(board, board->sent[weft_psn_slot(board->base)], board->base);
}

bool weft_board_overdue(const struct weft_board *board, u32 now, u32 window, u32 *left)
{
	s32 ticks;

	*left = 0;
	if (!outstanding(board, board->base) || !oldest_was_overtaken(board))
		return false;
	ticks = until_overdue(board, board->base, now, window);
	if (ticks <= 0)
		return true;
	*left = ticks;
	return false;
}
EXPORT_SYMBOL_GPL(weft_board_overdue);

u32 weft_board_detect(struct weft_board *board, u32 now, u32 window)
{
	u32 limit = span(board);
	u32 soonest = 0;
	u32 i;

	/* In order so far: what is out was sent after what arrived. */
	if (!board->num_held && !oldest_was_overtaken(board))
		return 0;
	for (i = 0; i < limit; i++) {
		u32 psn, sent;
		s32 left;

		i += weft_psn_set_next_hole(&board->held, weft_psn_add(board->base, i), limit - i);
		psn = weft_psn_add(board->base, i);
		sent = board->sent[weft_psn_slot(psn)];
		if (i >= limit || weft_psn_set_has(&board->lost, psn) ||
		    !sent_before_newest(board, sent, psn))
			continue;
		left = until_overdue(board, psn, now, window);
		if (left <= 0)
			weft_board_lose(board, psn);
		else
			soonest = soonest ? min(soonest, (u32)left) : (u32)left;
	}
	return soonest;
}
EXPORT_SYMBOL_GPL(weft_board_detect);

static void lose(struct weft_board *board, u32 psn)
{
	weft_psn_set_add(&board->lost, psn);
	board->num_lost++;
}

void weft_board_lose(struct weft_board *board, u32 psn)
{
	struct weft_board_guess *guess = guess_of(board, psn);

	if (!outstanding(board, psn))
		return;
	/* Not a guess any more. */
	if (guess)
		guess->made = false;
	lose(board, psn);
}
EXPORT_SYMBOL_GPL(weft_board_lose);

void weft_board_guess(struct weft_board *board, enum weft_board_guesses which, u32 psn)
{
	/* Nothing is missing before it: the news of its end are lost, or that it was refused. */
	if (psn == board->base)
		unhold(board, psn);
	if (!outstanding(board, psn))
		return;
	/* Of several guesses the first one's time stays. */
	if (!guess_of(board, psn))
		board->guesses[which] = (struct weft_board_guess){
			.psn = psn,
			.sent = board->sent[weft_psn_slot(psn)],
			.was_lost = weft_psn_set_has(&board->again, psn),
			.made = true,
		};
	lose(board, psn);
}
EXPORT_SYMBOL_GPL(weft_board_guess);

void weft_board_refused(struct weft_board *board, u32 psn)
{
	weft_board_distrust(board);
	weft_board_guess(board, WEFT_BOARD_REFUSED, psn);
}
EXPORT_SYMBOL_GPL(weft_board_refused);

u32 weft_board_guessed(struct weft_board *board, u32 psn, u32 num)
{
	u32 guessed = 0;

	for (; num--; psn = weft_psn_add(psn, 1)) {
		const struct weft_board_guess *guess = guess_of(board, psn);

		if (guess && guess != &board->guesses[WEFT_BOARD_REFUSED])
			guessed++;
	}
	return guessed;
}
EXPORT_SYMBOL_GPL(weft_board_guessed);

u32 weft_board_lost_run(const struct weft_board *board, u32 max, u32 *psn)
{
	u32 limit = span(board);
	u32 first;

	if (!board->num_lost)
		return 0;
	first = weft_psn_set_next(&board->lost, board->base, limit);
	*psn = weft_psn_add(board->base, first);
	return weft_psn_set_next_hole(&board->lost, *psn, min(limit - first, max));
}
EXPORT_SYMBOL_GPL(weft_board_lost_run);

bool weft_board_tail(const struct weft_board *board, u32 *psn)
{
	u32 i = span(board);

	while (i--) {
		*psn = weft_psn_add(board->base, i);
		if (!weft_psn_set_has(&board->held, *psn))
			return true;
	}
	return false;
}
EXPORT_SYMBOL_GPL(weft_board_tail);
