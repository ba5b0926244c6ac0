/* SPDX-License-Identifier: GPL-2.0 */
/* Receive hooks: netfilter ingress per link, LOCAL_IN per network namespace, one classifier. */
#ifndef WEFT_HOOK_H
#define WEFT_HOOK_H

#include "device.h"

/*
 * The link's ingress hook. Under RTNL. Idempotent. -EPROTONOSUPPORT: the kernel has no such hook.
 */
int weft_hook_add(struct weft_dev *dev, struct net_device *netdev);
void weft_hook_remove(struct weft_dev *dev, struct net_device *netdev);

/* The LOCAL_IN hook of @net, one for all GIDs there. Under gid.c's lock. */
int weft_hook_get(struct net *net);
void weft_hook_put(struct net *net);

int weft_hook_init(void);
void weft_hook_uninit(void);

#endif
