// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: which UD QPs a group's packets go to, and membership on the netdev.
 *
 * A group exists while a QP is attached to it; with the first one the netdev joins the IP group, so
 * that routers and switches send its packets here and the NIC lets its MAC address in. Packets walk
 * groups and members under RCU; changes happen under RTNL, because the membership does.
 *
 * Once the netdev is gone its memberships are given up, and the groups go on without.
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>

#include "mcast.h"
#include "qp.h"

enum { WEFT_MCAST_HASH_BITS = 8 };

struct weft_mcast {
	/* written under RTNL, read under RCU */
	struct hlist_head groups[1 << WEFT_MCAST_HASH_BITS];
	u32 num_groups;                                      /* RTNL */
};

struct weft_mcast_group {
	struct hlist_node node;
	struct in6_addr mgid;
	struct list_head members; /* RCU */
	u32 num_members;
	bool joined;              /* the netdev has the membership; RTNL */
	struct rcu_head rcu;
};

struct weft_mcast_member {
	struct list_head node;    /* weft_mcast_group.members; RCU */
	struct list_head qp_node; /* weft_qp.mcast_nodes; RTNL */
	struct weft_mcast_group *group;
	struct weft_qp *qp;
	u32 attached;             /* how many times */
	struct rcu_head rcu;
};

int weft_mcast_init(struct weft_dev *dev)
{
	dev->mcast = kzalloc(sizeof(*dev->mcast), GFP_KERNEL);
	return dev->mcast ? 0 : -ENOMEM;
}

/* All QPs and the receive hooks are gone. */
void weft_mcast_uninit(struct weft_dev *dev)
{
	kfree(dev->mcast);
	dev->mcast = NULL;
}

static struct hlist_head *weft_mcast_bucket(struct weft_mcast *mcast, const struct in6_addr *mgid)
{
	return &mcast->groups[jhash(mgid, sizeof(*mgid), 0) & (ARRAY_SIZE(mcast->groups) - 1)];
}

/* Under RCU or RTNL. */
static struct weft_mcast_group *weft_mcast_find(struct weft_mcast *mcast,
						const struct in6_addr *mgid)
{
	struct weft_mcast_group *group;

	hlist_for_each_entry_rcu(group, weft_mcast_bucket(mcast, mgid), node,
				 lockdep_rtnl_is_held())
		if (ipv6_addr_equal(&group->mgid, mgid))
			return group;
	return NULL;
}

bool weft_mcast_has_group(const struct weft_dev *dev, const struct in6_addr *mgid)
{
	return weft_mcast_find(dev->mcast, mgid);
}

void weft_mcast_for_each(struct weft_dev *dev, const struct in6_addr *mgid,
			 void (*deliver)(struct weft_qp *qp, void *arg), void *arg)
{
	struct weft_mcast_group *group = weft_mcast_find(dev->mcast, mgid);
	struct weft_mcast_member *member;

	if (!group)
		return;
	list_for_each_entry_rcu(member, &group->members, node)
		deliver(member->qp, arg);
}

/* --- membership on the netdev; under RTNL --- */

static int weft_mcast_join(struct weft_mcast_group *group, struct net_device *netdev)
{
	struct in_device *in_dev;
	int err = 0;

	if (ipv6_addr_v4mapped(&group->mgid)) {
		in_dev = __in_dev_get_rtnl(netdev);
		if (!in_dev)
			return -ENODEV;
		ip_mc_inc_group(in_dev, group->mgid.s6_addr32[3]);
	} else {
		err = ipv6_dev_mc_inc(netdev, &group->mgid);
	}
	group->joined = !err;
	return err;
}

static void weft_mcast_leave(struct weft_mcast_group *group, struct net_device *netdev)
{
	struct in_device *in_dev;

	if (!group->joined)
		return;
	group->joined = false;
	if (ipv6_addr_v4mapped(&group->mgid)) {
		in_dev = __in_dev_get_rtnl(netdev);
		if (in_dev)
			ip_mc_dec_group(in_dev, group->mgid.s6_addr32[3]);
	} else {
		ipv6_dev_mc_dec(netdev, &group->mgid);
	}
}

void weft_mcast_netdev_gone(struct weft_dev *dev, struct net_device *netdev)
{
	struct weft_mcast_group *group;
	int i;

	ASSERT_RTNL();
	for (i = 0; i < ARRAY_SIZE(dev->mcast->groups); i++)
		hlist_for_each_entry(group, &dev->mcast->groups[i], node)
			weft_mcast_leave(group, netdev);
}

/* --- attachments; under RTNL --- */

static struct weft_mcast_group *weft_mcast_create(struct weft_dev *dev, const struct in6_addr *mgid)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);
	struct weft_mcast_group *group;
	int err;

	if (!netdev)
		return ERR_PTR(-ENODEV);
	if (dev->mcast->num_groups == WEFT_MAX_MCAST_GRP)
		return ERR_PTR(-ENOMEM);
	group = kzalloc(sizeof(*group), GFP_KERNEL);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->mgid = *mgid;
	INIT_LIST_HEAD(&group->members);
	err = weft_mcast_join(group, netdev);
	if (err) {
		kfree(group);
		return ERR_PTR(err);
	}
	hlist_add_head_rcu(&group->node, weft_mcast_bucket(dev->mcast, mgid));
	dev->mcast->num_groups++;
	return group;
}

static void weft_mcast_release(struct weft_dev *dev, struct weft_mcast_group *group)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);

	if (group->num_members)
		return;
	if (netdev)
		weft_mcast_leave(group, netdev);
	hlist_del_rcu(&group->node);
	dev->mcast->num_groups--;
	kfree_rcu(group, rcu);
}

static struct weft_mcast_member *weft_mcast_member(struct weft_mcast_group *group,
						   struct weft_qp *qp)
{
	struct weft_mcast_member *member;

	list_for_each_entry(member, &qp->mcast_nodes, qp_node)
		if (member->group == group)
			return member;
	return NULL;
}

static int weft_mcast_add(struct weft_mcast_group *group, struct weft_qp *qp)
{
	struct weft_mcast_member *member = weft_mcast_member(group, qp);

	if (member) {
		member->attached++;
		return 0;
	}
	if (group->num_members == WEFT_MAX_MCAST_QP)
		return -ENOMEM;
	member = kzalloc(sizeof(*member), GFP_KERNEL);
	if (!member)
		return -ENOMEM;
	member->group = group;
	member->qp = qp;
	member->attached = 1;
	group->num_members++;
	list_add(&member->qp_node, &qp->mcast_nodes);
	list_add_rcu(&member->node, &group->members);
	return 0;
}

/* Releases the group with its last member. */
static void weft_mcast_remove(struct weft_mcast_member *member)
{
	struct weft_mcast_group *group = member->group;

	list_del_rcu(&member->node);
	list_del(&member->qp_node);
	group->num_members--;
	weft_mcast_release(member->qp->dev, group);
	kfree_rcu(member, rcu);
}

void weft_mcast_drop_qp(struct weft_qp *qp)
{
	struct weft_mcast_member *member, *next;

	/* No one attaches a QP that is being destroyed, and most never were. */
	if (list_empty(&qp->mcast_nodes))
		return;
	rtnl_lock();
	list_for_each_entry_safe(member, next, &qp->mcast_nodes, qp_node)
		weft_mcast_remove(member);
	rtnl_unlock();
}

static bool weft_mcast_valid(const struct in6_addr *mgid)
{
	if (ipv6_addr_v4mapped(mgid))
		return ipv4_is_multicast(mgid->s6_addr32[3]);
	return ipv6_addr_is_multicast(mgid);
}

int weft_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	const struct in6_addr *mgid = (const struct in6_addr *)gid->raw;
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	struct weft_mcast_group *group;
	int err;

	if (qp->type != IB_QPT_UD || !weft_mcast_valid(mgid))
		return -EINVAL;
	rtnl_lock();
	group = weft_mcast_find(qp->dev->mcast, mgid);
	if (!group)
		group = weft_mcast_create(qp->dev, mgid);
	err = PTR_ERR_OR_ZERO(group);
	if (!err) {
		err = weft_mcast_add(group, qp);
		weft_mcast_release(qp->dev, group);
	}
	rtnl_unlock();
	return err;
}

int weft_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	const struct in6_addr *mgid = (const struct in6_addr *)gid->raw;
	struct weft_qp *qp = weft_from_ibqp(ibqp);
	struct weft_mcast_member *member = NULL;
	struct weft_mcast_group *group;

	rtnl_lock();
	group = weft_mcast_find(qp->dev->mcast, mgid);
	if (group)
		member = weft_mcast_member(group, qp);
	if (member && !--member->attached)
		weft_mcast_remove(member);
	rtnl_unlock();
	return member ? 0 : -EINVAL;
}
