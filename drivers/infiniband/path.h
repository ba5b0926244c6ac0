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

/* Counts what weft_path_changed() is called for; never 0. */
extern atomic_t weft_path_generation;

/*
 * Look again. @found is good for now, and until the generation changes if it has one. -ENODEV: no
 * netdev carries the GID any more.
 */
int weft_path_search(struct weft_qp *qp, const struct weft_av *av, u32 qpn,
		     struct weft_path_cache *found);
/* May packets go straight to the peer's link, or does somebody watch? */
bool weft_path_is_short(struct weft_qp *qp, const struct weft_av *av,
			const struct weft_path_cache *found);

/*
 * Path of packets to @qpn of @av. @cache: of a connected QP's packets to its peer; else the caller
 * sets its generation to 0. -ENODEV: no netdev carries the GID any more. Under RCU, BH off.
 */
static inline int weft_path_find(struct weft_qp *qp, const struct weft_av *av, u32 qpn,
				 struct weft_path_cache *cache, struct weft_path *path)
{
	int err;

	/* Pairs with the barrier in weft_path_changed(). */
	if (unlikely(cache->generation != atomic_read_acquire(&weft_path_generation))) {
		err = weft_path_search(qp, av, qpn, cache);
		if (err)
			return err;
	}
	path->ndev = cache->ndev;
	path->to = cache->peer && weft_path_is_short(qp, av, cache) ? cache->peer : NULL;
	return 0;
}

/* Any context. */
void weft_path_changed(void);

/* A reference to the route through the stack; the QP's own address vector has it cached. */
struct dst_entry *weft_route_get(struct weft_qp *qp, struct net_device *ndev,
				 const struct weft_av *av);

#endif
