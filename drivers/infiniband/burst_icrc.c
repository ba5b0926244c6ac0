// SPDX-License-Identifier: GPL-2.0
/*
 * ICRCs of a burst's packets: over the headers that they would have on a wire, payload and pad.
 *
 * The headers are built once and masked; from packet to packet only what differs is put in.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <weft/icrc.h>
#include <weft/opcode.h>

#include "burst.h"
#include "crc.h"
#include "ip.h"

struct weft_burst_head {
	u8 ones[WEFT_ICRC_ONES];
	/* IP header, UDP header, BTH and extended headers, all without gaps */
	u8 ip[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + WEFT_HDR_MAX];
	unsigned int ip_len;
};

static_assert(offsetof(struct weft_burst_head, ip) == WEFT_ICRC_ONES);

static void weft_burst_head_init(struct weft_burst_head *head, const struct weft_burst *burst)
{
	head->ip_len = weft_ip_len(&burst->av);
	memset(head->ones, 0xff, sizeof(head->ones));
	weft_ip_build(head->ip, &burst->av, 0, burst->ip_id);
	weft_udp_build((void *)head->ip + head->ip_len, burst->src_port, 0);
	weft_icrc_mask(head->ip, head->ip_len, burst->av.v6);
}

static void weft_burst_head_set(struct weft_burst_head *head, const struct weft_burst *burst,
				const struct weft_pkt *pkt)
{
	struct udphdr *udp = (void *)head->ip + head->ip_len;
	struct ipv6hdr *ip6 = (void *)head->ip;
	struct iphdr *ip = (void *)head->ip;
	u16 udp_len = sizeof(*udp) + weft_burst_packet_bytes(pkt->hdr_len, pkt->payload_len);

	if (burst->av.v6)
		ip6->payload_len = htons(udp_len);
	else
		ip->tot_len = htons(sizeof(*ip) + udp_len);
	udp->len = htons(udp_len);
	weft_pkt_build(udp + 1, pkt);
	weft_icrc_mask_bth(udp + 1);
}

/* CRC state behind the headers of packet @i, which is @pkt. */
static u32 weft_burst_head_crc(struct weft_burst_head *head, const struct weft_burst *burst, u32 i,
			       const struct weft_pkt *pkt, weft_crc32_fn crc)
{
	struct udphdr *udp = (void *)head->ip + head->ip_len;
	struct iphdr *ip = (void *)head->ip;
	struct weft_bth *bth = (void *)(udp + 1);

	if (i < 2 || i + 1 == burst->num)
		weft_burst_head_set(head, burst, pkt);
	else /* one middle packet is like the other */
		bth->psn = cpu_to_be32((pkt->ackreq ? WEFT_BTH_ACKREQ : 0) | pkt->psn);
	if (!burst->av.v6)
		ip->id = htons(burst->ip_id + i);
	return crc(~0, head->ones, sizeof(head->ones) + head->ip_len + sizeof(*udp) + pkt->hdr_len);
}

static __le32 weft_burst_icrc(struct weft_burst_head *head, const struct weft_burst *burst, u32 i,
			      const struct weft_pkt *pkt, weft_crc32_fn crc)
{
	u32 state = weft_burst_head_crc(head, burst, i, pkt, crc);
	u32 pad = weft_pad(pkt->payload_len);
	u32 offset = i * burst->mtu;
	u32 len = pkt->payload_len;
	const void *from;
	u32 got;

	for (; len; offset += got, len -= got) {
		from = weft_burst_chunk(burst, offset, len, &got);
		state = crc(state, from, got);
	}
	if (pad)
		state = crc(state, "\0\0", pad);
	return weft_icrc_finish(state);
}

/* The destination must be able to find named memory already. */
static void weft_burst_icrcs(const struct weft_burst *burst, __le32 *icrc)
{
	struct weft_pkt pkt = burst->pkt;
	struct weft_burst_head head;
	weft_crc32_fn crc;
	u32 i = 0;

	weft_burst_head_init(&head, burst);
	crc = weft_crc_begin(burst->bytes);
	for (;;) {
		icrc[i] = weft_burst_icrc(&head, burst, i, &pkt, crc);
		if (++i == burst->num)
			break;
		weft_burst_step(burst, i, &pkt);
	}
	weft_crc_end(crc);
}

void weft_burst_add_icrcs(struct weft_burst *burst)
{
	weft_burst_icrcs(burst, burst->icrc);
}

u32 weft_burst_bad_icrcs(const struct weft_burst *burst)
{
	__le32 icrc[WEFT_BURST_PACKETS];
	u32 bad = 0;
	u32 i;

	weft_burst_icrcs(burst, icrc);
	for (i = 0; i < burst->num; i++)
		if (burst->icrc[i] != icrc[i])
			bad |= BIT(i);
	return bad;
}
