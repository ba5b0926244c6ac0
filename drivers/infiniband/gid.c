// SPDX-License-Identifier: GPL-2.0
/*
 * Which link owns an IP address.
 *
 * ib_core offers the addresses of the link's netdev and of netdevs above it (VLAN, macvlan, bond)
 * as GIDs; here is decided which become one: those that are assigned and not tentative. Two cases
 * need care:
 *
 * - ib_core's default GID (index 0; one per RoCE type, of which there is one) is made from the MAC,
 *   assigned or not: it is refused until that link-local address is there. ib_core leaves it in its
 *   table when the address goes; here it then names nobody, which each match looks up.
 * - Nobody is told when duplicate address detection ends. A refused tentative address therefore
 *   starts a work that looks at the netdevs until none is tentative, and then has ib_core offer all
 *   again.
 *
 * Entries are read under RCU and written under weft_gid_lock. Each counts as a user of its
 * namespace's LOCAL_IN hook; a namespace that dies takes its entries out of the table first.
 */
#include <linux/hashtable.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <rdma/ib_cache.h>

#include "gid.h"
#include "hook.h"
#include "path.h"

enum {
	WEFT_GID_BITS = 10,
	WEFT_GID_DEFAULT_INDEX = 0,
	WEFT_GID_RESCAN_MS = 100,
};

struct weft_gid {
	struct hlist_node node;
	struct in6_addr addr;
	struct net *net; /* NULL: it died, the entry is out of the table */
	int ifindex;     /* of the netdev that has the address; compared for link-local ones */
	bool outlives;   /* the default GID: it stays when its address goes */
	struct weft_dev *dev;
	struct rcu_head rcu;
};

static DEFINE_MUTEX(weft_gid_lock);
static DEFINE_HASHTABLE(weft_gids, WEFT_GID_BITS);

static u32 weft_gid_hash(const struct in6_addr *addr)
{
	return jhash(addr, sizeof(*addr), 0);
}

/* The default GID's address is a link-local one of the link's own netdev. */
static bool weft_gid_alive(const struct weft_gid *gid)
{
	struct net_device *netdev = rcu_dereference(gid->dev->netdev);

	return !gid->outlives || (netdev && ipv6_chk_addr(gid->net, &gid->addr, netdev, 1));
}

static bool weft_gid_matches(const struct weft_gid *gid, const struct net *net,
			     const struct in6_addr *addr, int ifindex)
{
	return ipv6_addr_equal(&gid->addr, addr) && gid->net == net &&
	       (!(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL) || gid->ifindex == ifindex) &&
	       weft_gid_alive(gid);
}

struct weft_dev *weft_gid_find(struct net *net, const struct in6_addr *addr, int ifindex)
{
	const struct weft_gid *gid;

	hash_for_each_possible_rcu(weft_gids, gid, node, weft_gid_hash(addr))
		if (weft_gid_matches(gid, net, addr, ifindex))
			return gid->dev;
	return NULL;
}

bool weft_gid_owned(const struct weft_dev *dev, struct net *net, const struct in6_addr *addr,
		    int ifindex)
{
	const struct weft_gid *gid;

	hash_for_each_possible_rcu(weft_gids, gid, node, weft_gid_hash(addr))
		if (gid->dev == dev && weft_gid_matches(gid, net, addr, ifindex))
			return true;
	return false;
}

/* --- which addresses are real --- */

static bool weft_v4_assigned(const struct net_device *netdev, __be32 addr)
{
	const struct in_device *in_dev = __in_dev_get_rcu(netdev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev)
		if (ifa->ifa_local == addr)
			return true;
	return false;
}

static bool weft_addr_assigned(const struct net_device *netdev, const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return weft_v4_assigned(netdev, addr->s6_addr32[3]);
	return ipv6_chk_addr(dev_net(netdev), addr, netdev, 1);
}

/* Is duplicate address detection under way on the netdev? It waits for the carrier. Under RCU. */
static int weft_netdev_is_tentative(struct net_device *netdev, struct netdev_nested_priv *unused)
{
	struct inet6_dev *idev = __in6_dev_get(netdev);
	const struct inet6_ifaddr *ifa;
	int found = 0;

	if (!idev || !netif_running(netdev) || !netif_carrier_ok(netdev))
		return 0;
	read_lock_bh(&idev->lock);
	list_for_each_entry(ifa, &idev->addr_list, if_list)
		if ((ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == IFA_F_TENTATIVE)
			found = 1;
	read_unlock_bh(&idev->lock);
	return found;
}

static void weft_gid_rescan_work(struct work_struct *work)
{
	struct weft_dev *dev = container_of(to_delayed_work(work), struct weft_dev, gid_rescan);
	struct netdev_nested_priv unused = {};
	struct net_device *netdev;
	bool wait;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	wait = netdev &&
	       (weft_netdev_is_tentative(netdev, &unused) ||
		netdev_walk_all_upper_dev_rcu(netdev, weft_netdev_is_tentative, &unused));
	rcu_read_unlock();

	if (wait) {
		weft_gid_rescan(dev);
	} else if (netdev && ib_device_try_get(&dev->ib_dev)) {
		rdma_roce_rescan_device(&dev->ib_dev);
		ib_device_put(&dev->ib_dev);
	}
}

void weft_gid_rescan(struct weft_dev *dev)
{
	schedule_delayed_work(&dev->gid_rescan, msecs_to_jiffies(WEFT_GID_RESCAN_MS));
}

/* --- ops --- */

/*
 * The netdev that ib_core offers @attr for, if the address is real there: its namespace and
 * ifindex.
 */
static int weft_gid_check(const struct ib_gid_attr *attr, const struct in6_addr *addr,
			  struct weft_gid *gid)
{
	struct netdev_nested_priv unused = {};
	struct net_device *netdev;
	bool tentative;
	int ret = 0;

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	/* First: an address that becomes real between the two looks is then taken, not missed. */
	tentative = netdev && weft_netdev_is_tentative(netdev, &unused);
	if (!netdev) {
		ret = -ENODEV;
	} else if (!weft_addr_assigned(netdev, addr)) {
		ret = -EADDRNOTAVAIL;
		if (tentative)
			weft_gid_rescan(gid->dev);
	} else {
		gid->net = dev_net(netdev);
		gid->ifindex = netdev->ifindex;
	}
	rcu_read_unlock();
	return ret;
}

int weft_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct weft_gid *gid;
	int ret;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	gid = kzalloc(sizeof(*gid), GFP_KERNEL);
	if (!gid)
		return -ENOMEM;
	gid->dev = weft_from_ibdev(attr->device);
	gid->outlives = attr->index == WEFT_GID_DEFAULT_INDEX;
	memcpy(&gid->addr, attr->gid.raw, sizeof(gid->addr));

	mutex_lock(&weft_gid_lock);
	ret = weft_gid_check(attr, &gid->addr, gid);
	if (!ret)
		ret = weft_hook_get(gid->net);
	if (!ret)
		hash_add_rcu(weft_gids, &gid->node, weft_gid_hash(&gid->addr));
	weft_path_changed();
	mutex_unlock(&weft_gid_lock);

	if (ret)
		kfree(gid);
	else
		*context = gid;
	return ret;
}

int weft_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct weft_gid *gid = *context;

	mutex_lock(&weft_gid_lock);
	if (gid->net) {
		hash_del_rcu(&gid->node);
		weft_hook_put(gid->net);
	}
	weft_path_changed();
	mutex_unlock(&weft_gid_lock);
	*context = NULL;
	kfree_rcu(gid, rcu);
	return 0;
}

void weft_gid_net_gone(struct net *net)
{
	struct hlist_node *next;
	struct weft_gid *gid;
	int bucket;

	mutex_lock(&weft_gid_lock);
	hash_for_each_safe(weft_gids, bucket, next, gid, node) {
		if (gid->net != net)
			continue;
		hash_del_rcu(&gid->node);
		weft_hook_put(net);
		WRITE_ONCE(gid->net, NULL);
	}
	weft_path_changed();
	mutex_unlock(&weft_gid_lock);
}

void weft_gid_init(struct weft_dev *dev)
{
	INIT_DELAYED_WORK(&dev->gid_rescan, weft_gid_rescan_work);
}

void weft_gid_uninit(struct weft_dev *dev)
{
	cancel_delayed_work_sync(&dev->gid_rescan);
}
