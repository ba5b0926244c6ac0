// SPDX-License-Identifier: GPL-2.0
/* weft_ib.ko: a RoCEv2 device on any Ethernet netdev. Module parameters, start and end. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <rdma/rdma_netlink.h>

#include "burst.h"
#include "crc.h"
#include "device.h"
#include "hook.h"
#include "link.h"
#include "qp.h"
#include "tx.h"

#if BITS_PER_LONG != 64
#error Weft needs a 64-bit kernel: counters and stamps are plain 64-bit words
#endif

static unsigned int rx_queues;
module_param(rx_queues, uint, 0444);
MODULE_PARM_DESC(rx_queues, "Receive queues of a new link, 1 to 64; 0 (default): one per CPU");

static int __init weft_ib_check_parameters(void)
{
	if (rx_queues <= WEFT_MAX_RX_QUEUES)
		return 0;
	pr_err("rx_queues=%u: must be 0 to %u\n", rx_queues, WEFT_MAX_RX_QUEUES);
	return -EINVAL;
}

static int __init weft_ib_init(void)
{
	int ret;

	ret = weft_ib_check_parameters();
	if (ret)
		return ret;
	ret = weft_crc_init();
	if (ret)
		return ret;
	ret = weft_burst_init();
	if (ret)
		goto uninit_crc;
	ret = weft_hold_init();
	if (ret)
		goto uninit_burst;
	ret = weft_recovery_init();
	if (ret)
		goto uninit_hold;
	ret = weft_qp_table_init();
	if (ret)
		goto uninit_recovery;
	ret = weft_identity_init();
	if (ret)
		goto uninit_qp_table;
	ret = weft_hook_init();
	if (ret)
		goto uninit_identity;
	ret = weft_netdev_init();
	if (ret)
		goto uninit_hook;
	ret = weft_netlink_init();
	if (ret)
		goto uninit_netdev;
	ret = weft_link_init(rx_queues);
	if (ret)
		goto uninit_netlink;
	return 0;

uninit_netlink:
	weft_netlink_uninit();
uninit_netdev:
	weft_netdev_uninit();
uninit_hook:
	weft_hook_uninit();
uninit_identity:
	weft_identity_uninit();
uninit_qp_table:
	weft_qp_table_uninit();
uninit_recovery:
	weft_recovery_uninit();
uninit_hold:
	weft_hold_uninit();
uninit_burst:
	weft_burst_uninit();
uninit_crc:
	weft_crc_uninit();
	return ret;
}

static void __exit weft_ib_exit(void)
{
	weft_link_uninit();
	weft_netlink_uninit();
	weft_netdev_uninit();
	weft_hook_uninit();
	weft_identity_uninit();
	weft_tx_drain();
	weft_qp_table_uninit();
	weft_recovery_uninit();
	weft_hold_uninit();
	weft_burst_uninit();
	weft_crc_uninit();
	rcu_barrier(); /* callbacks into this module */
}

module_init(weft_ib_init);
module_exit(weft_ib_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Weft project");
MODULE_DESCRIPTION("Weft RoCEv2 device for any Ethernet netdev");
MODULE_VERSION(WEFT_VERSION);
MODULE_SOFTDEP("pre: ib_uverbs");
MODULE_ALIAS_RDMA_LINK("weft");
