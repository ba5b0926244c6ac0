// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows, type 1 and 2B: a window's key opens a part of an MR, with rights of its own,
 * until the window is bound again (type 1), invalidated (type 2B) or freed. A binding is a view
 * (mr.h).
 *
 * Type 1 belongs to its PD, is bound as often as the user likes, and with length 0 opens nothing.
 * Type 2B belongs to the QP that bound it, and must be invalidated before it is bound again.
 */
#include <linux/slab.h>

#include "mr.h"
#include "qp.h"

/* Local write is none of a window's rights, but users ask for it, and no NIC minds. */
#define WEFT_ACCESS_MW (WEFT_ACCESS_REMOTE | IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED)

int weft_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct weft_mw *mw = weft_from_ibmw(ibmw);
	struct weft_dev *dev = weft_from_ibdev(ibmw->device);
	int err;

	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	mw->dev = dev;
	spin_lock_init(&mw->lock);
	/*
	 * A lookup may meet it before its key is set; it is not bound, so there is nothing to find.
	 */
	err = weft_key_alloc(&dev->mws, &dev->mw_next, WEFT_MW_INDEX_FIRST, WEFT_MW_INDEX_LAST, mw,
			     &mw->key);
	if (err)
		return err;
	ibmw->rkey = mw->key;
	return 0;
}

/* Under mw->lock. */
static void weft_mw_unbind(struct weft_mw *mw)
{
	struct weft_mr *view = rcu_replace_pointer(mw->view, NULL, lockdep_is_held(&mw->lock));

	if (!view)
		return;
	weft_mr_view_end(view);
	/* Last: dereg may go on as soon as no window is left. */
	atomic_dec(&mw->mr->num_mw);
	mw->mr = NULL;
}

int weft_dealloc_mw(struct ib_mw *ibmw)
{
	struct weft_mw *mw = weft_from_ibmw(ibmw);

	xa_erase(&mw->dev->mws, mw->key >> 8);
	spin_lock_bh(&mw->lock);
	mw->gone = true;
	weft_mw_unbind(mw);
	spin_unlock_bh(&mw->lock);
	/* Lookups that still hold the window; ib_core frees it next. */
	synchronize_rcu_expedited();
	return 0;
}

/*
 * May the window be bound so, whatever the MR is? It is named by its index alone: a user whose last
 * bind failed, or who leaves ibv_mw.rkey as it was, no longer knows the low byte. Under mw->lock.
 */
static int weft_mw_check(const struct weft_mw *mw, const struct weft_qp *qp,
			 const struct weft_mw_bind *bind)
{
	bool type2 = mw->ibmw.type == IB_MW_TYPE_2;

	if (mw->gone || (bind->new_rkey ^ mw->key) >> 8 || mw->ibmw.pd != qp->ibqp.pd)
		return -EINVAL;
	if (bind->access & ~WEFT_ACCESS_MW)
		return -EINVAL;
	if (type2)
		return mw->mr || !bind->length ? -EINVAL : 0;
	return bind->access & IB_ZERO_BASED ? -EINVAL : 0;
}

/* The MR below the window, counted. Under RCU. */
static struct weft_mr *weft_mw_get_mr(const struct weft_qp *qp, const struct weft_mw_bind *bind)
{
	struct weft_mr *mr = weft_mr_load(qp->dev, bind->mr_lkey);

	if (!mr || mr->kind != WEFT_MR_USER || mr->ibmr.pd != qp->ibqp.pd)
		return NULL;
	if (!(mr->access & IB_ACCESS_MW_BIND) || !weft_mr_covers(mr, bind->addr, bind->length))
		return NULL;
	if (bind->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return NULL;
	return atomic_inc_unless_negative(&mr->num_mw) ? mr : NULL;
}

static struct weft_mr *weft_mw_view_make(const struct weft_mw *mw, const struct weft_mr *mr,
					 u32 qpn,
					 const struct weft_mw_bind *bind)
{
	struct weft_mr *view = kzalloc(sizeof(*view), GFP_ATOMIC);

	if (!view)
		return NULL;
	rwlock_init(&view->guard);
	view->dev = mw->dev;
	view->ibmr.pd = mw->ibmw.pd;
	view->kind = WEFT_MR_VIEW;
	view->state = WEFT_MR_VALID;
	view->key = bind->new_rkey;
	view->access = bind->access & WEFT_ACCESS_REMOTE;
	view->iova = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	view->length = bind->length;
	view->pages = mr->pages;
	view->num_pages = mr->num_pages;
	view->page_shift = mr->page_shift;
	view->first_offset = mr->first_offset + (bind->addr - mr->iova);
	if (mw->ibmw.type == IB_MW_TYPE_2)
		view->qpn = qpn;
	return view;
}

/* Under RCU and mw->lock. */
static int weft_mw_bind_locked(struct weft_mw *mw, struct weft_qp *qp,
			       const struct weft_mw_bind *bind)
{
	struct weft_mr *view = NULL;
	struct weft_mr *mr = NULL;
	int err;

	err = weft_mw_check(mw, qp, bind);
	if (err)
		return err;
	if (bind->length) {
		mr = weft_mw_get_mr(qp, bind);
		if (!mr)
			return -EINVAL;
		view = weft_mw_view_make(mw, mr, qp->qpn, bind);
		if (!view) {
			atomic_dec(&mr->num_mw);
			return -ENOMEM;
		}
	}
	weft_mw_unbind(mw);
	mw->key = bind->new_rkey;
	mw->mr = mr;
	rcu_assign_pointer(mw->view, view);
	return 0;
}

int weft_mw_bind(struct weft_qp *qp, const struct weft_mw_bind *bind)
{
	struct weft_mw *mw;
	int err = -EINVAL;

	if (bind->mw_rkey >> 8 < WEFT_MW_INDEX_FIRST)
		return -EINVAL;
	rcu_read_lock();
	mw = xa_load(&qp->dev->mws, bind->mw_rkey >> 8);
	if (mw) {
		spin_lock_bh(&mw->lock);
		err = weft_mw_bind_locked(mw, qp, bind);
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return err;
}

int weft_mw_invalidate(struct weft_qp *qp, u32 rkey)
{
	struct weft_mw *mw = xa_load(&qp->dev->mws, rkey >> 8);
	struct weft_mr *view;
	int err = -EINVAL;

	if (!mw || mw->ibmw.type != IB_MW_TYPE_2)
		return -EINVAL;
	spin_lock_bh(&mw->lock);
	view = rcu_dereference_protected(mw->view, lockdep_is_held(&mw->lock));
	if (view && view->key == rkey && view->qpn == qp->qpn) {
		weft_mw_unbind(mw);
		err = 0;
	}
	spin_unlock_bh(&mw->lock);
	return err;
}
