/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bursts: packets that stay on this host, as one object.
 *
 * A burst stands for one packet, or for several of one message that follow each other, and is what
 * the requester and the responder hand to the receive queue of the peer's link. It carries what the
 * packets' headers say in decoded form, and says where the payload is: copied into the burst, or
 * still in the sender's memory region, from where it is copied once, at its destination.
 *
 * Memory that is named and not copied is looked up again at the destination, under RCU: a region
 * or a sending QP that has gone meanwhile makes the packets lost, as a wire would. Only regions
 * whose pages the kernel has pinned for a user are named; whatever a kernel user's key reaches is
 * copied.
 *
 * The ICRC is left out, unless the link's `icrc always` has it computed and checked packet by
 * packet, over the same bytes as on a wire.
 */
#ifndef WEFT_BURST_H
#define WEFT_BURST_H

#include <weft/bth.h>
#include <weft/opcode.h>
#include <weft/psn.h>

#include "av.h"
#include "mr.h"
#include "tx.h"

enum {
	WEFT_BURST_PACKETS = 32,  /* at most; bits of ackreq */
	WEFT_BURST_PARTS = 4,     /* pieces of memory regions */
	WEFT_BURST_INLINE = 256,  /* bytes that need no memory of their own */
	WEFT_BURST_COPIED = 1 << 16, /* most bytes of a copy; a multiple of all path MTUs */
};

/* A piece of a memory region. */
struct weft_burst_part {
	struct weft_mr *mr; /* valid while mr_generation is the device's */
	u64 addr;
	u32 key;
	u32 len;
};

struct weft_burst {
	struct weft_burst *next;
	struct weft_tx_flow *flow;  /* counts the packets in flight, from weft_burst_size() on */
	struct weft_pkt pkt;        /* the first packet */
	const struct weft_opcode_info *middle; /* of those between the first and the last */
	const struct weft_opcode_info *last;
	u8 middle_opcode;
	u8 last_opcode;
	bool last_solicited;
	u8 num;                     /* packets */
	u32 ackreq;                 /* bit i: packet i asks for an acknowledgment */
	u32 mtu;                    /* payload bytes of all but the last */
	u32 len;                    /* payload bytes of all */
	u32 bytes;                  /* of all, from BTH to ICRC as a wire would have them */
	struct weft_av av;          /* the sender's */
	u16 src_port;
	u16 ip_id;                  /* of the first */
	bool has_icrc;
	bool has_long_data;         /* data is of the cache for that */
	u8 num_parts;               /* 0: the payload is at data */
	int access;                 /* that the parts must grant */
	u32 mr_generation;
	u32 epoch;                  /* of the flow, when the parts were named */
	void *data;                 /* inline_data, or allocated */
	__le32 icrc[WEFT_BURST_PACKETS]; /* if has_icrc */
	union {
		struct weft_burst_part parts[WEFT_BURST_PARTS];
		u8 inline_data[WEFT_BURST_INLINE];
	};
};

/* What each of our packets says; the fields that its opcode adds are still to be set. */
static inline void weft_pkt_init(struct weft_pkt *pkt, u8 opcode, u32 qpn, u32 psn)
{
	pkt->op = weft_opcode_info(opcode);
	pkt->opcode = opcode;
	pkt->solicited = false;
	pkt->migreq = true;
	pkt->ackreq = false;
	pkt->fecn = false;
	pkt->becn = false;
	pkt->resv6 = 0;
	pkt->pkey = WEFT_PKEY_DEFAULT;
	pkt->qpn = qpn;
	pkt->psn = psn;
	pkt->hdr_len = pkt->op->hdr_len;
	pkt->payload_len = 0;
}

/* First in, first out; whose it is protects it. */
struct weft_burst_list {
	struct weft_burst *first;
	struct weft_burst *last; /* if there is a first */
};

static inline void weft_burst_list_add(struct weft_burst_list *list, struct weft_burst *burst)
{
	burst->next = NULL;
	if (list->first)
		list->last->next = burst;
	else
		list->first = burst;
	list->last = burst;
}

static inline struct weft_burst *weft_burst_list_pop(struct weft_burst_list *list)
{
	struct weft_burst *burst = list->first;

	if (burst)
		list->first = burst->next;
	return burst;
}

/* All of @from behind @to. */
static inline void weft_burst_list_splice(struct weft_burst_list *to, struct weft_burst_list *from)
{
	if (!from->first)
		return;
	if (to->first)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	from->first = NULL;
}

/* A burst without first packet, payload or size yet. NULL: no memory. BH off. */
struct weft_burst *weft_burst_alloc(struct weft_qp *qp, const struct weft_av *av);
void weft_burst_free(struct weft_burst *burst);
/*
 * Name up to @len bytes that begin @offset bytes into the list as payload. Returns how many have a
 * place, 0: the first byte cannot be named, copy it. @keys: the sender's, under RCU.
 */
u32 weft_burst_name_sge(struct weft_burst *burst, struct weft_keys *keys, const struct ib_sge *sge,
			int num_sge, u32 offset, u32 len);
/* The same of a region that a peer may read. False: it cannot be named. */
bool weft_burst_name_mr(struct weft_burst *burst, struct weft_keys *keys, struct weft_mr *mr,
			u64 addr, u32 len);
/* weft_burst_room() of more than WEFT_BURST_INLINE bytes. */
void *weft_burst_room_long(struct weft_burst *burst, u32 len);

/* Memory for @len bytes of copied payload, up to WEFT_BURST_COPIED. NULL: there is none. */
static inline void *weft_burst_room(struct weft_burst *burst, u32 len)
{
	burst->num_parts = 0;
	return len <= WEFT_BURST_INLINE ? burst->inline_data : weft_burst_room_long(burst, len);
}

/* Make it @num packets of @len bytes in all, once. @num > 1: middle, last and ackreq are set. */
static inline void weft_burst_size(struct weft_burst *burst, u32 num, u32 len)
{
	burst->num = num;
	burst->len = len;
	weft_tx_flow_take(burst->flow, num);
}

/* Hand it to the link that receives it; counted as sent. Consumes it. */
void weft_burst_send(struct weft_qp *qp, struct weft_dev *to, struct weft_burst *burst);

/* --- at the destination, under RCU --- */
/* Find the named memory. False: some of it is gone, the packets are lost. */
bool weft_burst_open_parts(struct weft_burst *burst);
static inline bool weft_burst_open(struct weft_burst *burst)
{
	return !burst->num_parts || weft_burst_open_parts(burst);
}

/* What is new in the second packet or the last. */
void weft_burst_step_to(const struct weft_burst *burst, u32 i, struct weft_pkt *pkt);

/* From packet @i - 1 to packet @i, in place. */
static inline void weft_burst_step(const struct weft_burst *burst, u32 i, struct weft_pkt *pkt)
{
	pkt->psn = weft_psn_add(pkt->psn, 1);
	pkt->ackreq = burst->ackreq & BIT(i);
	/* One middle packet is like another. */
	if (i == 1 || i + 1 == burst->num)
		weft_burst_step_to(burst, i, pkt);
}

/* Copy payload. */
void weft_burst_read(const struct weft_burst *burst, u32 offset, void *to, u32 len);
/* weft_burst_chunk() of named payload. */
const void *weft_burst_part_chunk(const struct weft_burst *burst, u32 offset, u32 want, u32 *got);

/*
 * Where payload is that begins at @offset, and in @got how many bytes (≤ @want, ≥ 1) are contiguous
 * there. In bounds by contract.
 */
static inline const void *weft_burst_chunk(const struct weft_burst *burst, u32 offset, u32 want,
					   u32 *got)
{
	if (burst->num_parts)
		return weft_burst_part_chunk(burst, offset, want, got);
	*got = want;
	return burst->data + offset;
}

/* The IP header of the first packet: 40 or 20 bytes. Returns how many. */
unsigned int weft_burst_ip_header(const struct weft_burst *burst, void *to);

/* Bytes of a packet from BTH to ICRC. */
static inline u32 weft_burst_packet_bytes(u32 hdr_len, u32 payload_len)
{
	return hdr_len + payload_len + weft_pad(payload_len) + WEFT_ICRC_LEN;
}

/* --- burst_icrc.c; named memory can be reached, and bytes is set --- */
void weft_burst_add_icrcs(struct weft_burst *burst);
/* Bit i: the ICRC of packet i is wrong. */
u32 weft_burst_bad_icrcs(const struct weft_burst *burst);

int weft_burst_init(void);
void weft_burst_uninit(void);

#endif
