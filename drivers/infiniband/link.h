/* SPDX-License-Identifier: GPL-2.0 */
/* Links: `rdma link add/del … type weft`, the list of them, and why the last one was refused. */
#ifndef WEFT_LINK_H
#define WEFT_LINK_H

#include "device.h"

extern struct list_head weft_links; /* weft_dev.node; under RTNL */

/* The last refusal of a link, for `weft link why`. */
struct weft_refusal {
	char name[IB_DEVICE_NAME_MAX];
	char netdev[IFNAMSIZ];
	int error;        /* negative errno */
	char text[160];
};

/* Copies it; false if nothing was ever refused. */
bool weft_link_last_refusal(struct weft_refusal *out);

/* Link on @netdev, or NULL. Under RTNL. */
struct weft_dev *weft_link_of_netdev(const struct net_device *netdev);

/* @num_rxq: receive queues of a new link; 0: as many as CPUs are online. */
int weft_link_init(unsigned int num_rxq);
void weft_link_uninit(void); /* unregisters all links */

/* netdev.c */
int weft_netdev_init(void);
void weft_netdev_uninit(void);

/* netlink.c */
int weft_netlink_init(void);
void weft_netlink_uninit(void);

#endif
