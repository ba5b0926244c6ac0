// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts: their memory, their payload, and what their packets would be on a wire.
 *
 * Each CPU keeps a few for the next packets. Where a tool looks for uses after free it must see
 * each one freed, so there nothing is kept.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <weft/icrc.h>
#include <weft/psn.h>

#include "burst.h"
#include "crc.h"
#include "ip.h"
#include "qp.h"
#include "rx.h"

enum { WEFT_BURSTS_KEPT = IS_ENABLED(CONFIG_KASAN) ? 0 : 64 };

struct weft_burst_stock {
	struct weft_burst *first;
	unsigned int num;
};

static struct kmem_cache *weft_burst_cache;
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

struct weft_burst *weft_burst_alloc(struct weft_qp *qp, const struct weft_av *av,
				    const struct weft_pkt *pkt)
{
	struct weft_burst *burst = weft_burst_take();

	if (!burst)
		return NULL;
	burst->flow = qp->flow;
	burst->pkt = *pkt;
	burst->pkt.hdr_len = pkt->op->hdr_len;
	burst->av = *av;
	burst->src_port = qp->src_port;
	burst->num = 0;
	burst->len = 0;
	burst->num_parts = 0;
	burst->data = burst->inline_data;
	return burst;
}

void weft_burst_free(struct weft_burst *burst)
{
	if (!burst->num_parts && burst->data != burst->inline_data)
		kfree(burst->data);
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

void *weft_burst_room(struct weft_burst *burst, u32 len)
{
	burst->num_parts = 0;
	if (len > WEFT_BURST_INLINE) {
		void *data = kmalloc(len, GFP_ATOMIC | __GFP_NOWARN);

		if (!data)
			return NULL;
		burst->data = data;
	}
	return burst->data;
}

void weft_burst_size(struct weft_burst *burst, u32 num, u32 len)
{
	burst->num = num;
	burst->len = len;
	weft_tx_flow_take(burst->flow, num);
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

struct weft_burst_walk {
	u32 offset;
	u32 len;
	void (*piece)(struct weft_burst_walk *walk, const void *from, u32 len);
	void *to;
	u32 crc;
};

static void weft_burst_walk_parts(const struct weft_burst *burst, struct weft_burst_walk *walk)
{
	const struct weft_burst_part *part;
	const void *from;
	u32 here, got;

	for (part = burst->parts; walk->len; walk->offset += got, walk->len -= got) {
		while (walk->offset >= part->len)
			walk->offset -= part++->len;
		here = min(part->len - walk->offset, walk->len);
		from = weft_mr_chunk(part->mr, part->addr + walk->offset, here, &got);
		walk->piece(walk, from, got);
	}
}

static void weft_burst_walk(const struct weft_burst *burst, struct weft_burst_walk *walk)
{
	if (burst->num_parts)
		weft_burst_walk_parts(burst, walk);
	else
		walk->piece(walk, burst->data + walk->offset, walk->len);
}

static void weft_burst_copy_piece(struct weft_burst_walk *walk, const void *from, u32 len)
{
	/* A user may write a region onto itself. */
	if (unlikely(walk->to < from + len && from < walk->to + len))
		memmove(walk->to, from, len);
	else
		memcpy(walk->to, from, len);
	walk->to += len;
}

void weft_burst_read(const struct weft_burst *burst, u32 offset, void *to, u32 len)
{
	struct weft_burst_walk walk = {
		.offset = offset,
		.len = len,
		.piece = weft_burst_copy_piece,
		.to = to,
	};

	weft_burst_walk(burst, &walk);
}

/* --- packets --- */

void weft_burst_step(const struct weft_burst *burst, u32 i, struct weft_pkt *pkt)
{
	bool last = i + 1 == burst->num;

	pkt->op = last ? burst->last : burst->middle;
	pkt->opcode = last ? burst->last_opcode : burst->middle_opcode;
	pkt->hdr_len = pkt->op->hdr_len;
	pkt->payload_len = last ? burst->len - i * burst->mtu : burst->mtu;
	pkt->psn = weft_psn_add(pkt->psn, 1);
	pkt->ackreq = burst->ackreq & BIT(i);
	pkt->solicited = last && burst->last_solicited;
}

static u32 weft_burst_packet_bytes(u32 hdr_len, u32 payload_len)
{
	return hdr_len + payload_len + weft_pad(payload_len) + WEFT_ICRC_LEN;
}

static u32 weft_burst_all_bytes(const struct weft_burst *burst)
{
	u32 first = weft_burst_packet_bytes(burst->pkt.op->hdr_len, burst->pkt.payload_len);

	if (burst->num == 1)
		return first;
	return first +
	       (burst->num - 2) * weft_burst_packet_bytes(burst->middle->hdr_len, burst->mtu) +
	       weft_burst_packet_bytes(burst->last->hdr_len,
				       burst->len - (burst->num - 1) * burst->mtu);
}

static void weft_burst_crc_piece(struct weft_burst_walk *walk, const void *from, u32 len)
{
	walk->crc = weft_crc32(walk->crc, from, len);
}

/* ICRC of packet @i, which is @pkt: over the headers that it would have, its payload and pad. */
static __le32 weft_burst_icrc(const struct weft_burst *burst, u32 i, const struct weft_pkt *pkt)
{
	u8 head[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + WEFT_HDR_MAX];
	unsigned int ip_len = weft_ip_len(&burst->av);
	u16 udp_len = sizeof(struct udphdr) +
		      weft_burst_packet_bytes(pkt->op->hdr_len, pkt->payload_len);
	struct weft_burst_walk walk = {
		.offset = i * burst->mtu,
		.len = pkt->payload_len,
		.piece = weft_burst_crc_piece,
	};

	weft_ip_build(head, &burst->av, udp_len, burst->ip_id + i);
	weft_udp_build((void *)head + ip_len, burst->src_port, udp_len);
	weft_pkt_build(head + ip_len + sizeof(struct udphdr), pkt);
	walk.crc = weft_ip_icrc(head, ip_len, burst->av.v6, pkt->op->hdr_len);
	if (walk.len)
		weft_burst_walk(burst, &walk);
	walk.crc = weft_crc32(walk.crc, "\0\0", weft_pad(pkt->payload_len));
	return weft_icrc_finish(walk.crc);
}

bool weft_burst_icrc_ok(const struct weft_burst *burst, u32 i, const struct weft_pkt *pkt)
{
	return burst->icrc[i] == weft_burst_icrc(burst, i, pkt);
}

static void weft_burst_add_icrc(struct weft_burst *burst)
{
	struct weft_pkt pkt = burst->pkt;
	u32 i;

	burst->icrc[0] = weft_burst_icrc(burst, 0, &pkt);
	for (i = 1; i < burst->num; i++) {
		weft_burst_step(burst, i, &pkt);
		burst->icrc[i] = weft_burst_icrc(burst, i, &pkt);
	}
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
		weft_burst_add_icrc(burst);
	else
		weft_count_add(dev, tx_icrc_offloaded, num);
	weft_count_add(dev, sent_pkts, num);
	weft_count_add(dev, sent_bytes, burst->bytes);
	weft_count_add(dev, tx_shortcut_pkts, num);
	weft_rx_enqueue_burst(to, burst);
}

/* --- module --- */

int weft_burst_init(void)
{
	weft_burst_cache = KMEM_CACHE(weft_burst, SLAB_HWCACHE_ALIGN);
	return weft_burst_cache ? 0 : -ENOMEM;
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
}
