/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the packets of an address vector go: a netdev and the stack, or a link of the same host.
 *
 * A connected QP's sides keep what they found and look again only when the world has changed:
 * whoever adds a GID, a QP or a netdev, or takes one away, calls weft_path_changed(), behind the
 * removal and before the grace period that ends the object's life. What a reader finds unchanged is
 * therefore alive until the end of its RCU read-side section.
 */
#ifndef WEFT_PATH_H
#define WEFT_PATH_H

#include <net/dst.h>

#include "av.h"

struct weft_qp;

/* Valid within the RCU read-side section that it was found in. */
struct weft_path {
	struct net_device *ndev; /* carries the source GID: the link's netdev, or one above it */
	struct weft_dev *to;     /* same host and nobody taps: the link that receives; else NULL */
};

/* What one side of a connected QP remembers; its lock. */
struct weft_path_cache {
	unsigned int generation; /* 0: nothing */
	struct net_device *ndev;
	struct weft_dev *peer;   /* link of the same host that has the destination, or NULL */
	struct net_device *far;  /* the peer's netdev if a cable leads there, else NULL */
};

/*
 * Path of packets to @qpn of @av. @cache: NULL for datagrams. -ENODEV: no netdev carries the GID
 * any more. Under RCU, BH off.
 */
int weft_path_find(struct weft_qp *qp, const struct weft_av *av, u32 qpn,
		   struct weft_path_cache *cache, struct weft_path *path);
/* Any context. */
void weft_path_changed(void);

/* A reference to the route through the stack; the QP's own address vector has it cached. */
struct dst_entry *weft_route_get(struct weft_qp *qp, struct net_device *ndev,
				 const struct weft_av *av);

#endif
