// SPDX-License-Identifier: GPL-2.0
/*
 * The device from allocation to release.
 *
 *   weft_dev_alloc()     queues, tables, counters; nothing refers to it
 *   weft_dev_attach()    RTNL: the netdev, its hook
 *   weft_dev_register()  ib_core: users, GIDs
 *   weft_dev_detach()    RTNL: the netdev goes, or the device does
 *   weft_dev_release()   ops.dealloc_driver: no user, no QP, no GID is left
 *
 * A packet finds the device by a QPN or a GID, under RCU; both are gone before weft_dev_release(),
 * which waits for a grace period before it takes the queues away.
 */
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/uverbs_ioctl.h>

#include "gid.h"
#include "hook.h"
#include "link.h"
#include "mcast.h"
#include "parent.h"
#include "qp.h"
#include "rx.h"

static void weft_dev_init_tables(struct weft_dev *dev)
{
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mws, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC);
}

static void weft_dev_destroy_tables(struct weft_dev *dev)
{
	WARN_ON(!xa_empty(&dev->mrs) || !xa_empty(&dev->mws) || !xa_empty(&dev->ahs) ||
		!xa_empty(&dev->srqs));
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->mws);
	xa_destroy(&dev->ahs);
	xa_destroy(&dev->srqs);
}

static int weft_dev_init(struct weft_dev *dev, unsigned int num_rxq)
{
	int ret = -ENOMEM;

	dev->counters = alloc_percpu(struct weft_counters);
	if (!dev->counters)
		return -ENOMEM;
	dev->parent = weft_parent_create();
	if (!dev->parent)
		goto free_counters;
	ret = weft_mcast_init(dev);
	if (ret)
		goto destroy_parent;
	memcpy(dev->rss_key, weft_rss_default_key, sizeof(dev->rss_key));
	ret = weft_rx_start(dev, num_rxq);
	if (ret)
		goto uninit_mcast;
	return 0;

uninit_mcast:
	weft_mcast_uninit(dev);
destroy_parent:
	weft_parent_destroy(dev->parent);
free_counters:
	free_percpu(dev->counters);
	return ret;
}

struct weft_dev *weft_dev_alloc(struct net *net, unsigned int num_rxq)
{
	struct weft_dev *dev = ib_alloc_device_with_net(weft_dev, ib_dev, net);
	int ret;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&dev->node);
	weft_dev_init_tables(dev);
	weft_gid_init(dev);
	weft_port_init(dev);
	dev->cfg.rx_mod.frames = 1;
	dev->cfg.shortcut = true;
	ret = weft_dev_init(dev, num_rxq);
	if (ret) {
		ib_dealloc_device(&dev->ib_dev);
		return ERR_PTR(ret);
	}

	dev->ib_dev.node_type = RDMA_NODE_IB_CA;
	dev->ib_dev.phys_port_cnt = 1;
	dev->ib_dev.num_comp_vectors = 1;
	dev->ib_dev.local_dma_lkey = 0;
	dev->ib_dev.dev.parent = weft_parent_device(dev->parent);
	dev->ib_dev.uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				       BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	dev->ib_dev.driver_def = weft_identity_def;
	strscpy(dev->ib_dev.node_desc, "Weft", sizeof(dev->ib_dev.node_desc));
	ib_set_device_ops(&dev->ib_dev, &weft_device_ops);
	weft_identity_add(dev);
	return dev;
}

/*
 * EUI-64 of the MAC. Netdevs that share a MAC (VLANs) get other middle bytes than the first one's.
 */
static void weft_dev_set_guid(struct weft_dev *dev, const struct net_device *netdev)
{
	const struct weft_dev *other;
	u8 guid[sizeof(__be64)];
	u16 middle = 0xfffe;

	addrconf_addr_eui48(guid, netdev->dev_addr);
again:
	memcpy(&dev->ib_dev.node_guid, guid, sizeof(guid));
	list_for_each_entry(other, &weft_links, node) {
		if (other->ib_dev.node_guid != dev->ib_dev.node_guid)
			continue;
		middle--;
		guid[3] = middle >> 8;
		guid[4] = middle;
		goto again;
	}
}

int weft_dev_attach(struct weft_dev *dev, struct net_device *netdev)
{
	int ret;

	ASSERT_RTNL();
	ret = weft_hook_add(dev, netdev);
	if (ret)
		return ret;
	netdev_hold(netdev, &dev->netdev_tracker, GFP_KERNEL);
	weft_dev_set_guid(dev, netdev);
	rcu_assign_pointer(dev->netdev, netdev);
	weft_parent_link(dev->parent, netdev);
	weft_port_attach(dev, netdev);
	list_add_tail(&dev->node, &weft_links);
	return 0;
}

void weft_dev_detach(struct weft_dev *dev)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);

	ASSERT_RTNL();
	dev->unregistering = true;
	if (!netdev)
		return;
	weft_hook_remove(dev, netdev);
	weft_mcast_netdev_gone(dev, netdev);
	weft_parent_unlink(dev->parent);
	rcu_assign_pointer(dev->netdev, NULL);
	netdev_put(netdev, &dev->netdev_tracker);
}

void weft_dev_release(struct ib_device *ib_dev)
{
	struct weft_dev *dev = weft_from_ibdev(ib_dev);

	rtnl_lock();
	weft_dev_detach(dev);
	list_del(&dev->node);
	rtnl_unlock();
	weft_identity_del(dev);
	weft_gid_uninit(dev);
	weft_port_uninit(dev);
	synchronize_net(); /* hooks and the shortcut that found the device */
	weft_rx_stop(dev);
	weft_mcast_uninit(dev);
	weft_dev_destroy_tables(dev);
	weft_parent_destroy(dev->parent);
	free_percpu(dev->counters);
}

int weft_dev_register(struct weft_dev *dev, const char *name)
{
	int ret = ib_register_device(&dev->ib_dev, name, NULL);

	weft_identity_settle(dev);
	return ret;
}

struct net_device *weft_dev_get_netdev(struct weft_dev *dev)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	dev_hold(netdev); /* copes with NULL */
	rcu_read_unlock();
	return netdev;
}
