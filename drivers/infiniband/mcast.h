/* SPDX-License-Identifier: GPL-2.0 */
/* Multicast groups: which UD QPs a group's packets go to, and membership on the netdev. */
#ifndef WEFT_MCAST_H
#define WEFT_MCAST_H

#include <linux/in6.h>
#include <rdma/ib_verbs.h>

#include "device.h"

struct weft_qp;

int weft_mcast_init(struct weft_dev *dev);
void weft_mcast_uninit(struct weft_dev *dev);

/* Is @mgid (an IPv4 group as ::ffff:a.b.c.d) attached by any QP of @dev? Under RCU. */
bool weft_mcast_has_group(const struct weft_dev *dev, const struct in6_addr *mgid);
/* Call @deliver for each attached QP. Under RCU, BH off. */
void weft_mcast_for_each(struct weft_dev *dev, const struct in6_addr *mgid,
			 void (*deliver)(struct weft_qp *qp, void *arg), void *arg);
/* Take the QP out of all groups, before it is destroyed. Sleeps. */
void weft_mcast_drop_qp(struct weft_qp *qp);
/* The netdev is going away: give its memberships up, once. Under RTNL. */
void weft_mcast_netdev_gone(struct weft_dev *dev, struct net_device *netdev);

int weft_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int weft_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

#endif
