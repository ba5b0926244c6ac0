// SPDX-License-Identifier: GPL-2.0
/*
 * Links: `rdma link add … type weft netdev …`, their list, and why one was refused.
 *
 * The kernel's newlink has neither extack nor RTNL: each cause has an errno of its own, and its
 * text is kept for `weft link why`. Registration with ib_core needs RTNL itself, so a link is first
 * put on the list under RTNL, which reserves the netdev, and then registered without; the netdev
 * may go in between.
 *
 *   EINVAL           the name
 *   EEXIST           an RDMA device has that name
 *   EBUSY            the netdev has a Weft link
 *   EOPNOTSUPP       the netdev is not Ethernet
 *   EADDRNOTAVAIL    the netdev is the loopback device
 *   ENODEV           the netdev is going, or went meanwhile
 *   EPROTONOSUPPORT  the kernel has no netfilter ingress hook
 *   ECONNABORTED     the device was unregistered at once by somebody else
 */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/if_arp.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include "link.h"
#include "qp.h"

LIST_HEAD(weft_links);

static unsigned int weft_link_num_rxq;
static DEFINE_MUTEX(weft_refusal_lock);
static struct weft_refusal weft_refusal; /* error 0: none yet */

static __printf(4, 5) int weft_refuse(const char *name, const struct net_device *netdev, int error,
				      const char *format, ...)
{
	va_list args;

	mutex_lock(&weft_refusal_lock);
	strscpy(weft_refusal.name, name, sizeof(weft_refusal.name));
	strscpy(weft_refusal.netdev, netdev->name, sizeof(weft_refusal.netdev));
	weft_refusal.error = error;
	va_start(args, format);
	vscnprintf(weft_refusal.text, sizeof(weft_refusal.text), format, args);
	va_end(args);
	mutex_unlock(&weft_refusal_lock);
	return error;
}

bool weft_link_last_refusal(struct weft_refusal *out)
{
	mutex_lock(&weft_refusal_lock);
	*out = weft_refusal;
	mutex_unlock(&weft_refusal_lock);
	return out->error;
}

struct weft_dev *weft_link_of_netdev(const struct net_device *netdev)
{
	struct weft_dev *dev;

	ASSERT_RTNL();
	list_for_each_entry(dev, &weft_links, node)
		if (rtnl_dereference(dev->netdev) == netdev)
			return dev;
	return NULL;
}

/* ib_dev.name may be rewritten by a rename just now, but unlike dev_name() it is never freed. */
static bool weft_link_has_name(const char *name)
{
	struct weft_dev *dev;

	ASSERT_RTNL();
	list_for_each_entry(dev, &weft_links, node)
		if (!strcmp(dev->ib_dev.name, name))
			return true;
	return false;
}

/* Newer kernels do not let a driver look up others' names: registration finds those. */
static int weft_link_refuse_name(const char *name, const struct net_device *netdev)
{
	return weft_refuse(name, netdev, -EEXIST, "an RDMA device %s exists already", name);
}

static bool weft_link_name_valid(const char *name)
{
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; *name; name++)
		if (*name == '/' || *name == '%' || isspace(*name) || !isprint(*name))
			return false;
	return true;
}

/* Is @name free, and can @netdev carry a link? 0, or the refusal. Under RTNL. */
static int weft_link_check(const char *name, const struct net_device *netdev)
{
	struct weft_dev *dev;

	if (!weft_link_name_valid(name))
		return weft_refuse(name, netdev, -EINVAL, "a name has no space, '/' or '%%'");
	if (weft_link_has_name(name))
		return weft_link_refuse_name(name, netdev);
	if (netdev->flags & IFF_LOOPBACK)
		return weft_refuse(name, netdev, -EADDRNOTAVAIL,
				   "%s is the loopback device; a link on any Ethernet netdev reaches its own host too",
				   netdev->name);
	if (netdev->type != ARPHRD_ETHER)
		return weft_refuse(name, netdev, -EOPNOTSUPP,
				   "%s is not an Ethernet netdev (type %u)", netdev->name,
				   netdev->type);
	if (netdev->reg_state != NETREG_REGISTERED)
		return weft_refuse(name, netdev, -ENODEV, "%s is going away", netdev->name);
	dev = weft_link_of_netdev(netdev);
	if (dev)
		return weft_refuse(name, netdev, -EBUSY, "%s has a Weft link already: %s",
				   netdev->name, dev_name(&dev->ib_dev.dev));
	return 0;
}

static bool weft_link_has_rxe(struct net_device *netdev)
{
	struct ib_device *rxe = ib_device_get_by_netdev(netdev, RDMA_DRIVER_RXE);

	if (rxe)
		ib_device_put(rxe);
	return rxe;
}

static int weft_link_attach(struct weft_dev *dev, const char *name, struct net_device *netdev)
{
	int ret = weft_link_check(name, netdev);

	if (ret)
		return ret;
	dev->gsi_refused = weft_link_has_rxe(netdev);
	ret = weft_dev_attach(dev, netdev);
	if (ret == -EPROTONOSUPPORT)
		return weft_refuse(name, netdev, ret,
				   "this kernel has no netfilter ingress hook (CONFIG_NETFILTER_INGRESS)");
	if (ret)
		return weft_refuse(name, netdev, ret, "cannot attach to %s", netdev->name);
	return 0;
}

/* Registered: but is it still? The caller holds the memory. */
static int weft_link_confirm(struct weft_dev *dev, const char *name, struct net_device *netdev)
{
	bool gone;

	if (!ib_device_try_get(&dev->ib_dev))
		return weft_refuse(name, netdev, -ECONNABORTED,
				   "the new device was unregistered at once, as an unload of rdma_rxe in that very moment does");
	rtnl_lock();
	gone = dev->unregistering;
	rtnl_unlock();
	if (gone) {
		ib_unregister_device_and_put(&dev->ib_dev);
		return weft_refuse(name, netdev, -ENODEV, "%s went away meanwhile", netdev->name);
	}
	if (!weft_dev_has_stock_provider(dev))
		dev_info(&dev->ib_dev.dev, "serves kernel users only: programs need a link named rxe*\n");
	if (dev->gsi_refused) {
		weft_refuse(name, netdev, -EADDRINUSE,
			    "rdma_rxe has QP1 of %s, so rdma_cm does not work on %s: delete the rxe link first, then add this one again",
			    netdev->name, name);
		dev_info(&dev->ib_dev.dev, "rdma_rxe has QP1 of %s: no rdma_cm on this link\n",
			 netdev->name);
	}
	ib_device_put(&dev->ib_dev);
	return 0;
}

static int weft_newlink(const char *name, struct net_device *netdev)
{
	unsigned int num_rxq = weft_link_num_rxq ?: min(num_online_cpus(), WEFT_MAX_RX_QUEUES);
	struct weft_dev *dev = weft_dev_alloc(dev_net(netdev), num_rxq);
	int ret;

	if (IS_ERR(dev))
		return weft_refuse(name, netdev, PTR_ERR(dev), "no memory");
	rtnl_lock();
	ret = weft_link_attach(dev, name, netdev);
	rtnl_unlock();
	if (ret)
		goto dealloc;

	get_device(&dev->ib_dev.dev); /* once registered, others may unregister and release it */
	ret = weft_dev_register(dev, name);
	if (ret) {
		put_device(&dev->ib_dev.dev);
		if (ret == -ENFILE)
			ret = weft_link_refuse_name(name, netdev);
		else
			weft_refuse(name, netdev, ret, "the RDMA core refused the device");
		goto dealloc;
	}
	ret = weft_link_confirm(dev, name, netdev);
	put_device(&dev->ib_dev.dev);
	return ret;

dealloc:
	ib_dealloc_device(&dev->ib_dev);
	return ret;
}

static struct rdma_link_ops weft_link_ops = {
	.type = "weft",
	.newlink = weft_newlink,
};

/* --- what waits in QPs when the device goes --- */

static void weft_link_qp_error(struct weft_qp *qp, void *arg)
{
	weft_qp_error(qp);
}

static int weft_link_client_add(struct ib_device *ib_dev)
{
	return ib_dev->ops.dealloc_driver == weft_dev_release ? 0 : -EOPNOTSUPP;
}

/* Clients are removed newest first: ours before uverbs takes the QPs away from their users. */
static void weft_link_client_remove(struct ib_device *ib_dev, void *data)
{
	weft_qp_for_each(weft_from_ibdev(ib_dev), weft_link_qp_error, NULL);
}

static struct ib_client weft_link_client = {
	.name = "weft",
	.add = weft_link_client_add,
	.remove = weft_link_client_remove,
};

int weft_link_init(unsigned int num_rxq)
{
	int ret = ib_register_client(&weft_link_client);

	if (ret)
		return ret;
	weft_link_num_rxq = num_rxq;
	rdma_link_register(&weft_link_ops);
	return 0;
}

static bool weft_links_empty(void)
{
	bool empty;

	rtnl_lock();
	empty = list_empty(&weft_links);
	rtnl_unlock();
	return empty;
}

/*
 * A device on its way to another namespace has rdma_rxe's driver id for a moment and is missed by a
 * round. The round after the list is empty waits for a release that has left the list and is still
 * at work.
 */
void weft_link_uninit(void)
{
	bool empty;

	rdma_link_unregister(&weft_link_ops); /* waits for a newlink */
	do {
		empty = weft_links_empty();
		ib_unregister_driver((enum rdma_driver_id)WEFT_DRIVER_ID);
		if (!empty)
			msleep(20);
	} while (!empty);
	ib_unregister_client(&weft_link_client);
}
