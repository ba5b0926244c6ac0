// SPDX-License-Identifier: GPL-2.0
/* The table of verbs, and those that are too small for a file: device attributes, contexts, PDs. */
#include <linux/module.h>
#include <linux/utsname.h>
#include <rdma/ib_addr.h>
#include <rdma/uverbs_ioctl.h>
#include <weft_ib_ops.h>

#include "gid.h"
#include "mcast.h"
#include "qp.h"

enum {
	WEFT_UVERBS_ABI = 2, /* that of <rdma/rdma_user_rxe.h>, as librxe has it */
	WEFT_MAX_PD = 1 << 20,
	WEFT_VENDOR_ID = 0xffffff, /* no OUI */
	WEFT_PART_ID = 1,
	WEFT_HW_VERSION = 1,
	WEFT_PAGE_SIZES = 0xfffff000, /* 4 KiB and up */
};

struct weft_ucontext {
	struct ib_ucontext ibuc;
};

struct weft_pd {
	struct ib_pd ibpd;
};

static u64 weft_fw_version(void)
{
	unsigned int major = 0, minor = 0, patch = 0;

	if (sscanf(WEFT_VERSION, "%u.%u.%u", &major, &minor, &patch) != 3)
		return 0;
	return (u64)major << 32 | minor << 16 | patch;
}

static void weft_get_dev_fw_str(struct ib_device *ib_dev, char *str)
{
	strscpy(str, WEFT_VERSION, IB_FW_VERSION_NAME_MAX);
}

static void weft_device_caps(struct ib_device_attr *attr)
{
	attr->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
				 IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_SRQ_RESIZE | IB_DEVICE_MEM_WINDOW |
				 IB_DEVICE_MEM_WINDOW_TYPE_2B | IB_DEVICE_MEM_MGT_EXTENSIONS |
				 IB_DEVICE_ATOMIC_WRITE;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
}

static void weft_device_limits(struct ib_device_attr *attr)
{
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = WEFT_PAGE_SIZES;
	attr->max_qp = WEFT_MAX_QP;
	attr->max_qp_wr = WEFT_MAX_QP_WR;
	attr->max_send_sge = WEFT_MAX_SGE;
	attr->max_recv_sge = WEFT_MAX_SGE;
	attr->max_sge_rd = WEFT_MAX_SGE;
	attr->max_cq = WEFT_MAX_CQ;
	attr->max_cqe = WEFT_MAX_CQE;
	attr->max_mr = WEFT_MAX_MR;
	attr->max_mw = WEFT_MAX_MW;
	attr->max_pd = WEFT_MAX_PD;
	attr->max_qp_rd_atom = WEFT_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = WEFT_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = min_t(u64, (u64)WEFT_MAX_RD_ATOMIC * WEFT_MAX_QP, INT_MAX);
	attr->max_mcast_grp = WEFT_MAX_MCAST_GRP;
	attr->max_mcast_qp_attach = WEFT_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = WEFT_MAX_MCAST_GRP * WEFT_MAX_MCAST_QP;
	attr->max_ah = WEFT_MAX_AH;
	attr->max_srq = WEFT_MAX_SRQ;
	attr->max_srq_wr = WEFT_MAX_SRQ_WR;
	attr->max_srq_sge = WEFT_MAX_SRQ_SGE;
	attr->max_fast_reg_page_list_len = WEFT_MAX_FAST_REG_PAGES;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = WEFT_LOCAL_CA_ACK_DELAY;
}

static int weft_query_device(struct ib_device *ib_dev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	int ret = ib_is_udata_in_empty(udata);

	if (ret)
		return ret;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = weft_fw_version();
	attr->sys_image_guid = ib_dev->node_guid;
	attr->vendor_id = WEFT_VENDOR_ID;
	attr->vendor_part_id = WEFT_PART_ID;
	attr->hw_ver = WEFT_HW_VERSION;
	weft_device_caps(attr);
	weft_device_limits(attr);
	return ib_respond_empty_udata(udata);
}

static int weft_modify_device(struct ib_device *ib_dev, int mask, struct ib_device_modify *attr)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ib_dev->node_desc, attr->node_desc, sizeof(ib_dev->node_desc));
	return 0;
}

static enum rdma_link_layer weft_get_link_layer(struct ib_device *ib_dev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static struct net_device *weft_get_netdev(struct ib_device *ib_dev, u32 port)
{
	return weft_dev_get_netdev(weft_from_ibdev(ib_dev));
}

/*
 * Only librxe can drive the device so far, and it knows it by its name. A context keeps the module:
 * uverbs itself does so only for drivers that cannot be taken from under a program, and a mere
 * rmmod should not do that.
 */
static int weft_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct weft_dev *dev = weft_from_ibdev(ibuc->device);

	if (!weft_dev_has_stock_provider(dev))
		return -EOPNOTSUPP;
	return try_module_get(THIS_MODULE) ? 0 : -ENODEV;
}

static void weft_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	module_put(THIS_MODULE);
}

/*
 * What a process has mapped are rings in plain memory: they stay valid, and nobody serves them any
 * more.
 */
static void weft_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static int weft_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int weft_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static struct ib_udata *weft_attrs_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}

static int weft_create_any_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	return weft_create_cq(ibcq, attr, weft_attrs_udata(attrs));
}

static int weft_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	return cqe > INT_MAX ? -EINVAL : weft_resize_cq(ibcq, cqe, udata);
}

static struct ib_mr *weft_reg_user_mr_dmah(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					   int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	return dmah ? ERR_PTR(-EOPNOTSUPP) :
		      weft_reg_user_mr(ibpd, start, length, iova, access, udata);
}

WEFT_IB_CQ_OPS(weft_create_any_cq, weft_create_any_cq, weft_resize_user_cq);
WEFT_IB_MR_OPS(weft_reg_user_mr_dmah);

const struct ib_device_ops weft_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)WEFT_DRIVER_ID,
	.uverbs_abi_ver = WEFT_UVERBS_ABI,
	.uverbs_no_driver_id_binding = 1,

	.enable_driver = weft_identity_enable,
	.dealloc_driver = weft_dev_release,
	.disassociate_ucontext = weft_disassociate_ucontext,

	.query_device = weft_query_device,
	.modify_device = weft_modify_device,
	.get_dev_fw_str = weft_get_dev_fw_str,
	.query_port = weft_query_port,
	.query_pkey = weft_query_pkey,
	.get_port_immutable = weft_get_port_immutable,
	.get_link_layer = weft_get_link_layer,
	.get_netdev = weft_get_netdev,
	.add_gid = weft_add_gid,
	.del_gid = weft_del_gid,
	.alloc_hw_port_stats = weft_alloc_hw_port_stats,
	.get_hw_stats = weft_get_hw_stats,

	.alloc_ucontext = weft_alloc_ucontext,
	.dealloc_ucontext = weft_dealloc_ucontext,
	.mmap = weft_mmap,
	.mmap_free = weft_mmap_free,
	.alloc_pd = weft_alloc_pd,
	.dealloc_pd = weft_dealloc_pd,

	.create_ah = weft_create_ah,
	.create_user_ah = weft_create_ah,
	.modify_ah = weft_modify_ah,
	.query_ah = weft_query_ah,
	.destroy_ah = weft_destroy_ah,

	WEFT_IB_CQ_INIT(weft_create_any_cq, weft_create_any_cq, weft_resize_user_cq),
	.destroy_cq = weft_destroy_cq,
	.poll_cq = weft_poll_cq,
	.req_notify_cq = weft_req_notify_cq,

	.create_srq = weft_create_srq,
	.modify_srq = weft_modify_srq,
	.query_srq = weft_query_srq,
	.destroy_srq = weft_destroy_srq,
	.post_srq_recv = weft_post_srq_recv,

	.create_qp = weft_create_qp,
	.modify_qp = weft_modify_qp,
	.query_qp = weft_query_qp,
	.destroy_qp = weft_destroy_qp,
	.post_send = weft_post_send,
	.post_recv = weft_post_recv,
	.attach_mcast = weft_attach_mcast,
	.detach_mcast = weft_detach_mcast,

	.get_dma_mr = weft_get_dma_mr,
	WEFT_IB_MR_INIT(weft_reg_user_mr_dmah),
	.alloc_mr = weft_alloc_mr,
	.map_mr_sg = weft_map_mr_sg,
	.dereg_mr = weft_dereg_mr,
	.alloc_mw = weft_alloc_mw,
	.dealloc_mw = weft_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, weft_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_pd, weft_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_ah, weft_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, weft_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_srq, weft_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_qp, weft_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_mw, weft_mw, ibmw),
};
