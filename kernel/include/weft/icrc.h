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

/* The word as it stands in the packet. */
static inline __le32 weft_icrc_finish(u32 crc)
{
	return cpu_to_le32(~crc);
}

#endif
