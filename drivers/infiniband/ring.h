/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings shared with userspace by mmap, in the layout of <rdma/rdma_user_rxe.h>: power-of-two slots,
 * one kept empty, a producer index and a consumer index, both masked.
 *
 * Everything in the mapping can change under our feet. The kernel keeps its own index (producer of
 * a CQ, consumer of a work queue) and the geometry outside the mapping, masks what it reads of the
 * other side's index, and copies a slot once before it looks at it.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_user_rxe.h>

struct weft_ring {
	struct rxe_queue_buf *buf; /* vmalloc_user() */
	size_t size;               /* bytes, page aligned */
	u32 log2_elem_size;
	u32 mask;                  /* slots - 1 */
	u32 index;                 /* the kernel's own; the ring's owner's lock */
	struct rdma_user_mmap_entry *mmap; /* NULL for a ring of a kernel user */
};

/*
 * @num_elem: in: at least so many usable slots, out: how many there are. @ucontext: NULL for a
 * kernel user; else @info (user memory) gets offset and size for mmap.
 */
struct weft_ring *weft_ring_alloc(struct ib_ucontext *ucontext, u32 *num_elem, u32 elem_size,
				  struct mminfo __user *info);
/* Sleeps. A mapping that a process still has stays valid for that process. */
void weft_ring_free(struct weft_ring *ring);
int weft_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma);
/* ops.mmap_free: the ring's memory goes with the last reference to its mmap entry. */
void weft_mmap_free(struct rdma_user_mmap_entry *entry);

static inline void *weft_ring_slot(const struct weft_ring *ring, u32 index)
{
	return ring->buf->data + ((size_t)(index & ring->mask) << ring->log2_elem_size);
}

/*
 * Work queue, kernel consumes: slots that the producer has filled. Pairs with the producer's
 * release.
 */
static inline u32 weft_ring_filled(const struct weft_ring *ring)
{
	/* Pairs with the producer's release behind the slot's content. */
	return (smp_load_acquire(&ring->buf->producer_index) - ring->index) & ring->mask;
}

/* Work queue: give the oldest slot back. */
static inline void weft_ring_consume(struct weft_ring *ring)
{
	ring->index = (ring->index + 1) & ring->mask;
	/* Pairs with the producer's acquire: our copy of the slot is complete. */
	smp_store_release(&ring->buf->consumer_index, ring->index);
}

/* CQ, kernel produces: free slots. */
static inline u32 weft_ring_free_slots(const struct weft_ring *ring)
{
	/* Pairs with the consumer's release in poll. */
	return (smp_load_acquire(&ring->buf->consumer_index) - ring->index - 1) & ring->mask;
}

/* CQ: publish the slot at ring->index. */
static inline void weft_ring_produce(struct weft_ring *ring)
{
	ring->index = (ring->index + 1) & ring->mask;
	/* Pairs with the consumer's acquire in poll: the slot is written. */
	smp_store_release(&ring->buf->producer_index, ring->index);
}

#endif
