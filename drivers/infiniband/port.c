// SPDX-License-Identifier: GPL-2.0
/* Port attributes, which follow the netdev: state, path MTU, speed. */
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <rdma/ib_mad.h>
#include <weft/bth.h>

#include "qp.h"

/* IB names for a netdev's speed; the widest that is not above it. */
static const struct weft_speed {
	u32 mbps;
	u8 width;
	u16 speed;
} weft_speeds[] = {
	{ 400000, IB_WIDTH_4X, IB_SPEED_NDR },
	{ 200000, IB_WIDTH_4X, IB_SPEED_HDR },
	{ 100000, IB_WIDTH_4X, IB_SPEED_EDR },
	{ 50000, IB_WIDTH_1X, IB_SPEED_HDR },
	{ 40000, IB_WIDTH_4X, IB_SPEED_FDR10 },
	{ 25000, IB_WIDTH_1X, IB_SPEED_EDR },
	{ 20000, IB_WIDTH_4X, IB_SPEED_DDR },
	{ 10000, IB_WIDTH_1X, IB_SPEED_FDR10 },
	{ 5000, IB_WIDTH_1X, IB_SPEED_DDR },
	{ 0, IB_WIDTH_1X, IB_SPEED_SDR },
};

u32 weft_path_mtu(u32 netdev_mtu)
{
	/*
	 * The largest headers there are, so that one answer holds for IPv4 and IPv6 and any opcode.
	 */
	const u32 overhead = sizeof(struct ipv6hdr) + sizeof(struct udphdr) + WEFT_HDR_MAX +
			     WEFT_ICRC_LEN;
	u32 mtu;

	for (mtu = 4096; mtu >= 256; mtu /= 2)
		if (mtu + overhead <= netdev_mtu)
			return mtu;
	return 0;
}

static bool weft_netdev_is_active(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev) &&
	       weft_path_mtu(READ_ONCE(netdev->mtu));
}

static void weft_port_state(const struct net_device *netdev, struct ib_port_attr *attr)
{
	attr->state = weft_netdev_is_active(netdev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	if (attr->state == IB_PORT_ACTIVE)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else if (netif_running(netdev) && !netif_carrier_ok(netdev))
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	else
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
}

int weft_query_port(struct ib_device *ib_dev, u32 port, struct ib_port_attr *attr)
{
	struct weft_dev *dev = weft_from_ibdev(ib_dev);
	const struct weft_speed *speed = weft_speeds;
	const struct net_device *netdev;

	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_256;
	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	if (netdev) {
		weft_port_state(netdev, attr);
		attr->active_mtu = ib_mtu_int_to_enum(weft_path_mtu(READ_ONCE(netdev->mtu)));
	}
	rcu_read_unlock();

	while (speed->mbps > READ_ONCE(dev->speed_mbps))
		speed++;
	attr->active_speed = speed->speed;
	attr->active_width = speed->width;
	attr->gid_tbl_len = WEFT_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = dev->gsi_refused ? 0 : IB_PORT_CM_SUP;
	attr->max_msg_sz = WEFT_MAX_MSG;
	attr->bad_pkey_cntr = weft_counter_read(dev->counters, WEFT_CNT_rx_drop_pkey);
	attr->qkey_viol_cntr = weft_counter_read(dev->counters, WEFT_CNT_rx_drop_qkey);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	return 0;
}

int weft_query_pkey(struct ib_device *ib_dev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = WEFT_PKEY_DEFAULT;
	return 0;
}

/*
 * Without MADs and CM, rdma_cm refuses the device, and no MAD layer asks for the QP1 that rdma_rxe
 * has.
 */
int weft_get_port_immutable(struct ib_device *ib_dev, u32 port, struct ib_port_immutable *immutable)
{
	struct weft_dev *dev = weft_from_ibdev(ib_dev);

	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = WEFT_GID_TABLE_LEN;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (dev->gsi_refused)
		immutable->core_cap_flags &= ~(RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_CM);
	else
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static void weft_port_event(struct weft_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ib_dev,
		.element.port_num = WEFT_PORT,
		.event = type,
	};

	/* Not yet, or no longer, registered: nobody listens. */
	if (!ib_device_try_get(&dev->ib_dev))
		return;
	ib_dispatch_event(&event);
	ib_device_put(&dev->ib_dev);
}

static void weft_port_read_speed(struct weft_dev *dev, struct net_device *netdev)
{
	struct ethtool_link_ksettings settings;
	u32 mbps = 0;

	if (!__ethtool_get_link_ksettings(netdev, &settings) &&
	    settings.base.speed != (u32)SPEED_UNKNOWN)
		mbps = settings.base.speed;
	WRITE_ONCE(dev->speed_mbps, mbps);
}

/* Newer kernels call some notifiers with the lock held that ethtool takes: not from there. */
static void weft_port_speed_work(struct work_struct *work)
{
	struct weft_dev *dev = container_of(work, struct weft_dev, speed_work);
	struct net_device *netdev;

	rtnl_lock();
	netdev = rtnl_dereference(dev->netdev);
	if (netdev)
		weft_port_read_speed(dev, netdev);
	rtnl_unlock();
}

void weft_port_refresh(struct weft_dev *dev, struct net_device *netdev)
{
	bool active = weft_netdev_is_active(netdev);

	ASSERT_RTNL();
	schedule_work(&dev->speed_work);
	if (active == dev->port_active)
		return;
	dev->port_active = active;
	if (!active)
		weft_count(dev, link_downed);
	weft_port_event(dev, active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

void weft_port_attach(struct weft_dev *dev, struct net_device *netdev)
{
	ASSERT_RTNL();
	weft_port_read_speed(dev, netdev);
	dev->port_active = weft_netdev_is_active(netdev);
}

void weft_port_init(struct weft_dev *dev)
{
	INIT_WORK(&dev->speed_work, weft_port_speed_work);
}

void weft_port_uninit(struct weft_dev *dev)
{
	cancel_work_sync(&dev->speed_work);
}
