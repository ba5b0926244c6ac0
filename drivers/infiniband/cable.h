/* SPDX-License-Identifier: GPL-2.0 */
/* A veth pair as a cable: the netdev at its other end, and whether anything acts on its frames. */
#ifndef WEFT_CABLE_H
#define WEFT_CABLE_H

#include <linux/netdevice.h>

/* The other end if @ndev is an end of a veth pair, else NULL. Under RCU. */
struct net_device *weft_cable_far(struct net_device *ndev);
/*
 * Does what is sent at @ndev come in at @far as it is and at once: both up, and no qdisc, filter,
 * program or tap on the way? Under RCU.
 */
bool weft_cable_is_quiet(struct net_device *ndev, struct net_device *far);

#endif
