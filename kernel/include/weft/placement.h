/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Placement out of order: where a WRITE's packet that is ahead of the expected PSN puts its bytes.
 * The RETH, which the first packet of a message has, tells it for those behind.
 */
#ifndef WEFT_PLACEMENT_H
#define WEFT_PLACEMENT_H

#include <weft/bth.h>
#include <weft/psn.h>

/* Messages of several packets whose RETH is remembered, for one QP. */
#define WEFT_PLACEMENT_MESSAGES 16u

struct weft_placement_message {
	u32 first_psn;
	u32 num; /* packets; 0: the slot is free */
	u64 va;
	u32 rkey;
	u32 len; /* bytes */
};

struct weft_placement {
	struct weft_placement_message messages[WEFT_PLACEMENT_MESSAGES];
};

struct weft_place {
	u64 va; /* of the payload's first byte */
	u32 rkey;
};

/*
 * The first packet of a WRITE, of which more follow, has come. Without a free slot it is as if it
 * had not. @mtu: path MTU in bytes.
 */
void weft_placement_note(struct weft_placement *p, u32 mtu, const struct weft_pkt *pkt);

/* What lies before @epsn is over. Call it for the last packet of a WRITE of several. */
void weft_placement_forget(struct weft_placement *p, u32 epsn);

/*
 * Where the payload of @pkt goes. False: it is no WRITE, has no payload, its RETH has not been
 * seen, or its place in the message and its length do not agree.
 */
bool weft_placement_find(const struct weft_placement *p, u32 mtu, const struct weft_pkt *pkt,
			 struct weft_place *place);

#endif
