/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which link owns an IP address: a hash of all links' GIDs, kept by ops.add_gid and ops.del_gid,
 * read under RCU by the receive hooks and by the same-host shortcut.
 */
#ifndef WEFT_GID_H
#define WEFT_GID_H

#include <linux/in6.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#include "device.h"

/*
 * Link in @net that has @addr (IPv4 as ::ffff:a.b.c.d) as a GID. @ifindex: for a link-local
 * address, the netdev that the packet is on (the link's own, or an upper of it); else ignored.
 * Under RCU.
 */
struct weft_dev *weft_gid_find(struct net *net, const struct in6_addr *addr, int ifindex);
/* Is @addr a GID of @dev in @net? Under RCU. */
bool weft_gid_owned(const struct weft_dev *dev, struct net *net, const struct in6_addr *addr,
		    int ifindex);

/*
 * ops: an address that is not assigned to the netdev, or still tentative, is refused: GIDs are what
 * a peer can really reach.
 */
int weft_add_gid(const struct ib_gid_attr *attr, void **context);
int weft_del_gid(const struct ib_gid_attr *attr, void **context);

void weft_gid_init(struct weft_dev *dev);
void weft_gid_uninit(struct weft_dev *dev); /* its GIDs are deleted; sleeps */
/*
 * An address of the link's netdev may have become usable: have ib_core offer all addresses again.
 */
void weft_gid_rescan(struct weft_dev *dev);
/* The namespace is dying: nothing refers to it any more after this. */
void weft_gid_net_gone(struct net *net);

#endif
