// SPDX-License-Identifier: GPL-2.0
/*
 * QPN → QP for all devices of the host.
 *
 * One number space: the receive hooks find the QP, and by it the device, with one lookup. The
 * xarray gives numbers out; packets look in a hash table, which for consecutive numbers is as good
 * as an array. Readers are under RCU; the xarray's lock orders additions and removals in both.
 */
#include <linux/hashtable.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/xarray.h>

#include "qp.h"

static DEFINE_XARRAY_ALLOC(weft_qps);
static u32 weft_qpn_next;
struct hlist_head weft_qp_buckets[WEFT_QP_BUCKETS];

int weft_qp_table_add(struct weft_qp *qp)
{
	int err;

	err = xa_alloc_cyclic_bh(&weft_qps, &qp->qpn, NULL, XA_LIMIT(WEFT_QPN_FIRST, WEFT_QPN_LAST),
				 &weft_qpn_next, GFP_KERNEL);
	if (err < 0)
		return err;
	xa_lock_bh(&weft_qps);
	/* Needs no memory: the number is reserved, and so its place. */
	__xa_store(&weft_qps, qp->qpn, qp, GFP_ATOMIC);
	hlist_add_head_rcu(&qp->table_node, &weft_qp_buckets[qp->qpn % WEFT_QP_BUCKETS]);
	xa_unlock_bh(&weft_qps);
	weft_path_changed();
	return 0;
}

void weft_qp_table_del(struct weft_qp *qp)
{
	xa_lock_bh(&weft_qps);
	__xa_erase(&weft_qps, qp->qpn);
	hlist_del_rcu(&qp->table_node);
	xa_unlock_bh(&weft_qps);
	weft_path_changed();
}

void weft_qp_for_each(struct weft_dev *dev, void (*fn)(struct weft_qp *qp, void *arg), void *arg)
{
	unsigned long qpn = 0;
	struct weft_qp *qp;

	for (;;) {
		rcu_read_lock();
		do {
			qp = xa_find_after(&weft_qps, &qpn, ULONG_MAX, XA_PRESENT);
		} while (qp && (qp->dev != dev || !weft_qp_get(qp)));
		rcu_read_unlock();
		if (!qp)
			return;
		fn(qp, arg);
		weft_qp_put(qp);
	}
}

int weft_qp_table_init(void)
{
	/* A random start: a QPN of the life before a reload is not soon somebody else's. */
	weft_qpn_next = WEFT_QPN_FIRST + get_random_u32() % (WEFT_QPN_LAST - WEFT_QPN_FIRST);
	return 0;
}

void weft_qp_table_uninit(void)
{
	WARN_ON(!xa_empty(&weft_qps));
	xa_destroy(&weft_qps);
}
