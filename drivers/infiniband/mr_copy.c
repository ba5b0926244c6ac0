// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions on the data path: from a key to a region, and bytes in and out of it.
 *
 * Everything here runs under rcu_read_lock(). A region that a lookup returned stays as it is until
 * the end of that section, except a view (mr.h), whose guard the copies take.
 */
#include <linux/skbuff.h>

#include "burst.h"
#include "frags.h"
#include "mr.h"
#include "qp.h"
#include "vec.h"

struct weft_mr *weft_mr_load(struct weft_dev *dev, u32 key)
{
	struct weft_mr *mr = xa_load(&dev->mrs, key >> 8);

	if (mr && mr->kind == WEFT_MR_FAST)
		mr = rcu_dereference(mr->view);
	/* Pairs with the release in weft_mr_publish(): the key is there. */
	if (!mr || smp_load_acquire(&mr->state) != WEFT_MR_VALID || READ_ONCE(mr->key) != key)
		return NULL;
	return mr;
}

/* Only regions that a grace period ends are remembered: a view can end at any time. */
struct weft_mr *weft_keys_search(struct weft_keys *keys, u32 key)
{
	struct weft_mr *mr = weft_mr_load(keys->dev, key);

	if (mr && mr->kind != WEFT_MR_VIEW)
		*weft_keys_place(keys, key) = mr;
	return mr;
}

struct weft_mr *weft_window_load(struct weft_qp *qp, u32 rkey)
{
	struct weft_mw *mw = xa_load(&qp->dev->mws, rkey >> 8);
	struct weft_mr *view = mw ? rcu_dereference(mw->view) : NULL;

	if (!view || view->key != rkey || (view->qpn && view->qpn != qp->qpn))
		return NULL;
	return view;
}

void *weft_mr_chunk_far(const struct weft_mr *mr, u64 addr, u32 want, u32 *got)
{
	u64 block = 1ULL << mr->page_shift;
	u64 offset, here;
	u32 i;

	if (mr->kind == WEFT_MR_DMA) {
		*got = want;
		return (void *)(uintptr_t)addr;
	}
	offset = mr->first_offset + (addr - mr->iova);
	i = offset >> mr->page_shift;
	offset &= block - 1;
	here = block - offset;
	*got = want;
	if (unlikely(here < want)) {
		u32 next;

		for (next = i + 1; here < want; next++, here += block)
			if (next >= mr->num_pages || mr->pages[next] != mr->pages[next - 1] + block)
				break;
		*got = min_t(u64, here, want);
	}
	return mr->pages[i] + offset;
}

static void weft_source_copy(const struct weft_source *src, u32 offset, void *to, u32 len)
{
	if (src->burst && !src->burst->num_parts)
		weft_vec_copy(to, src->burst->data + src->offset + offset, len);
	else if (src->burst)
		weft_burst_read(src->burst, src->offset + offset, to, len);
	else
		weft_skb_copy(src->skb, src->offset + offset, to, len);
}

void weft_source_read(const struct weft_source *src, void *to, u32 len)
{
	weft_source_copy(src, 0, to, len);
}

/* One copy between a region and a buffer or a packet. */
struct weft_copy {
	u64 addr;
	u32 len;
	enum { WEFT_COPY_OUT, WEFT_COPY_IN, WEFT_COPY_IN_PACKET } kind;
	union {
		void *dst;
		const void *src;
		struct {
			const struct weft_source *packet;
			u32 offset;
		};
	};
};

static void weft_copy_advance(struct weft_copy *copy, u32 len)
{
	switch (copy->kind) {
	case WEFT_COPY_OUT:
		copy->dst += len;
		break;
	case WEFT_COPY_IN:
		copy->src += len;
		break;
	case WEFT_COPY_IN_PACKET:
		copy->offset += len;
		break;
	}
}

static void weft_copy_chunk(const struct weft_copy *copy, void *mem, u32 len)
{
	switch (copy->kind) {
	case WEFT_COPY_OUT:
		weft_vec_copy(copy->dst, mem, len);
		break;
	case WEFT_COPY_IN:
		weft_vec_copy(mem, copy->src, len);
		break;
	case WEFT_COPY_IN_PACKET:
		weft_source_copy(copy->packet, copy->offset, mem, len);
		break;
	}
}

/* Leaves @copy behind the bytes that it copied. */
static void weft_copy_unguarded(const struct weft_mr *mr, struct weft_copy *copy)
{
	void *mem;
	u32 got;

	while (copy->len) {
		mem = weft_mr_chunk(mr, copy->addr, copy->len, &got);
		weft_copy_chunk(copy, mem, got);
		weft_copy_advance(copy, got);
		copy->addr += got;
		copy->len -= got;
	}
}

/* -EFAULT: the view has ended since it was looked up; nothing was copied. */
static int weft_copy_view(const struct weft_mr *mr, struct weft_copy *copy)
{
	struct weft_mr *view = (struct weft_mr *)mr;
	int err = -EFAULT;

	read_lock_bh(&view->guard);
	if (view->state == WEFT_MR_VALID) {
		weft_copy_unguarded(view, copy);
		err = 0;
	}
	read_unlock_bh(&view->guard);
	return err;
}

static int weft_copy(const struct weft_mr *mr, struct weft_copy *copy)
{
	if (mr->kind == WEFT_MR_VIEW)
		return weft_copy_view(mr, copy);
	weft_copy_unguarded(mr, copy);
	return 0;
}

/* Many pieces under one claim of the vector registers. */
static void weft_mr_long_to_buf(const struct weft_mr *mr, u64 addr, void *buf, u32 len)
{
	const void *mem;
	u32 got;

	for (; len; addr += got, buf += got, len -= got) {
		mem = weft_mr_chunk(mr, addr, len, &got);
		weft_vec_copy_piece(buf, mem, got);
	}
	weft_vec_end();
}

void weft_mr_to_buf(const struct weft_mr *mr, u64 addr, void *buf, u32 len)
{
	struct weft_copy copy = { .addr = addr, .len = len, .kind = WEFT_COPY_OUT, .dst = buf };

	if (len >= WEFT_VEC_COPY_MIN && mr->kind != WEFT_MR_VIEW && weft_vec_copy_begin())
		return weft_mr_long_to_buf(mr, addr, buf, len);
	/* The answer to a READ that the invalidation has overtaken carries nothing. */
	if (weft_copy(mr, &copy))
		memset(buf, 0, len);
}

/* An invalidation that overtakes a write wins: the bytes are not written. */
void weft_buf_to_mr(const struct weft_mr *mr, u64 addr, const void *buf, u32 len)
{
	struct weft_copy copy = { .addr = addr, .len = len, .kind = WEFT_COPY_IN, .src = buf };

	weft_copy(mr, &copy);
}

static noinline void *weft_mr_flat_far(const struct weft_mr *mr, u64 addr, u32 len)
{
	void *mem;
	u32 got;

	mem = weft_mr_chunk_far(mr, addr, len, &got);
	return got == len ? mem : NULL;
}

/* Memory of [@addr, @addr + @len) if it is in one piece and needs no guard, else NULL. */
static void *weft_mr_flat(const struct weft_mr *mr, u64 addr, u32 len)
{
	void *mem;

	if (!len || mr->kind == WEFT_MR_VIEW)
		return NULL;
	mem = weft_mr_near(mr, addr, len);
	return likely(mem) ? mem : weft_mr_flat_far(mr, addr, len);
}

static noinline void weft_source_to_mr_pieces(const struct weft_mr *mr, u64 addr,
					      const struct weft_source *src, u32 len)
{
	struct weft_copy copy = {
		.addr = addr, .len = len, .kind = WEFT_COPY_IN_PACKET, .packet = src, .offset = 0,
	};

	weft_copy(mr, &copy);
}

void weft_source_to_mr(const struct weft_mr *mr, u64 addr, const struct weft_source *src, u32 len)
{
	void *mem = weft_mr_flat(mr, addr, len);

	if (likely(mem))
		return weft_source_copy(src, 0, mem, len);
	weft_source_to_mr_pieces(mr, addr, src, len);
}

/* @todo: len and source or destination; addr is taken from the list. */
static int weft_sge_copy(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
			 struct weft_copy *todo, int access)
{
	u32 left = todo->len;
	struct weft_mr *mr;
	int err;

	for (; left && num_sge > 0; sge++, num_sge--) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		todo->addr = sge->addr + offset;
		todo->len = min(sge->length - offset, left);
		if (todo->addr < sge->addr)
			return -EFAULT;
		left -= todo->len;
		offset = 0;
		mr = weft_lkey_find(keys, sge->lkey, todo->addr, todo->len, access);
		if (!mr)
			return -EFAULT;
		err = weft_copy(mr, todo);
		if (err)
			return err;
	}
	return left ? -EMSGSIZE : 0;
}

/* The same if all is in the list's first piece, which is one piece of memory too, else NULL. */
static void *weft_sge_flat(struct weft_keys *keys, const struct ib_sge *sge, int num_sge,
			   u32 offset, u32 len, int access)
{
	struct weft_mr *mr;
	u64 addr;

	if (num_sge < 1 || offset > sge->length || len > sge->length - offset)
		return NULL;
	addr = sge->addr + offset;
	if (addr < sge->addr)
		return NULL;
	mr = weft_lkey_find(keys, sge->lkey, addr, len, access);
	return mr ? weft_mr_flat(mr, addr, len) : NULL;
}

static noinline int weft_sge_pieces_to_buf(struct weft_keys *keys, const struct ib_sge *sge,
					   int num_sge, u32 offset, void *buf, u32 len)
{
	struct weft_copy todo = { .len = len, .kind = WEFT_COPY_OUT, .dst = buf };

	return weft_sge_copy(keys, sge, num_sge, offset, &todo, 0);
}

int weft_sge_to_buf(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		    void *buf, u32 len)
{
	void *mem = weft_sge_flat(keys, sge, num_sge, offset, len, 0);

	if (unlikely(!mem))
		return weft_sge_pieces_to_buf(keys, sge, num_sge, offset, buf, len);
	weft_vec_copy(buf, mem, len);
	return 0;
}

int weft_buf_to_sge(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		    const void *buf, u32 len)
{
	struct weft_copy todo = { .len = len, .kind = WEFT_COPY_IN, .src = buf };

	return weft_sge_copy(keys, sge, num_sge, offset, &todo, IB_ACCESS_LOCAL_WRITE);
}

static noinline int weft_source_to_sge_pieces(struct weft_keys *keys, const struct ib_sge *sge,
					      int num_sge, u32 offset,
					      const struct weft_source *src, u32 len)
{
	struct weft_copy todo = {
		.len = len, .kind = WEFT_COPY_IN_PACKET, .packet = src, .offset = 0,
	};

	return weft_sge_copy(keys, sge, num_sge, offset, &todo, IB_ACCESS_LOCAL_WRITE);
}

int weft_source_to_sge(struct weft_keys *keys, const struct ib_sge *sge, int num_sge, u32 offset,
		       const struct weft_source *src, u32 len)
{
	void *mem = weft_sge_flat(keys, sge, num_sge, offset, len, IB_ACCESS_LOCAL_WRITE);

	if (unlikely(!mem))
		return weft_source_to_sge_pieces(keys, sge, num_sge, offset, src, len);
	weft_source_copy(src, 0, mem, len);
	return 0;
}

/* --- atomics --- */

struct weft_atomic {
	u64 addr;
	enum { WEFT_ATOMIC_SWAP, WEFT_ATOMIC_ADD, WEFT_ATOMIC_STORE } kind;
	u64 operand;
	u64 compare;
	u64 orig;
};

/* Eight aligned bytes never straddle two blocks, so one chunk has them. */
static int weft_atomic_unguarded(const struct weft_mr *mr, struct weft_atomic *op)
{
	u32 got;
	u64 *word = weft_mr_chunk(mr, op->addr, sizeof(*word), &got);

	if (!IS_ALIGNED((uintptr_t)word, sizeof(*word)) || got != sizeof(*word))
		return -EINVAL;
	switch (op->kind) {
	case WEFT_ATOMIC_SWAP:
		op->orig = cmpxchg64(word, op->compare, op->operand);
		break;
	case WEFT_ATOMIC_ADD:
		op->orig = atomic64_fetch_add(op->operand, (atomic64_t *)word);
		break;
	case WEFT_ATOMIC_STORE:
		/* Whoever sees the eight bytes sees what the same QP wrote before them. */
		smp_store_release(word, op->operand);
		break;
	}
	return 0;
}

static int weft_atomic_view(const struct weft_mr *mr, struct weft_atomic *op)
{
	struct weft_mr *view = (struct weft_mr *)mr;
	int err = -EFAULT;

	read_lock_bh(&view->guard);
	if (view->state == WEFT_MR_VALID)
		err = weft_atomic_unguarded(view, op);
	read_unlock_bh(&view->guard);
	return err;
}

static int weft_atomic(const struct weft_mr *mr, struct weft_atomic *op)
{
	return mr->kind == WEFT_MR_VIEW ? weft_atomic_view(mr, op) : weft_atomic_unguarded(mr, op);
}

int weft_mr_compare_swap(const struct weft_mr *mr, u64 addr, u64 compare, u64 swap, u64 *orig)
{
	struct weft_atomic op = {
		.addr = addr, .kind = WEFT_ATOMIC_SWAP, .operand = swap, .compare = compare,
	};
	int err = weft_atomic(mr, &op);

	*orig = op.orig;
	return err;
}

int weft_mr_fetch_add(const struct weft_mr *mr, u64 addr, u64 add, u64 *orig)
{
	struct weft_atomic op = { .addr = addr, .kind = WEFT_ATOMIC_ADD, .operand = add };
	int err = weft_atomic(mr, &op);

	*orig = op.orig;
	return err;
}

int weft_mr_atomic_write(const struct weft_mr *mr, u64 addr, u64 value_le_bytes)
{
	struct weft_atomic op = {
		.addr = addr, .kind = WEFT_ATOMIC_STORE, .operand = value_le_bytes,
	};

	return weft_atomic(mr, &op);
}
