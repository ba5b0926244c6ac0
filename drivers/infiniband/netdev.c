// SPDX-License-Identifier: GPL-2.0
/*
 * Netdev life. All of it under RTNL, so nothing here waits for what may itself want RTNL.
 *
 *   up, down, carrier  port state and event; QPs stay, their packets are lost meanwhile
 *   MTU                active_mtu; QPs with a larger path MTU get an event
 *   rename             the parent's net/ link
 *   move               the link follows: hook and net/ link are made anew in the other namespace,
 *                      GIDs by ib_core; addresses and multicast memberships are lost, as the
 *                      netdev's own are
 *   unregister         QPs go to the error state, the device is unregistered by a work of
 *                      ib_core's, which tells its users IB_EVENT_DEVICE_FATAL; the netdev is let go
 *                      of at once
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "gid.h"
#include "hook.h"
#include "link.h"
#include "mcast.h"
#include "parent.h"
#include "path.h"
#include "qp.h"

static void weft_netdev_state(struct weft_dev *dev, struct net_device *netdev)
{
	weft_port_refresh(dev, netdev);
	/* Duplicate address detection waits for the carrier too. */
	if (dev->port_active)
		weft_gid_rescan(dev);
}

static void weft_netdev_qp_mtu(struct weft_qp *qp, void *arg)
{
	weft_qp_check_mtu(qp, *(const u32 *)arg);
}

static void weft_netdev_mtu(struct weft_dev *dev, struct net_device *netdev)
{
	u32 mtu = weft_path_mtu(netdev->mtu);

	weft_port_refresh(dev, netdev);
	weft_qp_for_each(dev, weft_netdev_qp_mtu, &mtu);
}

static void weft_netdev_leave(struct weft_dev *dev, struct net_device *netdev)
{
	weft_hook_remove(dev, netdev);
	weft_mcast_netdev_gone(dev, netdev);
}

/* In its new namespace, perhaps under a new name. */
static void weft_netdev_arrive(struct weft_dev *dev, struct net_device *netdev)
{
	if (weft_hook_add(dev, netdev))
		dev_warn(&dev->ib_dev.dev, "no memory: receives nothing from %s\n", netdev->name);
	weft_parent_link(dev->parent, netdev);
	weft_port_refresh(dev, netdev);
}

static void weft_netdev_qp_error(struct weft_qp *qp, void *arg)
{
	weft_qp_error(qp);
}

static void weft_netdev_gone(struct weft_dev *dev)
{
	weft_dev_detach(dev);
	weft_qp_for_each(dev, weft_netdev_qp_error, NULL);
	/*
	 * Not registered: newlink is at it, or somebody has unregistered it; both see that the
	 * netdev went.
	 */
	if (!ib_device_try_get(&dev->ib_dev))
		return;
	ib_unregister_device_queued(&dev->ib_dev);
	ib_device_put(&dev->ib_dev);
}

static int weft_netdev_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct weft_dev *dev = weft_link_of_netdev(netdev);

	/* Any netdev may carry a GID; ib_core takes that away later, by a work. */
	if (event == NETDEV_REGISTER || event == NETDEV_UNREGISTER)
		weft_path_changed();
	if (!dev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		weft_netdev_state(dev, netdev);
		break;
	case NETDEV_CHANGEMTU:
		weft_netdev_mtu(dev, netdev);
		break;
	case NETDEV_CHANGENAME:
		weft_parent_link(dev->parent, netdev);
		break;
	case NETDEV_REGISTER:
		weft_netdev_arrive(dev, netdev);
		break;
	case NETDEV_UNREGISTER:
		if (netdev->reg_state == NETREG_REGISTERED)
			weft_netdev_leave(dev, netdev);
		else
			weft_netdev_gone(dev);
		break;
	default:
		return NOTIFY_DONE;
	}
	return NOTIFY_OK;
}

static struct notifier_block weft_netdev_nb = {
	.notifier_call = weft_netdev_event,
};

int weft_netdev_init(void)
{
	return register_netdevice_notifier(&weft_netdev_nb);
}

void weft_netdev_uninit(void)
{
	unregister_netdevice_notifier(&weft_netdev_nb);
}
