/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Invariant CRC of RoCEv2 (IBTA annex 17): CRC-32 over 8 bytes of ones, the IP header, the UDP
 * header and BTH with the fields that routers and NICs may change taken as ones, then everything up
 * to the end of the pad. Masked: IPv4 TOS, TTL, checksum; IPv6 traffic class, flow label, hop
 * limit; UDP checksum; BTH resv8a. The Ethernet header and VLAN tag are not part of it.
 *
 * The CRC itself is a backend, so that each home can use its fastest.
 */
#ifndef WEFT_ICRC_H
#define WEFT_ICRC_H

#include <weft/types.h>

#define WEFT_ICRC_ONES 8 /* bytes; they stand for the LRH, which RoCEv2 has not */
#define WEFT_ICRC_BTH_RESV8A 4

/* Reflected CRC-32 (polynomial 0xedb88320) without final inversion: state in, state out. */
typedef u32 (*weft_crc32_fn)(u32 crc, const void *data, size_t len);

/*
 * State after the masked headers. @ip: the IPv4 header of @ip_len bytes (options included) or the
 * IPv6 header of 40; @udp: 8 bytes; @bth: 12 bytes. Continue with @crc over the extended headers,
 * payload and pad, and end with weft_icrc_finish().
 */
u32 weft_icrc_v4(weft_crc32_fn crc, const void *ip, size_t ip_len, const void *udp,
		 const void *bth);
u32 weft_icrc_v6(weft_crc32_fn crc, const void *ip6, const void *udp, const void *bth);

/*
 * For who builds headers only to compute the CRC: @ip is an IP header of @ip_len bytes, UDP and BTH
 * behind it; they are masked in place. The CRC, from ~0 on, begins WEFT_ICRC_ONES bytes of ones
 * before them.
 */
void weft_icrc_mask(void *ip, size_t ip_len, bool v6);

/* The same of a BTH alone. */
static inline void weft_icrc_mask_bth(void *bth)
{
	((u8 *)bth)[WEFT_ICRC_BTH_RESV8A] = 0xff;
}

/* The word as it stands in the packet. */
static inline __le32 weft_icrc_finish(u32 crc)
{
	return cpu_to_le32(~crc);
}

#endif
