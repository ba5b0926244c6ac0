// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts: their memory, their payload, and what their packets would be on a wire.
 *
 * Each CPU keeps a few for the next packets. Where a tool looks for uses after free it must see
 * each one freed, so there nothing is kept.
 */
#include <linux/slab.h>

#include "burst.h"
#include "ip.h"
#include "qp.h"
#include "rx.h"
#include "vec.h"

enum { WEFT_BURSTS_KEPT = IS_ENABLED(CONFIG_KASAN) ? 0 : 64 };

struct weft_burst_stock {
	struct weft_burst *first;
	unsigned int num;
};

static struct kmem_cache *weft_burst_cache;
static struct kmem_cache *weft_burst_data_cache; /* WEFT_BURST_COPIED bytes each */
static DEFINE_PER_CPU(struct weft_burst_stock, weft_burst_stock);

/* --- memory; BH off --- */

static struct weft_burst *weft_burst_take(void)
{
	struct weft_burst_stock *stock = this_cpu_ptr(&weft_burst_stock);
	struct weft_burst *burst;

	if (!stock->num)
		return kmem_cache_alloc(weft_burst_cache, GFP_ATOMIC | __GFP_NOWARN);
	burst = stock->first;
	stock->first = burst->next;
	stock->num--;
	return burst;
}

static void weft_burst_keep(struct weft_burst *burst)
{
	struct weft_burst_stock *stock = this_cpu_ptr(&weft_burst_stock);

	if (stock->num == WEFT_BURSTS_KEPT) {
		kmem_cache_free(weft_burst_cache, burst);
		return;
	}
	burst->next = stock->first;
	stock->first = burst;
	stock->num++;
}

struct weft_burst *weft_burst_alloc(struct weft_qp *qp, const struct weft_av *av)
{
	struct weft_burst *burst = weft_burst_take();

	if (unlikely(!burst))
		return NULL;
	burst->flow = qp->flow;
	burst->av = *av;
	burst->src_port = qp->src_port;
	burst->num = 0;
	burst->len = 0;
	burst->num_parts = 0;
	burst->data = burst->inline_data;
	return burst;
}

static void weft_burst_free_data(struct weft_burst *burst)
{
	if (burst->has_long_data)
		kmem_cache_free(weft_burst_data_cache, burst->data);
	else
		kfree(burst->data);
}

void weft_burst_free(struct weft_burst *burst)
{
	if (!burst->num_parts && burst->data != burst->inline_data)
		weft_burst_free_data(burst);
	if (burst->num)
		weft_tx_flow_give(burst->flow, burst->num);
	weft_burst_keep(burst);
}

/* --- payload --- */

static void weft_burst_add_part(struct weft_burst *burst, struct weft_keys *keys,
				struct weft_mr *mr, u64 addr, u32 len)
{
	if (!burst->num_parts) {
		burst->mr_generation = keys->generation;
		burst->epoch = READ_ONCE(burst->flow->epoch);
	}
	burst->parts[burst->num_parts++] = (struct weft_burst_part){
		.mr = mr,
		.addr = addr,
		.key = mr->key,
		.len = len,
	};
}

u32 weft_burst_name_sge(struct weft_burst *burst, struct weft_keys *keys, const struct ib_sge *sge,
			int num_sge, u32 offset, u32 len)
{
	struct weft_mr *mr;
	u32 here, done = 0;
	u64 addr;

	burst->access = 0;
	for (; done < len && num_sge && burst->num_parts < WEFT_BURST_PARTS; sge++, num_sge--) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		addr = sge->addr + offset;
		here = min(sge->length - offset, len - done);
		offset = 0;
		mr = weft_lkey_find(keys, sge->lkey, addr, here, 0);
		if (!mr || mr->kind != WEFT_MR_USER)
			break; /* the copy says what is wrong */
		weft_burst_add_part(burst, keys, mr, addr, here);
		done += here;
	}
	return done;
}

bool weft_burst_name_mr(struct weft_burst *burst, struct weft_keys *keys, struct weft_mr *mr,
			u64 addr, u32 len)
{
	if (mr->kind != WEFT_MR_USER)
		return false;
	burst->access = IB_ACCESS_REMOTE_READ;
	weft_burst_add_part(burst, keys, mr, addr, len);
	return true;
}

void *weft_burst_room_long(struct weft_burst *burst, u32 len)
{
	void *data;

	burst->has_long_data = len > PAGE_SIZE;
	/* Much at once is a favour: it shall not take the last memory from others. */
	if (burst->has_long_data)
		data = kmem_cache_alloc(weft_burst_data_cache, GFP_NOWAIT | __GFP_NOWARN);
	else
		data = kmalloc(len, GFP_ATOMIC | __GFP_NOWARN);
	if (data)
		burst->data = data;
	return data;
}

/*
 * The sending QP keeps device and PD; with it they may be gone. The memory may be its user's again.
 * Regions that were named may have changed since; they are looked up by their keys then.
 */
bool weft_burst_open_parts(struct weft_burst *burst)
{
	const struct weft_qp *qp = rcu_dereference(burst->flow->qp);
	struct weft_burst_part *part;
	struct weft_keys keys = {};

	if (!qp || burst->epoch != READ_ONCE(burst->flow->epoch))
		return false;
	keys.dev = qp->dev;
	keys.pd = qp->ibqp.pd;
	weft_keys_refresh(&keys);
	if (likely(keys.generation == burst->mr_generation))
		return true;
	for (part = burst->parts; part < burst->parts + burst->num_parts; part++) {
		part->mr = weft_lkey_find(&keys, part->key, part->addr, part->len, burst->access);
		if (!part->mr || part->mr->kind != WEFT_MR_USER)
			return false;
	}
	return true;
}

const void *weft_burst_part_chunk(const struct weft_burst *burst, u32 offset, u32 want, u32 *got)
{
	const struct weft_burst_part *part = burst->parts;

	while (offset >= part->len)
		offset -= part++->len;
	return weft_mr_chunk(part->mr, part->addr + offset, min(part->len - offset, want), got);
}

void weft_burst_read(const struct weft_burst *burst, u32 offset, void *to, u32 len)
{
	const void *from;
	u32 got;

	for (; len; offset += got, to += got, len -= got) {
		from = weft_burst_chunk(burst, offset, len, &got);
		/* A user may write a region onto itself. */
		if (unlikely(to < from + got && from < to + got))
			memmove(to, from, got);
		else
			weft_vec_copy(to, from, got);
	}
}

/* --- packets --- */

void weft_burst_step_to(const struct weft_burst *burst, u32 i, struct weft_pkt *pkt)
{
	bool last = i + 1 == burst->num;

	pkt->op = last ? burst->last : burst->middle;
	pkt->opcode = last ? burst->last_opcode : burst->middle_opcode;
	pkt->hdr_len = pkt->op->hdr_len;
	pkt->payload_len = last ? burst->len - i * burst->mtu : burst->mtu;
	pkt->solicited = last && burst->last_solicited;
}

static u32 weft_burst_all_bytes(const struct weft_burst *burst)
{
	u32 first = weft_burst_packet_bytes(burst->pkt.hdr_len, burst->pkt.payload_len);

	if (burst->num == 1)
		return first;
	return first +
	       (burst->num - 2) * weft_burst_packet_bytes(burst->middle->hdr_len, burst->mtu) +
	       weft_burst_packet_bytes(burst->last->hdr_len,
				       burst->len - (burst->num - 1) * burst->mtu);
}

unsigned int weft_burst_ip_header(const struct weft_burst *burst, void *to)
{
	weft_ip_build(to, &burst->av, sizeof(struct udphdr) + burst->bytes,
		      burst->ip_id);
	return weft_ip_len(&burst->av);
}

void weft_burst_send(struct weft_qp *qp, struct weft_dev *to, struct weft_burst *burst)
{
	struct weft_dev *dev = qp->dev;
	u32 num = burst->num;

	burst->bytes = weft_burst_all_bytes(burst);
	burst->ip_id = weft_tx_flow_ids(burst->flow, num);
	burst->has_icrc = READ_ONCE(dev->cfg.icrc_always);
	if (burst->has_icrc)
		weft_burst_add_icrcs(burst);
	else
		weft_count_add(dev, tx_icrc_offloaded, num);
	weft_count_add(dev, sent_pkts, num);
	weft_count_add(dev, sent_bytes, burst->bytes);
	weft_count_add(dev, tx_shortcut_pkts, num);
	weft_rx_enqueue_burst(to, burst);
}

/* --- module --- */

/* Memory that has a constructor is not cleared each time it is taken. */
static void weft_burst_data_init(void *data)
{
}

int weft_burst_init(void)
{
	weft_burst_cache = KMEM_CACHE(weft_burst, SLAB_HWCACHE_ALIGN);
	weft_burst_data_cache = kmem_cache_create("weft_burst_data", WEFT_BURST_COPIED, 0, 0,
						  weft_burst_data_init);
	if (weft_burst_cache && weft_burst_data_cache)
		return 0;
	kmem_cache_destroy(weft_burst_cache);
	kmem_cache_destroy(weft_burst_data_cache);
	return -ENOMEM;
}

/* No device is left, so nobody takes or keeps any more. */
void weft_burst_uninit(void)
{
	struct weft_burst_stock *stock;
	int cpu;

	for_each_possible_cpu(cpu) {
		stock = per_cpu_ptr(&weft_burst_stock, cpu);
		for (; stock->num; stock->num--) {
			struct weft_burst *burst = stock->first;

			stock->first = burst->next;
			kmem_cache_free(weft_burst_cache, burst);
		}
	}
	kmem_cache_destroy(weft_burst_cache);
	kmem_cache_destroy(weft_burst_data_cache);
}
