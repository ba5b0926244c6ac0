// SPDX-License-Identifier: GPL-2.0
/*
 * A veth pair as a cable.
 *
 * Between two namespaces of one host frames travel through a pair of netdevs which only hands them
 * over, as long as nobody has put something on it: a qdisc that delays or drops, a tc, nftables or
 * XDP program at either end, a tap. While the cable is quiet in this sense the same-host shortcut
 * may take its place; each of these has frames travel again, from the next message on.
 */
#include <linux/netfilter.h>
#include <net/rtnetlink.h>
#include <net/sch_generic.h>

#include "cable.h"

struct net_device *weft_cable_far(struct net_device *ndev)
{
	const struct rtnl_link_ops *ops = ndev->rtnl_link_ops;

	if (!ops || strcmp(ops->kind, "veth") || !ndev->netdev_ops->ndo_get_peer_dev)
		return NULL;
	return ndev->netdev_ops->ndo_get_peer_dev(ndev);
}

/* "noqueue" is what has no enqueue. */
static bool weft_cable_has_qdisc(const struct net_device *ndev)
{
	const struct netdev_queue *txq;
	unsigned int i;

	for (i = 0; i < ndev->real_num_tx_queues; i++) {
		txq = netdev_get_tx_queue(ndev, i);
		if (rcu_dereference(txq->qdisc)->enqueue)
			return true;
	}
	return false;
}

static bool weft_cable_filters_egress(const struct net_device *ndev)
{
#ifdef CONFIG_NETFILTER_EGRESS
	if (rcu_access_pointer(ndev->nf_hooks_egress))
		return true;
#endif
	return netdev_has_tc_egress(ndev);
}

/* A link's own hook is one. */
static bool weft_cable_filters_ingress(struct net_device *ndev)
{
	const struct nf_hook_entries *hooks = rcu_dereference(ndev->nf_hooks_ingress);

	return (hooks && hooks->num_hook_entries > 1) || netdev_has_tc_ingress(ndev) ||
	       rcu_access_pointer(ndev->xdp_prog) || dev_xdp_prog_count(ndev);
}

bool weft_cable_is_quiet(struct net_device *ndev, struct net_device *far)
{
	return netif_running(ndev) && netif_carrier_ok(ndev) && netif_running(far) &&
	       !dev_nit_active(ndev) && !dev_nit_active(far) && !weft_cable_has_qdisc(ndev) &&
	       !weft_cable_filters_egress(ndev) && !weft_cable_filters_ingress(far);
}
