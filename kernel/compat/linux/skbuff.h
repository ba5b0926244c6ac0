/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skb_frag_fill_page_desc() for kernels that fill a fragment's fields one by one, and
 * skb_frags_readable() for those whose fragments always are.
 */
#ifndef WEFT_COMPAT_LINUX_SKBUFF_H
#define WEFT_COMPAT_LINUX_SKBUFF_H

#include_next <linux/skbuff.h>

#ifndef WEFT_HAVE_SKB_FRAG_FILL_PAGE_DESC
static inline void skb_frag_fill_page_desc(skb_frag_t *frag, struct page *page,
					   int offset, int size)
{
	__skb_frag_set_page(frag, page);
	skb_frag_off_set(frag, offset);
	skb_frag_size_set(frag, size);
}
#endif

#ifndef WEFT_HAVE_SKB_FRAGS_READABLE
static inline bool skb_frags_readable(const struct sk_buff *skb)
{
	return true;
}
#endif

#endif /* WEFT_COMPAT_LINUX_SKBUFF_H */
