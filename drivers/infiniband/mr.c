// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: registration, invalidation, deregistration. What packets do with them is in
 * mr_copy.c.
 *
 * A region is published by its state: VALID is written last, with release; lookups read it first,
 * with acquire. A fast-register MR itself never becomes valid; each REG_MR makes a view of it
 * (mr.h).
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "mr.h"
#include "qp.h"

/* Relaxed ordering and whatever else is optional asks for nothing; huge pages are found anyway. */
#define WEFT_ACCESS_MR \
	(WEFT_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND | IB_ZERO_BASED | \
	 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

int weft_key_alloc(struct xarray *xa, u32 *next, u32 first, u32 last, void *object, u32 *key)
{
	u32 index;
	int err;

	cmpxchg(next, 0, first + get_random_u32() % (last - first));
	err = xa_alloc_cyclic(xa, &index, object, XA_LIMIT(first, last), next, GFP_KERNEL);
	if (err < 0)
		return err;
	*key = index << 8 | (get_random_u32() & 0xff);
	return 0;
}

static struct weft_mr *weft_mr_alloc(struct ib_pd *pd, enum weft_mr_kind kind, int access)
{
	struct weft_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return NULL;
	mr->dev = weft_from_ibdev(pd->device);
	mr->ibmr.device = pd->device;
	mr->ibmr.pd = pd;
	mr->kind = kind;
	mr->state = WEFT_MR_FREE;
	mr->access = access;
	spin_lock_init(&mr->lock);
	rwlock_init(&mr->guard);
	return mr;
}

static void weft_mr_free(struct weft_mr *mr)
{
	ib_umem_release(mr->umem);
	kvfree(mr->pages);
	kfree(mr);
}

/* Give the MR its key; from here on lookups can meet it. */
static int weft_mr_publish(struct weft_mr *mr, enum weft_mr_state state)
{
	struct weft_dev *dev = mr->dev;
	u32 key;
	int err;

	err = weft_key_alloc(&dev->mrs, &dev->mr_next, WEFT_MR_INDEX_FIRST, WEFT_MR_INDEX_LAST, mr,
			     &key);
	if (err)
		return err;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	WRITE_ONCE(mr->key, key);
	/* Pairs with the acquire in weft_mr_load(): all of the MR is there. */
	smp_store_release(&mr->state, state);
	return 0;
}

struct ib_mr *weft_get_dma_mr(struct ib_pd *pd, int access)
{
	struct weft_mr *mr = weft_mr_alloc(pd, WEFT_MR_DMA, access);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = U64_MAX;
	err = weft_mr_publish(mr, WEFT_MR_VALID);
	if (err) {
		weft_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/*
 * Kernel addresses of the pinned pages, one per block of the largest size that divides them all.
 * Blocks are aligned by the user's address, whatever the iova is.
 */
static int weft_mr_map_umem(struct weft_mr *mr, u64 start, u64 length)
{
	u64 first = start & PAGE_MASK;
	unsigned long block, offset;
	struct sg_page_iter iter;
	void *page;
	u64 addr = first;
	u64 blocks;

	block = ib_umem_find_best_pgsz(mr->umem, GENMASK(30, PAGE_SHIFT), start);
	if (!block)
		return -EINVAL;
	blocks = (ALIGN(start + length, block) - ALIGN_DOWN(start, block)) / block;
	if (blocks > INT_MAX / sizeof(*mr->pages))
		return -ENOMEM;
	mr->pages = kvmalloc_array(blocks, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	mr->page_shift = ilog2(block);
	mr->first_offset = start & (block - 1);

	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0) {
		offset = addr & (block - 1);
		if (addr == first || !offset) {
			if (mr->num_pages == blocks)
				return -EINVAL;
			/* Of the first block only what the user gave is ever reached. */
			page = page_address(sg_page_iter_page(&iter));
			mr->pages[mr->num_pages++] = page - offset;
		}
		addr += PAGE_SIZE;
	}
	return mr->num_pages == blocks ? 0 : -EINVAL;
}

struct ib_mr *weft_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
			       struct ib_udata *udata)
{
	struct weft_mr *mr;
	u64 end;
	int err;

	if (access & ~WEFT_ACCESS_MR)
		return ERR_PTR(-EOPNOTSUPP);
	if (access & IB_ZERO_BASED)
		iova = 0;
	if (check_add_overflow(iova, length, &end) || check_add_overflow(start, length, &end))
		return ERR_PTR(-EINVAL);

	mr = weft_mr_alloc(pd, WEFT_MR_USER, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = iova;
	mr->length = length;
	if (length) {
		mr->umem = ib_umem_get_va(pd->device, start, length, access);
		if (IS_ERR(mr->umem)) {
			err = PTR_ERR(mr->umem);
			mr->umem = NULL;
			goto err_free;
		}
		err = weft_mr_map_umem(mr, start, length);
		if (err)
			goto err_free;
	}
	err = weft_mr_publish(mr, WEFT_MR_VALID);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	weft_mr_free(mr);
	return ERR_PTR(err);
}

struct ib_mr *weft_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct weft_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > WEFT_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = weft_mr_alloc(pd, WEFT_MR_FAST, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_num_sg;
	mr->pages = kvcalloc(max_num_sg, sizeof(*mr->pages), GFP_KERNEL);
	if (!mr->pages) {
		err = -ENOMEM;
		goto err_free;
	}
	err = weft_mr_publish(mr, WEFT_MR_FREE);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	weft_mr_free(mr);
	return ERR_PTR(err);
}

static int weft_mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct weft_mr *mr = weft_from_ibmr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	/* the device's DMA addresses are virtual */
	mr->pages[mr->num_pages++] = (void *)(uintptr_t)addr;
	return 0;
}

/* The user keeps the MR free while this runs, so nothing reads the pages. */
int weft_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset)
{
	struct weft_mr *mr = weft_from_ibmr(ibmr);
	int mapped;

	if (mr->kind != WEFT_MR_FAST || !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mr->num_pages = 0;
	mapped = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, weft_mr_set_page);
	if (mapped <= 0)
		return mapped;
	mr->page_shift = ilog2(ibmr->page_size);
	/* Now: the user may give the MR another iova before it registers it. */
	mr->first_offset = ibmr->iova & (ibmr->page_size - 1);
	return mapped;
}

void weft_mr_view_end(struct weft_mr *view)
{
	write_lock_bh(&view->guard);
	WRITE_ONCE(view->state, WEFT_MR_FREE);
	write_unlock_bh(&view->guard);
	kfree_rcu(view, rcu);
}

/* Out of the table, then out of what QPs remember of it (mr.h). A grace period must follow. */
static void weft_mr_gone(struct weft_mr *mr)
{
	xa_erase(&mr->dev->mrs, mr->key >> 8);
	smp_mb__before_atomic(); /* pairs with the acquire in weft_keys_refresh() */
	atomic_inc(&mr->dev->mr_generation);
}

int weft_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct weft_mr *mr = weft_from_ibmr(ibmr);
	struct weft_mr *view;

	/* From here on no window can be bound to it. */
	if (atomic_cmpxchg(&mr->num_mw, 0, -1))
		return -EBUSY;
	weft_mr_gone(mr);

	spin_lock_bh(&mr->lock);
	view = rcu_replace_pointer(mr->view, NULL, lockdep_is_held(&mr->lock));
	spin_unlock_bh(&mr->lock);
	if (view)
		weft_mr_view_end(view);

	synchronize_rcu_expedited();
	weft_mr_free(mr);
	return 0;
}

/* --- work requests --- */

static struct weft_mr *weft_mr_view_make(const struct weft_mr *mr, u32 key, int access)
{
	struct weft_mr *view;
	u64 end;

	if (access & ~(WEFT_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ACCESS_OPTIONAL) ||
	    (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	     !(access & IB_ACCESS_LOCAL_WRITE)))
		return ERR_PTR(-EINVAL);
	if (mr->first_offset + mr->ibmr.length > (u64)mr->num_pages << mr->page_shift ||
	    check_add_overflow(mr->ibmr.iova, mr->ibmr.length, &end))
		return ERR_PTR(-EINVAL);

	view = kzalloc(sizeof(*view), GFP_ATOMIC);
	if (!view)
		return ERR_PTR(-ENOMEM);
	rwlock_init(&view->guard);
	view->dev = mr->dev;
	view->ibmr.pd = mr->ibmr.pd;
	view->kind = WEFT_MR_VIEW;
	view->state = WEFT_MR_VALID;
	view->key = key;
	view->access = access;
	view->iova = mr->ibmr.iova;
	view->length = mr->ibmr.length;
	view->pages = mr->pages;
	view->num_pages = mr->num_pages;
	view->page_shift = mr->page_shift;
	view->first_offset = mr->first_offset;
	return view;
}

int weft_mr_fast_register(struct weft_qp *qp, struct weft_mr *mr, u32 key, int access)
{
	struct weft_mr *view;
	int err = 0;

	if (mr->kind != WEFT_MR_FAST || mr->ibmr.pd != qp->ibqp.pd || (mr->key ^ key) >> 8)
		return -EINVAL;

	spin_lock_bh(&mr->lock);
	if (rcu_access_pointer(mr->view)) {
		err = -EINVAL;
	} else {
		view = weft_mr_view_make(mr, key, access);
		if (IS_ERR(view)) {
			err = PTR_ERR(view);
		} else {
			mr->key = key;
			rcu_assign_pointer(mr->view, view);
		}
	}
	spin_unlock_bh(&mr->lock);
	return err;
}

/* @remote: the other side asks, who may end only what was opened to it. */
static int weft_mr_invalidate(struct weft_qp *qp, u32 key, bool remote)
{
	struct weft_mr *mr = xa_load(&qp->dev->mrs, key >> 8);
	struct weft_mr *view;
	int err = 0;

	if (!mr || mr->kind != WEFT_MR_FAST || mr->ibmr.pd != qp->ibqp.pd)
		return -EINVAL;

	spin_lock_bh(&mr->lock);
	view = rcu_dereference_protected(mr->view, lockdep_is_held(&mr->lock));
	if (mr->key != key || (remote && !(view && view->access & WEFT_ACCESS_REMOTE)))
		err = -EINVAL;
	else
		rcu_assign_pointer(mr->view, NULL);
	spin_unlock_bh(&mr->lock);

	if (!err && view)
		weft_mr_view_end(view);
	return err;
}

static int weft_key_end(struct weft_qp *qp, u32 rkey, bool remote)
{
	int err;

	rcu_read_lock();
	if (rkey >> 8 >= WEFT_MW_INDEX_FIRST)
		err = weft_mw_invalidate(qp, rkey);
	else
		err = weft_mr_invalidate(qp, rkey, remote);
	rcu_read_unlock();
	return err;
}

int weft_key_invalidate(struct weft_qp *qp, u32 rkey)
{
	return weft_key_end(qp, rkey, false);
}

int weft_key_remote_invalidate(struct weft_qp *qp, u32 rkey)
{
	return weft_key_end(qp, rkey, true);
}
