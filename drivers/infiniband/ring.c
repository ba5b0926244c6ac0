// SPDX-License-Identifier: GPL-2.0
/*
 * Rings shared with userspace: their memory and its mmap.
 *
 * A user's ring belongs to its mmap entry, which ib_core counts: an mmap() that races with the
 * ring's end still finds memory. What a process has mapped are page references, so it outlives even
 * the entry.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "ring.h"

enum { WEFT_RING_MIN_LOG2 = 6 }; /* a slot begins on a cache line of its own */

struct weft_ring_map {
	struct rdma_user_mmap_entry entry;
	void *buf;
};

void weft_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct weft_ring_map *map = container_of(entry, struct weft_ring_map, entry);

	vfree(map->buf);
	kfree(map);
}

/* On success the entry owns the ring's memory. */
static int weft_ring_share(struct weft_ring *ring, struct ib_ucontext *ucontext,
			   struct mminfo __user *info)
{
	struct weft_ring_map *map = kzalloc(sizeof(*map), GFP_KERNEL);
	struct mminfo mi = {};
	int err;

	if (!map)
		return -ENOMEM;
	map->buf = ring->buf;
	err = rdma_user_mmap_entry_insert(ucontext, &map->entry, ring->size);
	if (err) {
		kfree(map);
		return err;
	}
	ring->mmap = &map->entry;
	mi.offset = rdma_user_mmap_get_offset(&map->entry);
	mi.size = ring->size;
	/* On failure the caller frees the ring through its entry. */
	return copy_to_user(info, &mi, sizeof(mi)) ? -EFAULT : 0;
}

struct weft_ring *weft_ring_alloc(struct ib_ucontext *ucontext, u32 *num_elem, u32 elem_size,
				  struct mminfo __user *info)
{
	u32 slots = roundup_pow_of_two(*num_elem + 1);
	struct weft_ring *ring;
	int err;

	if (ucontext && !info)
		return ERR_PTR(-EINVAL);
	ring = kzalloc(sizeof(*ring), GFP_KERNEL);
	if (!ring)
		return ERR_PTR(-ENOMEM);

	ring->log2_elem_size = max_t(u32, order_base_2(elem_size), WEFT_RING_MIN_LOG2);
	ring->mask = slots - 1;
	ring->size = PAGE_ALIGN(sizeof(*ring->buf) + ((size_t)slots << ring->log2_elem_size));
	ring->buf = vmalloc_user(ring->size);
	if (!ring->buf) {
		err = -ENOMEM;
		goto err_free;
	}
	/* For the user alone: the kernel never reads these two back. */
	ring->buf->log2_elem_size = ring->log2_elem_size;
	ring->buf->index_mask = ring->mask;

	if (ucontext) {
		err = weft_ring_share(ring, ucontext, info);
		if (err)
			goto err_free;
	}
	*num_elem = slots - 1;
	return ring;

err_free:
	weft_ring_free(ring);
	return ERR_PTR(err);
}

void weft_ring_free(struct weft_ring *ring)
{
	if (ring->mmap)
		rdma_user_mmap_entry_remove(ring->mmap);
	else
		vfree(ring->buf);
	kfree(ring);
}

int weft_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ucontext, vma);
	int err;

	if (!entry)
		return -EINVAL;
	err = remap_vmalloc_range(vma, container_of(entry, struct weft_ring_map, entry)->buf, 0);
	rdma_user_mmap_entry_put(entry);
	return err;
}
