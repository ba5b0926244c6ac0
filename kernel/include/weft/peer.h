/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Is the peer a Weft device? Each RC packet of one has the lowest of BTH's six reserved bits set,
 * which the ICRC does not cover and other devices neither set nor read.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include <weft/types.h>

#define WEFT_RESV6_WEFT BIT(0)

/* Packets in a row that carry the bit before it is believed. */
#define WEFT_PEER_PACKETS 4

struct weft_peer {
	u8 seen; /* packets in a row with the bit; WEFT_PEER_PACKETS: a Weft device, for good */
};

static inline bool weft_peer_is_weft(const struct weft_peer *peer)
{
	return peer->seen == WEFT_PEER_PACKETS;
}

static inline void weft_peer_known(struct weft_peer *peer)
{
	peer->seen = WEFT_PEER_PACKETS;
}

/* Take note of a packet. True: the peer is a Weft device. */
static inline bool weft_peer_packet(struct weft_peer *peer, u8 resv6)
{
	if (weft_peer_is_weft(peer))
		return true;
	peer->seen = resv6 & WEFT_RESV6_WEFT ? peer->seen + 1 : 0;
	return weft_peer_is_weft(peer);
}

#endif
