/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory regions and windows: keys, access checks, and the one primitive that turns (MR, iova) into
 * bytes.
 *
 * Lifetime without reference counts: packets look a key up and copy inside one RCU read-side
 * section; dereg, invalidate and dealloc remove or mark the object first and wait for a grace
 * period before they give memory back. An open message whose MR goes away therefore meets an access
 * error at its next packet.
 *
 * Invalidation of a fast-register MR and the unbinding of a window cannot sleep, yet nothing may be
 * read or written through the old key once they are done. What those keys name is therefore a view:
 * a weft_mr of its own with fixed key, bounds and rights, whose guard every copy holds for reading.
 * Ending a view takes the guard for writing, and the view is freed after a grace period.
 */
#ifndef WEFT_MR_H
#define WEFT_MR_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

#include "device.h"

struct weft_burst;
struct weft_qp;

#define WEFT_ACCESS_REMOTE \
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/* Keys are (index << 8 | low byte); the index tells regions and windows apart. */
enum {
	WEFT_MR_INDEX_FIRST = 1,
	WEFT_MR_INDEX_LAST = 0x7fffff,
	WEFT_MW_INDEX_FIRST = 0x800000,
	WEFT_MW_INDEX_LAST = 0xffffff,
};

enum weft_mr_state {
	WEFT_MR_FREE,  /* fast-register: no mapping; a key names it only for REG_MR */
	WEFT_MR_VALID,
};

enum weft_mr_kind {
	WEFT_MR_DMA,  /* all kernel memory; iova is a kernel address */
	WEFT_MR_USER,
	WEFT_MR_FAST, /* fast-register, kernel users: the lookups give its view */
	WEFT_MR_VIEW, /* one registration of a fast-register MR, or one binding of a window */
};

struct weft_mr {
	struct ib_mr ibmr;       /* lkey, rkey, iova, length, pd */
	struct weft_dev *dev;
	enum weft_mr_kind kind;
	enum weft_mr_state state; /* READ_ONCE/WRITE_ONCE */
	u32 key;                  /* current lkey = rkey; low byte changes with REG_MR */
	int access;               /* IB_ACCESS_* */
	u64 iova;
	u64 length;
	void **pages;             /* kernel address of each block of 1 << page_shift bytes */
	u32 num_pages;
	u32 max_pages;            /* fast-register */
	u8 page_shift;
	u64 first_offset;         /* of iova in the first block */
	struct ib_umem *umem;
	atomic_t num_mw;          /* windows bound to it: dereg is refused; -1: dereg has begun */
	spinlock_t lock;          /* fast-register: view, key; BH off */
	struct weft_mr __rcu *view;
	rwlock_t guard;           /* views: state; BH off, innermost */
	u32 qpn;                  /* views of a type 2B window: the only QP that may use it */
	struct rcu_head rcu;
};

struct weft_mw {
	struct ib_mw ibmw;   /* type, pd */
	struct weft_dev *dev;
	spinlock_t lock;     /* all below; BH off */
	u32 key;
	bool gone;           /* dealloc has begun */
	struct weft_mr *mr;  /* bound to it, counted in mr->num_mw; NULL: not bound */
	struct weft_mr __rcu *view; /* what the key names while bound */
};

static inline struct weft_mr *weft_from_ibmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct weft_mr, ibmr);
}

static inline struct weft_mw *weft_from_ibmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct weft_mw, ibmw);
}

/* --- data path; all under rcu_read_lock() --- */

/*
 * Key lookups of one side of a QP, which names the same few regions again and again. A region found
 * is remembered until any region of the device goes (generation), so that a remembered pointer is
 * alive whenever the generation has not changed within the RCU read-side section.
 */
struct weft_keys {
	struct weft_dev *dev;
	const struct ib_pd *pd;
	unsigned int generation; /* of the device when the regions below were found */
	struct weft_mr *found[2];
};

/* Forget what is not certain any more. */
static inline void weft_keys_refresh(struct weft_keys *keys)
{
	/* Pairs with the barrier in weft_mr_gone(): first the region leaves the table. */
	unsigned int generation = atomic_read_acquire(&keys->dev->mr_generation);

	if (likely(keys->generation == generation))
		return;
	keys->generation = generation;
	memset(keys->found, 0, sizeof(keys->found));
}

/* Is [@addr, @addr + @len) inside the MR? */
static inline bool weft_mr_covers(const struct weft_mr *mr, u64 addr, u64 len)
{
	u64 offset = addr - mr->iova;

	if (!len || mr->kind == WEFT_MR_DMA)
		return true;
	return addr >= mr->iova && offset < mr->length && len <= mr->length - offset;
}

static inline struct weft_mr **weft_keys_place(struct weft_keys *keys, u32 key)
{
	return &keys->found[(key >> 8) % ARRAY_SIZE(keys->found)];
}

/* The MR that @key names was not found before. */
struct weft_mr *weft_keys_search(struct weft_keys *keys, u32 key);

static inline struct weft_mr *weft_keys_load(struct weft_keys *keys, u32 key)
{
	struct weft_mr *mr;

	weft_keys_refresh(keys);
	mr = *weft_keys_place(keys, key);
	return likely(mr && mr->key == key) ? mr : weft_keys_search(keys, key);
}

/*
 * MR that @lkey names in the PD if it grants @access (IB_ACCESS_LOCAL_WRITE, or 0 for reading) to
 * [@addr, @addr + @len). NULL: it does not. Bounds are overflow-safe; @len 0 always fits a valid
 * key.
 */
static inline struct weft_mr *weft_lkey_find(struct weft_keys *keys, u32 lkey, u64 addr, u64 len,
					     int access)
{
	struct weft_mr *mr = weft_keys_load(keys, lkey);

	if (!mr || mr->ibmr.pd != keys->pd || (mr->access & access) != access ||
	    !weft_mr_covers(mr, addr, len))
		return NULL;
	return mr;
}

/* weft_mr_chunk() of a range that ends behind its first block, or of all kernel memory. */
void *weft_mr_chunk_far(const struct weft_mr *mr, u64 addr, u32 want, u32 *got);

/* Kernel address of [@addr, @addr + @len) where one block has it all, else NULL. */
static inline void *weft_mr_near(const struct weft_mr *mr, u64 addr, u32 len)
{
	u64 offset = mr->first_offset + (addr - mr->iova);
	u64 block = 1ULL << mr->page_shift;

	if (mr->kind == WEFT_MR_DMA || (offset & (block - 1)) + len > block)
		return NULL;
	return mr->pages[offset >> mr->page_shift] + (offset & (block - 1));
}

/*
 * Kernel address of @addr, and in @got how many bytes (≤ @want, ≥ 1) are contiguous there. In
 * bounds by contract. Not for a view whose guard is not held: use the copies below.
 */
static inline void *weft_mr_chunk(const struct weft_mr *mr, u64 addr, u32 want, u32 *got)
{
	void *mem = weft_mr_near(mr, addr, want);

	if (!mem)
		return weft_mr_chunk_far(mr, addr, want, got);
	*got = want;
	return mem;
}

/* Where a received packet's bytes are: in an skb from a wire, or in a burst of this host. */
struct weft_source {
	const struct sk_buff *skb;
	const struct weft_burst *burst;
	u32 offset; /* of the packet's payload in either */
	bool v6;
	bool more;  /* the next packet of the burst follows at once */
	const struct weft_place *placed; /* NULL, or where a WRITE's payload is; skb is NULL */
	const struct in6_addr *saddr; /* IPv4 as ::ffff:a.b.c.d */
	const struct in6_addr *daddr;
};

/* Copy the first @len bytes of the payload. */
void weft_source_read(const struct weft_source *src, void *to, u32 len);
/* Copy the packet's IP header without options, 20 or 40 bytes. Returns how many. receive.c */
unsigned int weft_source_ip_header(const struct weft_source *src, void *to);

void weft_mr_to_buf(const struct weft_mr *mr, u64 addr, void *buf, u32 len);
void weft_buf_to_mr(const struct weft_mr *mr, u64 addr, const void *buf, u32 len);
void weft_source_to_mr(const struct weft_mr *mr, u64 addr, const struct weft_source *src, u32 len);

/*
 * Scatter/gather lists: @len bytes that begin @offset bytes into the list. -EFAULT: a key, access
 * or bounds violation (some bytes may have been copied); -EMSGSIZE: the list is shorter.
 */
int weft_sge_to_buf(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		    void *buf, u32 len);
int weft_source_to_sge(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		       const struct weft_source *src, u32 len);
int weft_buf_to_sge(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		    const void *buf, u32 len);

/*
 * Atomics on 8 aligned bytes; other processes' view included (cmpxchg on the page). @orig: value
 * before, host order. -EINVAL: not aligned; -EFAULT: the view has just ended.
 */
int weft_mr_compare_swap(const struct weft_mr *mr, u64 addr, u64 compare, u64 swap, u64 *orig);
int weft_mr_fetch_add(const struct weft_mr *mr, u64 addr, u64 add, u64 *orig);
int weft_mr_atomic_write(const struct weft_mr *mr, u64 addr, u64 value_le_bytes);

/* --- for mr.c, mr_copy.c and mw.c --- */
/* The valid MR, or view of a fast-register MR, that @key names in @dev; else NULL. Under RCU. */
struct weft_mr *weft_mr_load(struct weft_dev *dev, u32 key);
/* No copy goes through the view after this. BH off. */
void weft_mr_view_end(struct weft_mr *view);
int weft_mw_invalidate(struct weft_qp *qp, u32 rkey);
/* Index of a new key, from a cyclic allocator that starts anywhere, with a random low byte. */
int weft_key_alloc(struct xarray *xa, u32 *next, u32 first, u32 last, void *object, u32 *key);

/* --- work requests; from the requester or responder, BH off --- */
/* REG_MR: make @mr valid with @key and @access. -EINVAL: wrong state, kind or key. */
int weft_mr_fast_register(struct weft_qp *qp, struct weft_mr *mr, u32 key, int access);
/* LOCAL_INV: @rkey may name a fast-register MR or a type 2 window of the QP's PD. */
int weft_key_invalidate(struct weft_qp *qp, u32 rkey);
/* SEND_INV arriving: same, with the remote user's rights. */
int weft_key_remote_invalidate(struct weft_qp *qp, u32 rkey);

struct weft_mw_bind {
	u32 mw_rkey;  /* window's current key */
	/* type 2: key after the bind (its low byte is the user's); type 1: chosen by the caller */
	u32 new_rkey;
	u32 mr_lkey;
	u64 addr;
	u64 length;   /* 0: unbind (type 1) */
	int access;
};

int weft_mw_bind(struct weft_qp *qp, const struct weft_mw_bind *bind);

/* --- verbs --- */
struct ib_mr *weft_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *weft_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
			       struct ib_udata *udata);
struct ib_mr *weft_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int weft_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset);
int weft_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int weft_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int weft_dealloc_mw(struct ib_mw *ibmw);

#endif
