/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dummy netdevs that carry only NAPI contexts, and tap detection under RCU, for older kernels; and
 * whether a netdev has tc programs, whose place has changed.
 */
#ifndef WEFT_COMPAT_LINUX_NETDEVICE_H
#define WEFT_COMPAT_LINUX_NETDEVICE_H

#include_next <linux/netdevice.h>

#ifndef WEFT_HAVE_ALLOC_NETDEV_DUMMY
/*
 * init_dummy_netdev() wipes whatever alloc_netdev() would have prepared, so the device is
 * plain zeroed memory, and free_netdev() must know one when it sees it.
 */
static inline struct net_device *alloc_netdev_dummy(int sizeof_priv)
{
	size_t size = ALIGN(sizeof(struct net_device), NETDEV_ALIGN) + sizeof_priv;
	struct net_device *dev = kvzalloc(size, GFP_KERNEL);

	if (dev)
		init_dummy_netdev(dev);
	return dev;
}

static inline void weft_compat_free_netdev(struct net_device *dev)
{
	if (dev->reg_state == NETREG_DUMMY)
		kvfree(dev);
	else
		free_netdev(dev);
}

#define free_netdev(dev) weft_compat_free_netdev(dev)
#endif

#ifndef WEFT_HAVE_DEV_NIT_ACTIVE_RCU
#define dev_nit_active_rcu(dev) dev_nit_active(dev)
#endif

static inline bool netdev_has_tc_egress(const struct net_device *dev)
{
#if defined(WEFT_HAVE_NET_DEVICE_TCX)
	return rcu_access_pointer(dev->tcx_egress);
#elif defined(WEFT_HAVE_NET_DEVICE_MINIQ)
	return rcu_access_pointer(dev->miniq_egress);
#else
	return false;
#endif
}

static inline bool netdev_has_tc_ingress(const struct net_device *dev)
{
#if defined(WEFT_HAVE_NET_DEVICE_TCX)
	return rcu_access_pointer(dev->tcx_ingress);
#elif defined(WEFT_HAVE_NET_DEVICE_MINIQ)
	return rcu_access_pointer(dev->miniq_ingress);
#else
	return false;
#endif
}

#endif /* WEFT_COMPAT_LINUX_NETDEVICE_H */
