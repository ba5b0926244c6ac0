// SPDX-License-Identifier: GPL-2.0
/*
 * Payload as fragments of an skb.
 *
 * Only pages that the kernel has pinned for a user are given away by reference: the reference keeps
 * the page when region and QP are long gone, so an skb may lie in a qdisc as long as it likes. A
 * page that its user has got back by then can hold other bytes; the ICRC, computed when the packet
 * was built, has it dropped at its destination.
 */
#include <linux/mm.h>
#include <weft/bth.h>

#include "frags.h"
#include "vec.h"

/* Bytes from @data on that one reference keeps: to the end of its page, or compound page. */
static u32 weft_frags_page_rest(const void *data)
{
	struct page *head = compound_head(virt_to_page(data));

	return min_t(size_t, page_size(head) - (data - page_address(head)), U32_MAX);
}

static void weft_frags_append(struct sk_buff *skb, struct page *page, u32 offset, u32 len)
{
	skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, offset, len);
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
}

/* Contiguous kernel addresses, not always one page. */
static bool weft_frags_name(struct sk_buff *skb, const void *data, u32 len)
{
	struct page *page;
	u32 here;

	for (; len; data += here, len -= here) {
		/* The last one is for what stands behind the payload. */
		if (skb_shinfo(skb)->nr_frags + 1 >= MAX_SKB_FRAGS)
			return false;
		page = virt_to_page(data);
		here = min(len, weft_frags_page_rest(data));
		get_page(page);
		weft_frags_append(skb, page, offset_in_page(data), here);
	}
	return true;
}

static bool weft_frags_name_mr(struct sk_buff *skb, const struct weft_mr *mr, u64 addr, u32 len)
{
	const void *data;
	u32 got;

	for (; len; addr += got, len -= got) {
		data = weft_mr_chunk(mr, addr, len, &got);
		if (!weft_frags_name(skb, data, got))
			return false;
	}
	return true;
}

bool weft_frags_name_sge(struct sk_buff *skb, struct weft_keys *keys, const struct ib_sge *sge,
			 int num_sge, u32 offset, u32 len)
{
	struct weft_mr *mr;
	u32 here;

	for (; len && num_sge; sge++, num_sge--) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		here = min(sge->length - offset, len);
		mr = weft_lkey_find(keys, sge->lkey, sge->addr + offset, here, 0);
		if (!mr || mr->kind != WEFT_MR_USER ||
		    !weft_frags_name_mr(skb, mr, sge->addr + offset, here))
			return false;
		offset = 0;
		len -= here;
	}
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	return !len;
}

void *weft_frags_add_room(struct sk_buff *skb, u32 len)
{
	void *data = netdev_alloc_frag(len);
	struct page *page;

	if (!data)
		return NULL;
	page = virt_to_head_page(data);
	weft_frags_append(skb, page, data - page_address(page), len);
	return data;
}

/* --- reading --- */

/* Where the byte at @offset is, and in @got how many (≤ @want, ≥ 1) stand there. In bounds. */
static const void *weft_skb_chunk(const struct sk_buff *skb, u32 offset, u32 want, u32 *got)
{
	const skb_frag_t *frag = skb_shinfo(skb)->frags;
	const skb_frag_t *end = frag + skb_shinfo(skb)->nr_frags;
	const struct sk_buff *next;

	if (offset < skb_headlen(skb)) {
		*got = min(skb_headlen(skb) - offset, want);
		return skb->data + offset;
	}
	offset -= skb_headlen(skb);
	for (; frag < end; offset -= skb_frag_size(frag++)) {
		if (offset < skb_frag_size(frag)) {
			*got = min(skb_frag_size(frag) - offset, want);
			return skb_frag_address(frag) + offset;
		}
	}
	next = skb_shinfo(skb)->frag_list;
	for (; offset >= next->len; next = next->next)
		offset -= next->len;
	return weft_skb_chunk(next, offset, want, got);
}

void weft_skb_copy(const struct sk_buff *skb, u32 offset, void *to, u32 len)
{
	const void *from;
	u32 got;

	for (; len; offset += got, to += got, len -= got) {
		from = weft_skb_chunk(skb, offset, len, &got);
		weft_vec_copy(to, from, got);
	}
}

__le32 weft_skb_icrc(const struct sk_buff *skb, u32 bth, u32 len, const void *ip, u32 ip_len,
		     bool v6, weft_crc32_fn crc)
{
	u32 offset = bth + sizeof(struct weft_bth);
	const void *udp = ip + ip_len;
	const void *from;
	u32 state, got;

	state = v6 ? weft_icrc_v6(crc, ip, udp, skb->data + bth)
		   : weft_icrc_v4(crc, ip, ip_len, udp, skb->data + bth);
	for (; offset < bth + len; offset += got) {
		from = weft_skb_chunk(skb, offset, bth + len - offset, &got);
		state = crc(state, from, got);
	}
	return weft_icrc_finish(state);
}
