/* SPDX-License-Identifier: GPL-2.0 */
/* Receive hooks: netfilter ingress per link, LOCAL_IN per network namespace, one classifier. */
#ifndef WEFT_HOOK_H
#define WEFT_HOOK_H

#include "device.h"

/* All under RTNL. Idempotent. */
int weft_hook_add(struct weft_dev *dev, struct net_device *netdev);
void weft_hook_remove(struct weft_dev *dev, struct net_device *netdev);

#endif
