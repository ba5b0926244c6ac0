/* SPDX-License-Identifier: GPL-2.0 */
/* Address vectors and address handles: where a QP's or a datagram's packets go. */
#ifndef WEFT_AV_H
#define WEFT_AV_H

#include <linux/in6.h>
#include <rdma/ib_verbs.h>

#include "device.h"

struct weft_av {
	bool v6;
	u8 tclass;       /* IPv4 TOS, IPv6 traffic class */
	u8 hop_limit;
	u8 sgid_index;
	u32 flow_label;
	struct in6_addr saddr; /* IPv4 as ::ffff:a.b.c.d, like a GID */
	struct in6_addr daddr;
	u8 dmac[ETH_ALEN];
};

/* User AHs are named by number in WQEs; entries are read under RCU and freed by kfree_rcu(). */
struct weft_ah_entry {
	struct weft_av av;
	struct ib_pd *pd;
	struct rcu_head rcu;
};

struct weft_ah {
	struct ib_ah ibah;
	struct weft_ah_entry __rcu *entry;
	u32 num; /* 0: a kernel user's, which no WQE names */
};

static inline struct weft_ah *weft_from_ibah(struct ib_ah *ibah)
{
	return container_of(ibah, struct weft_ah, ibah);
}

/*
 * -EINVAL: no GRH, a port other than 1, an sgid that is not RoCEv2. Uses attr->grh.sgid_attr (held
 * by ib_core).
 */
int weft_av_init(struct weft_dev *dev, struct weft_av *av, const struct rdma_ah_attr *attr);
void weft_av_to_attr(const struct weft_av *av, struct rdma_ah_attr *attr);

/* Copy AH @num's address vector if it belongs to @pd. RCU inside. -ENOENT: no such AH there. */
int weft_ah_find(struct weft_dev *dev, struct ib_pd *pd, u32 num, struct weft_av *av);

/* The same of a kernel user's AH. Any context. */
void weft_ah_get_av(struct ib_ah *ibah, struct weft_av *av);

int weft_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int weft_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int weft_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int weft_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif
