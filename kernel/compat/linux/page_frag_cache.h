/* SPDX-License-Identifier: GPL-2.0 */
/* <linux/page_frag_cache.h> for kernels that keep page fragments in gfp.h, without a drain. */
#ifndef WEFT_COMPAT_LINUX_PAGE_FRAG_CACHE_H
#define WEFT_COMPAT_LINUX_PAGE_FRAG_CACHE_H

#ifdef WEFT_HAVE_LINUX_PAGE_FRAG_CACHE_H
#include_next <linux/page_frag_cache.h>
#else
#include <linux/gfp.h>
#include <linux/mm.h>

#ifndef WEFT_HAVE_PAGE_FRAG_CACHE_DRAIN
static inline void page_frag_cache_drain(struct page_frag_cache *nc)
{
	if (!nc->va)
		return;
	__page_frag_cache_drain(virt_to_head_page(nc->va), nc->pagecnt_bias);
	nc->va = NULL;
}
#endif
#endif

#endif /* WEFT_COMPAT_LINUX_PAGE_FRAG_CACHE_H */
