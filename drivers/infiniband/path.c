// SPDX-License-Identifier: GPL-2.0
/*
 * Path lookup: which netdev carries the source GID, is the destination on this host, which route
 * leads there.
 */
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <net/inet_ecn.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <rdma/ib_cache.h>

#include "cable.h"
#include "gid.h"
#include "path.h"
#include "qp.h"

atomic_t weft_path_generation = ATOMIC_INIT(1);

void weft_path_changed(void)
{
	/*
	 * Pairs with the acquires in weft_path_find() and weft_path_search(): the removal comes
	 * first.
	 */
	smp_mb__before_atomic();
	/* 0 is nobody's. */
	while (!atomic_add_unless(&weft_path_generation, 1, -1))
		if (atomic_cmpxchg(&weft_path_generation, -1, 1) == -1)
			break;
}

static struct net_device *weft_path_netdev(struct weft_qp *qp, const struct weft_av *av)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(&qp->dev->ib_dev, WEFT_PORT,
							   av->sgid_index);
	struct net_device *ndev;

	if (IS_ERR(attr))
		return NULL;
	ndev = rcu_dereference(attr->ndev);
	rdma_put_gid_attr(attr);
	return ndev;
}

/* Link of this host whose QP @qpn has the address; NULL: another host, or nobody here. */
static struct weft_dev *weft_path_peer(struct net *net, const struct weft_av *av, u32 qpn,
				       int ifindex)
{
	struct weft_dev *dev;
	struct weft_qp *qp;

	if (qpn == WEFT_QPN_MULTICAST)
		return NULL;
	if (qpn == 1) {
		dev = weft_gid_find(net, &av->daddr, ifindex);
		return dev && rcu_access_pointer(dev->gsi) ? dev : NULL;
	}
	qp = weft_qp_find(qpn);
	return qp && weft_gid_owned(qp->dev, net, &av->daddr, ifindex) ? qp->dev : NULL;
}

/* Link at the other end of a veth pair, whose QP @qpn has the address; NULL: there is none. */
static struct weft_dev *weft_path_far_peer(struct net_device *far, const struct weft_av *av,
					   u32 qpn)
{
	struct weft_dev *dev = weft_path_peer(dev_net(far), av, qpn, far->ifindex);

	return dev && rcu_access_pointer(dev->netdev) == far ? dev : NULL;
}

/* Does the route lead to the other end, and to nobody behind it? */
static bool weft_path_is_direct(struct weft_qp *qp, struct net_device *ndev,
				const struct weft_av *av)
{
	struct dst_entry *dst = weft_route_get(qp, ndev, av);
	bool direct;

	if (!dst)
		return false;
	direct = dst->dev == ndev && !dst_xfrm(dst) &&
		 !(av->v6 ? container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_GATEWAY
			  : container_of(dst, struct rtable, dst)->rt_uses_gateway);
	dst_release(dst);
	return direct;
}

static noinline bool weft_path_is_short_cable(struct weft_qp *qp, const struct weft_av *av,
					      const struct weft_path_cache *found)
{
	return weft_cable_is_quiet(found->ndev, found->far) &&
	       weft_path_is_direct(qp, found->ndev, av);
}

bool weft_path_is_short(struct weft_qp *qp, const struct weft_av *av,
			const struct weft_path_cache *found)
{
	struct net_device *ndev = found->ndev, *peer;

	if (!READ_ONCE(qp->dev->cfg.shortcut))
		return false;
	if (found->far)
		return weft_path_is_short_cable(qp, av, found);
	peer = rcu_dereference(found->peer->netdev);
	/* Taps of all netdevs count for each; of lo its own are left to look at. */
	return peer && netif_running(peer) && netif_running(ndev) &&
	       list_empty(&dev_net(ndev)->loopback_dev->ptype_all) && !dev_nit_active(ndev);
}

/*
 * Shall we be told when it changes? A link-local GID lives and dies with its address, of which
 * nobody tells us; of a netdev that goes we have been told already.
 */
static bool weft_path_lasts(const struct weft_av *av, const struct weft_path_cache *found)
{
	return !(ipv6_addr_type(&av->daddr) & IPV6_ADDR_LINKLOCAL) &&
	       READ_ONCE(found->ndev->reg_state) == NETREG_REGISTERED &&
	       (!found->far || READ_ONCE(found->far->reg_state) == NETREG_REGISTERED);
}

int weft_path_search(struct weft_qp *qp, const struct weft_av *av, u32 qpn,
		     struct weft_path_cache *found)
{
	/* Pairs with the barrier in weft_path_changed(). */
	unsigned int generation = atomic_read_acquire(&weft_path_generation);

	found->generation = 0;
	found->ndev = weft_path_netdev(qp, av);
	if (!found->ndev)
		return -ENODEV;
	found->peer = weft_path_peer(dev_net(found->ndev), av, qpn, found->ndev->ifindex);
	found->far = found->peer ? NULL : weft_cable_far(found->ndev);
	if (found->far)
		found->peer = weft_path_far_peer(found->far, av, qpn);
	if (weft_path_lasts(av, found))
		found->generation = generation;
	return 0;
}

/* --- route --- */

static struct dst_entry *weft_route_v4(struct net *net, const struct weft_av *av, int oif)
{
	struct flowi4 fl;
	struct rtable *rt;

	/* An address of the host itself is reached through lo, whichever netdev has it. */
	if (inet_addr_type(net, av->daddr.s6_addr32[3]) == RTN_LOCAL)
		oif = 0;
	flowi4_init_output(&fl, oif, 0, av->tclass & ~INET_ECN_MASK, RT_SCOPE_UNIVERSE,
			   IPPROTO_UDP, 0, av->daddr.s6_addr32[3], av->saddr.s6_addr32[3], 0, 0,
			   GLOBAL_ROOT_UID);
	rt = ip_route_output_key(net, &fl);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *weft_route_v6(struct net *net, const struct weft_av *av, int oif)
{
	struct flowi6 fl = {
		.flowi6_oif = oif,
		.saddr = av->saddr,
		.daddr = av->daddr,
		.flowi6_proto = IPPROTO_UDP,
	};
	struct dst_entry *dst = ip6_route_output(net, NULL, &fl);

	if (!dst->error)
		return dst;
	dst_release(dst);
	return NULL;
}

static struct dst_entry *weft_route_lookup(struct net_device *ndev, const struct weft_av *av)
{
	struct net *net = dev_net(ndev);

	return av->v6 ? weft_route_v6(net, av, ndev->ifindex)
		      : weft_route_v4(net, av, ndev->ifindex);
}

static u32 weft_route_cookie(const struct weft_av *av, const struct dst_entry *dst)
{
	return av->v6 ? rt6_get_cookie(container_of(dst, struct rt6_info, dst)) : 0;
}

struct dst_entry *weft_route_get(struct weft_qp *qp, struct net_device *ndev,
				 const struct weft_av *av)
{
	struct weft_tx_flow *flow = qp->flow;
	struct dst_entry *dst;

	if (av != &qp->av)
		return weft_route_lookup(ndev, av);
	spin_lock(&flow->route_lock);
	dst = flow->dst;
	if (dst && !dst_check(dst, flow->dst_cookie)) {
		dst_release(dst);
		dst = NULL;
	}
	if (!dst) {
		dst = weft_route_lookup(ndev, av);
		if (dst)
			flow->dst_cookie = weft_route_cookie(av, dst);
		flow->dst = dst;
	}
	if (dst)
		dst_hold(dst);
	spin_unlock(&flow->route_lock);
	return dst;
}
