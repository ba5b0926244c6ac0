// SPDX-License-Identifier: GPL-2.0
/*
 * The platform device weft.N that a link's RDMA device has for a parent. Programs find the netdev
 * of an RDMA device as /sys/class/infiniband/X/device/net/<if>, which a real NIC's PCI device has;
 * here it is a link that is made anew when the netdev gets another name.
 */
#include <linux/idr.h>
#include <linux/platform_device.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "parent.h"

struct weft_parent {
	struct platform_device *pdev;
	struct kobject *net;
	int id;
	char linked[IFNAMSIZ]; /* name of the link in net/, empty: none; under RTNL */
};

static DEFINE_IDA(weft_parent_ids);

struct weft_parent *weft_parent_create(void)
{
	struct weft_parent *parent = kzalloc(sizeof(*parent), GFP_KERNEL);

	if (!parent)
		return NULL;
	parent->id = ida_alloc(&weft_parent_ids, GFP_KERNEL);
	if (parent->id < 0)
		goto free_parent;
	parent->pdev = platform_device_register_simple("weft", parent->id, NULL, 0);
	if (IS_ERR(parent->pdev))
		goto free_id;
	parent->net = kobject_create_and_add("net", &parent->pdev->dev.kobj);
	if (!parent->net)
		goto unregister;
	return parent;

unregister:
	platform_device_unregister(parent->pdev);
free_id:
	ida_free(&weft_parent_ids, parent->id);
free_parent:
	kfree(parent);
	return NULL;
}

void weft_parent_destroy(struct weft_parent *parent)
{
	kobject_put(parent->net);
	platform_device_unregister(parent->pdev);
	ida_free(&weft_parent_ids, parent->id);
	kfree(parent);
}

struct device *weft_parent_device(struct weft_parent *parent)
{
	return &parent->pdev->dev;
}

void weft_parent_unlink(struct weft_parent *parent)
{
	ASSERT_RTNL();
	if (parent->linked[0])
		sysfs_remove_link(parent->net, parent->linked);
	parent->linked[0] = '\0';
}

void weft_parent_link(struct weft_parent *parent, struct net_device *netdev)
{
	weft_parent_unlink(parent);
	/* Without it the link works all the same; only the search by sysfs does not find it. */
	if (!sysfs_create_link(parent->net, &netdev->dev.kobj, netdev->name))
		strscpy(parent->linked, netdev->name, sizeof(parent->linked));
}
