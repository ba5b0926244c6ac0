/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device: one weft_dev per link, an ib_device bound to one Ethernet netdev.
 *
 * Lifetime: ib_core's. Freed by ops.dealloc_driver after the last user is gone. The netdev is held
 * from newlink to NETDEV_UNREGISTER (or dellink); dev->netdev is then NULL and every user must
 * cope.
 */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <weft/steering.h>

#include "counters.h"

struct weft_mcast;
struct weft_parent;
struct weft_qp;
struct weft_rxq;

/* Private; not in enum rdma_driver_id. Stock librxe still matches, by name: weft_identity_*(). */
#define WEFT_DRIVER_ID 0x77656674 /* "weft" */

enum {
	WEFT_MAX_QP = 1 << 20,
	WEFT_MAX_QP_WR = 1 << 14,
	WEFT_MAX_SGE = 32,
	WEFT_MAX_INLINE = 512,
	WEFT_MAX_CQ = 1 << 20,
	WEFT_MAX_CQE = (1 << 17) - 1,
	WEFT_MAX_MR = 1 << 19,
	WEFT_MAX_MW = 1 << 19,
	WEFT_MAX_SRQ = 1 << 19,
	WEFT_MAX_SRQ_WR = 1 << 14,
	WEFT_MAX_SRQ_SGE = 27,
	WEFT_MAX_AH = 1 << 15,
	WEFT_MAX_RD_ATOMIC = 128, /* per QP, as initiator and as responder */
	WEFT_MAX_FAST_REG_PAGES = 512,
	WEFT_MAX_MCAST_GRP = 8192,
	WEFT_MAX_MCAST_QP = 256, /* per group */
	WEFT_MAX_MSG = 1U << 30,  /* 2^22 PSNs at MTU 256: half of the circle stays the past */
	WEFT_MAX_RECV = 1U << 31, /* bytes of one receive WQE, and of a READ that a peer asks for */
	WEFT_PORT = 1,
	WEFT_GID_TABLE_LEN = 256, /* an index is 8 bits in an address vector */
	WEFT_LOCAL_CA_ACK_DELAY = 15,
	/* QPNs: rdma_rxe hands out 16…2^20, so the receive hook can tell the two apart. */
	WEFT_QPN_FIRST = 0x200000,
	WEFT_QPN_LAST = 0xfffffe,
	WEFT_MAX_RX_QUEUES = 64,
};

/* What `weft link set` changes. Written under RTNL, read by WRITE_ONCE/READ_ONCE pairs. */
struct weft_dev_cfg {
	struct weft_moderation rx_mod; /* rx-usecs, rx-frames; default 0, 1 */
	bool icrc_always;              /* never offload the ICRC to a consumer known to be Weft's */
	bool shortcut;                 /* same-host peers bypass the IP stack; default on */
	bool place_early;              /* QPs made from now on place WRITEs out of order */
};

struct weft_dev {
	struct ib_device ib_dev;

	/* hot: read by every packet */
	struct net_device __rcu *netdev;
	struct weft_rxq *rxq; /* array; fixed between weft_rx_start() and weft_rx_stop() */
	unsigned int num_rxq;
	struct weft_dev_cfg cfg;
	u8 indir[WEFT_RSS_INDIR_SIZE];
	u8 rss_key[WEFT_RSS_KEY_LEN];
	struct weft_counters __percpu *counters;

	/* objects that packets or work requests name by number; loads under RCU */
	struct xarray mrs;  /* by key >> 8, 1 … 0x7fffff */
	struct xarray mws;  /* by key >> 8, 0x800000 … 0xffffff */
	struct xarray ahs;  /* by ah_num, 1 … WEFT_MAX_AH: struct weft_ah_entry */
	struct xarray srqs; /* by srq number */
	atomic_t mr_generation; /* another one as soon as an MR is gone */
	u32 mr_next;        /* cursors of the cyclic allocators above */
	u32 mw_next;
	u32 ah_next;
	u32 srq_next;
	struct weft_qp __rcu *gsi; /* QP1; NULL: none, or rdma_rxe owns QP1 on this netdev */
	struct weft_mcast *mcast;

	/* slow path */
	struct list_head node;        /* weft_links, under RTNL (link.c) */
	struct list_head identity;    /* identity.c */
	netdevice_tracker netdev_tracker;
	struct weft_parent *parent;
	struct net_device *napi_dev;  /* dummy, carries the NAPIs of rxq */
	struct nf_hook_ops ingress;   /* hook.c, under RTNL */
	struct delayed_work gid_rescan; /* gid.c */
	bool ingress_hooked;
	bool unregistering;           /* netdev gone, or device being released; under RTNL */
	struct work_struct speed_work;  /* port.c */
	u32 speed_mbps;               /* of the netdev; WRITE_ONCE under RTNL; 0: not known */
	bool port_active;             /* as last told to users; under RTNL */
	bool gsi_refused;             /* rdma_rxe was on the netdev first: QP1 stays with it */
	atomic_t num_qp;              /* without the GSI QP */
};

static inline struct weft_dev *weft_from_ibdev(struct ib_device *ib_dev)
{
	return container_of(ib_dev, struct weft_dev, ib_dev);
}

/* Can a program drive the device? librxe knows it by its name. */
static inline bool weft_dev_has_stock_provider(const struct weft_dev *dev)
{
	return !strncmp(dev_name(&dev->ib_dev.dev), "rxe", 3);
}

/* device.c: from allocation to release. Undo alloc with ib_dealloc_device(). */
struct weft_dev *weft_dev_alloc(struct net *net, unsigned int num_rxq); /* or ERR_PTR() */
/* Give the device its netdev and put it on weft_links. Under RTNL. */
int weft_dev_attach(struct weft_dev *dev, struct net_device *netdev);
/* Let go of the netdev; the device lives on without. Under RTNL; idempotent. */
void weft_dev_detach(struct weft_dev *dev);
void weft_dev_release(struct ib_device *ib_dev); /* ops.dealloc_driver */
int weft_dev_register(struct weft_dev *dev, const char *name);
/* Netdev with a reference, or NULL once it is gone. Undo with dev_put(). */
struct net_device *weft_dev_get_netdev(struct weft_dev *dev);

/* port.c: port attributes, and what the netdev's state means for them. */
int weft_query_port(struct ib_device *ib_dev, u32 port, struct ib_port_attr *attr);
int weft_query_pkey(struct ib_device *ib_dev, u32 port, u16 index, u16 *pkey);
int weft_get_port_immutable(struct ib_device *ib_dev, u32 port,
			    struct ib_port_immutable *immutable);
/* Largest path MTU (256…4096 bytes) whose packets fit @netdev_mtu; 0: not even 256. */
u32 weft_path_mtu(u32 netdev_mtu);
void weft_port_init(struct weft_dev *dev);
void weft_port_uninit(struct weft_dev *dev); /* sleeps, takes RTNL */
/* Note how the netdev is. Under RTNL, not from a notifier. */
void weft_port_attach(struct weft_dev *dev, struct net_device *netdev);
/* Look at the netdev again and tell verbs users of a change of state. Under RTNL. */
void weft_port_refresh(struct weft_dev *dev, struct net_device *netdev);

/* identity.c: the driver id, see there. */
extern const struct uapi_definition weft_identity_def[];
int weft_identity_enable(struct ib_device *ib_dev); /* ops.enable_driver */
void weft_identity_settle(struct weft_dev *dev);
void weft_identity_add(struct weft_dev *dev);
void weft_identity_del(struct weft_dev *dev);
int weft_identity_init(void);
void weft_identity_uninit(void);

/* ops.c */
extern const struct ib_device_ops weft_device_ops;

#endif
