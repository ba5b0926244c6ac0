// SPDX-License-Identifier: GPL-2.0
/*
 * The driver id that stock librxe needs and rdma_rxe must not see.
 *
 * librxe writes RDMA_DRIVER_RXE into the header of every ioctl, and the kernel compares that with a
 * copy of ops.driver_id that uverbs took when the device was added to it. rdma_rxe, for its part,
 * takes every device of its netdevs with RDMA_DRIVER_RXE for its own, and at its unload unregisters
 * all that have it. So the id is RDMA_DRIVER_RXE exactly while uverbs copies it:
 *
 *   ops.enable_driver               RXE      before clients are added: registration, netns move
 *   weft_identity_def               private  uverbs evaluates it right after its copy
 *   weft_identity_settle()          private  after registration, should uverbs not be loaded
 *   ib_uverbs COMING / LIVE, GOING  RXE / private  uverbs is loaded while devices exist
 *
 * Besides, ops.get_netdev serves the netdev, not ib_device_set_netdev(): so no lookup by netdev
 * finds the device, whatever its id. What remains: an unload of rdma_rxe between the first two
 * steps unregisters the device, which weft_newlink() reports.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"

static DEFINE_MUTEX(weft_identity_lock); /* the list */
static LIST_HEAD(weft_identities);

static void weft_identity_set(struct ib_device *ib_dev, u32 id)
{
	WRITE_ONCE(ib_dev->ops.driver_id, (enum rdma_driver_id)id);
}

static bool weft_identity_restore(struct ib_device *ib_dev)
{
	weft_identity_set(ib_dev, WEFT_DRIVER_ID);
	return true;
}

const struct uapi_definition weft_identity_def[] = {
	DECLARE_UVERBS_OBJECT(UVERBS_OBJECT_PD, UAPI_DEF_IS_OBJ_SUPPORTED(weft_identity_restore)),
	{},
};

int weft_identity_enable(struct ib_device *ib_dev)
{
	weft_identity_set(ib_dev, RDMA_DRIVER_RXE);
	return 0;
}

void weft_identity_settle(struct weft_dev *dev)
{
	weft_identity_set(&dev->ib_dev, WEFT_DRIVER_ID);
}

void weft_identity_add(struct weft_dev *dev)
{
	mutex_lock(&weft_identity_lock);
	list_add_tail(&dev->identity, &weft_identities);
	mutex_unlock(&weft_identity_lock);
}

void weft_identity_del(struct weft_dev *dev)
{
	mutex_lock(&weft_identity_lock);
	list_del(&dev->identity);
	mutex_unlock(&weft_identity_lock);
}

static int weft_identity_module_event(struct notifier_block *nb, unsigned long event, void *arg)
{
	const struct module *module = arg;
	struct weft_dev *dev;

	if (strcmp(module->name, "ib_uverbs"))
		return NOTIFY_DONE;
	mutex_lock(&weft_identity_lock);
	list_for_each_entry(dev, &weft_identities, identity)
		weft_identity_set(&dev->ib_dev, event == MODULE_STATE_COMING ? RDMA_DRIVER_RXE :
									      WEFT_DRIVER_ID);
	mutex_unlock(&weft_identity_lock);
	return NOTIFY_OK;
}

static struct notifier_block weft_identity_nb = {
	.notifier_call = weft_identity_module_event,
};

int weft_identity_init(void)
{
	return register_module_notifier(&weft_identity_nb);
}

void weft_identity_uninit(void)
{
	unregister_module_notifier(&weft_identity_nb);
}
