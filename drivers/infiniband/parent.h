/* SPDX-License-Identifier: GPL-2.0 */
/* What a link's RDMA device hangs below in sysfs: a platform device with a net/ directory. */
#ifndef WEFT_PARENT_H
#define WEFT_PARENT_H

#include <linux/device.h>
#include <linux/netdevice.h>

struct weft_parent;

/* Sleep. NULL: no memory. */
struct weft_parent *weft_parent_create(void);
void weft_parent_destroy(struct weft_parent *parent);
struct device *weft_parent_device(struct weft_parent *parent);

/* Make net/<name> lead to @netdev under the name that it has now. Under RTNL. */
void weft_parent_link(struct weft_parent *parent, struct net_device *netdev);
void weft_parent_unlink(struct weft_parent *parent);

#endif
