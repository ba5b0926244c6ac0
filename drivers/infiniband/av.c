// SPDX-License-Identifier: GPL-2.0
/*
 * Address vectors and address handles.
 *
 * An AH's vector is never changed in place: modify publishes a new entry and the old one lives for
 * a grace period. Only users' AHs have numbers; kernel users, who create theirs in any context,
 * pass the ib_ah itself.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_user_rxe.h>

#include "av.h"

int weft_av_init(struct weft_dev *dev, struct weft_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_gid_attr *sgid_attr = attr->grh.sgid_attr;
	enum rdma_network_type network;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(attr->ah_flags & IB_AH_GRH) ||
	    attr->port_num != WEFT_PORT || !sgid_attr)
		return -EINVAL;
	network = rdma_gid_attr_network_type(sgid_attr);
	if (network != RDMA_NETWORK_IPV4 && network != RDMA_NETWORK_IPV6)
		return -EINVAL;

	memset(av, 0, sizeof(*av));
	av->v6 = network == RDMA_NETWORK_IPV6;
	memcpy(&av->saddr, sgid_attr->gid.raw, sizeof(av->saddr));
	memcpy(&av->daddr, attr->grh.dgid.raw, sizeof(av->daddr));
	/* One packet cannot have addresses of two families. */
	if (av->v6 == ipv6_addr_v4mapped(&av->daddr))
		return -EINVAL;
	av->tclass = attr->grh.traffic_class;
	av->hop_limit = attr->grh.hop_limit;
	av->sgid_index = attr->grh.sgid_index;
	av->flow_label = attr->grh.flow_label & 0xfffff;
	ether_addr_copy(av->dmac, attr->roce.dmac);
	return 0;
}

void weft_av_to_attr(const struct weft_av *av, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	attr->ah_flags = IB_AH_GRH;
	attr->port_num = WEFT_PORT;
	attr->grh.traffic_class = av->tclass;
	attr->grh.hop_limit = av->hop_limit;
	attr->grh.sgid_index = av->sgid_index;
	attr->grh.flow_label = av->flow_label;
	memcpy(attr->grh.dgid.raw, &av->daddr, sizeof(attr->grh.dgid));
	ether_addr_copy(attr->roce.dmac, av->dmac);
}

int weft_ah_find(struct weft_dev *dev, struct ib_pd *pd, u32 num, struct weft_av *av)
{
	struct weft_ah_entry *entry;
	int err = -ENOENT;

	rcu_read_lock();
	entry = xa_load(&dev->ahs, num);
	if (entry && entry->pd == pd) {
		*av = entry->av;
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

void weft_ah_get_av(struct ib_ah *ibah, struct weft_av *av)
{
	rcu_read_lock();
	*av = rcu_dereference(weft_from_ibah(ibah)->entry)->av;
	rcu_read_unlock();
}

static struct weft_ah_entry *weft_ah_entry_alloc(struct ib_ah *ibah,
						 const struct rdma_ah_attr *attr,
						 gfp_t gfp)
{
	struct weft_ah_entry *entry = kzalloc(sizeof(*entry), gfp);
	int err;

	if (!entry)
		return ERR_PTR(-ENOMEM);
	entry->pd = ibah->pd;
	err = weft_av_init(weft_from_ibdev(ibah->device), &entry->av, attr);
	if (err) {
		kfree(entry);
		return ERR_PTR(err);
	}
	return entry;
}

/* Number a user's AH. Sleeps. */
static int weft_ah_number(struct weft_ah *ah, struct weft_ah_entry *entry, struct ib_udata *udata)
{
	struct weft_dev *dev = weft_from_ibdev(ah->ibah.device);
	struct rxe_create_ah_resp resp = {};
	int err;

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	err = xa_alloc_cyclic(&dev->ahs, &ah->num, entry, XA_LIMIT(1, WEFT_MAX_AH), &dev->ah_next,
			      GFP_KERNEL);
	if (err < 0)
		return err;
	resp.ah_num = ah->num;
	if (copy_to_user(udata->outbuf, &resp, sizeof(resp))) {
		xa_erase(&dev->ahs, ah->num);
		return -EFAULT;
	}
	return 0;
}

int weft_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	gfp_t gfp = attr->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL : GFP_ATOMIC;
	struct weft_ah *ah = weft_from_ibah(ibah);
	struct weft_ah_entry *entry;
	int err;

	entry = weft_ah_entry_alloc(ibah, attr->ah_attr, gfp);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	ah->num = 0;
	if (udata) {
		err = weft_ah_number(ah, entry, udata);
		if (err) {
			/* A WQE may have guessed the number while it was there. */
			kfree_rcu(entry, rcu);
			return err;
		}
	}
	RCU_INIT_POINTER(ah->entry, entry);
	return 0;
}

/* ib_core does not let two modifications, or one and the destruction, run at a time. */
int weft_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct weft_ah *ah = weft_from_ibah(ibah);
	struct weft_ah_entry *old = rcu_dereference_protected(ah->entry, true);
	struct weft_ah_entry *entry = weft_ah_entry_alloc(ibah, attr, GFP_ATOMIC);

	if (IS_ERR(entry))
		return PTR_ERR(entry);
	/* The place is there: this allocates nothing and cannot fail. */
	if (ah->num)
		xa_store(&weft_from_ibdev(ibah->device)->ahs, ah->num, entry, GFP_ATOMIC);
	rcu_assign_pointer(ah->entry, entry);
	kfree_rcu(old, rcu);
	return 0;
}

int weft_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct weft_av av;

	weft_ah_get_av(ibah, &av);
	weft_av_to_attr(&av, attr);
	return 0;
}

int weft_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct weft_ah *ah = weft_from_ibah(ibah);
	struct weft_ah_entry *entry = rcu_dereference_protected(ah->entry, true);

	if (ah->num)
		xa_erase(&weft_from_ibdev(ibah->device)->ahs, ah->num);
	kfree_rcu(entry, rcu);
	return 0;
}
