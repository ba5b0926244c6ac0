// SPDX-License-Identifier: GPL-2.0
/*
 * QPN → QP for all devices of the host.
 *
 * One number space: the receive hooks find the QP, and by it the device, with one lookup. Readers
 * are under RCU; the table's xarray lock orders additions and removals.
 */
#include <linux/random.h>
#include <linux/xarray.h>

#include "qp.h"

static DEFINE_XARRAY_ALLOC(weft_qps);
static u32 weft_qpn_next;

struct weft_qp *weft_qp_find(u32 qpn)
{
	return xa_load(&weft_qps, qpn);
}

int weft_qp_table_add(struct weft_qp *qp)
{
	int err;

	err = xa_alloc_cyclic_bh(&weft_qps, &qp->qpn, qp, XA_LIMIT(WEFT_QPN_FIRST, WEFT_QPN_LAST),
				 &weft_qpn_next, GFP_KERNEL);
	return err < 0 ? err : 0;
}

void weft_qp_table_del(struct weft_qp *qp)
{
	xa_erase_bh(&weft_qps, qp->qpn);
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
