/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Payload as fragments of an skb: pages of a memory region by reference, or memory of its own; and
 * reading what is spread over fragments.
 */
#ifndef WEFT_FRAGS_H
#define WEFT_FRAGS_H

#include <linux/skbuff.h>
#include <weft/icrc.h>

#include "mr.h"

/*
 * Append the @len bytes that begin @offset bytes into the list by reference: each page is held for
 * as long as the skb is. False: not all of them can be named, and the skb is of no use any more;
 * copy them, and the copy says what is wrong. @keys: the sender's, under RCU.
 */
bool weft_frags_name_sge(struct sk_buff *skb, struct weft_keys *keys, const struct ib_sge *sge,
			 int num_sge, u32 offset, u32 len);
/* Append @len bytes of memory of its own. NULL: there is none. BH off. */
void *weft_frags_add_room(struct sk_buff *skb, u32 len);

/* Copy @len bytes from @offset on, in bounds. */
void weft_skb_copy(const struct sk_buff *skb, u32 offset, void *to, u32 len);

/*
 * ICRC of a packet whose BTH is linear, @bth bytes behind skb->data, and which has @len bytes from
 * there to the ICRC's place. @ip: its IP header of @ip_len bytes, UDP behind it. @crc: what
 * weft_crc_begin() gave.
 */
__le32 weft_skb_icrc(const struct sk_buff *skb, u32 bth, u32 len, const void *ip, u32 ip_len,
		     bool v6, weft_crc32_fn crc);

#endif
