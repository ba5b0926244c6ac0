// SPDX-License-Identifier: GPL-2.0
/* Invariant CRC: the masked headers, gathered so that the CRC backend is called once for them. */
#include <weft/bth.h>
#include <weft/icrc.h>

#define ONES_LEN 8 /* stands for the LRH, which RoCEv2 has not */
#define IPV4_MAX 60
#define IPV6_LEN 40
#define UDP_LEN 8
#define BTH_LEN sizeof(struct weft_bth)

/* Offsets in the headers. */
#define IPV4_TOS 1
#define IPV4_TTL 8
#define IPV4_CHECK 10
#define IPV6_HOP_LIMIT 7
#define UDP_CHECK 6
#define BTH_RESV8A 4

static u32 masked_crc(weft_crc32_fn crc, u8 *buf, size_t ip_len, const void *udp, const void *bth)
{
	u8 *p = buf;

	memset(p, 0xff, ONES_LEN);
	p += ONES_LEN + ip_len;
	memcpy(p, udp, UDP_LEN);
	memset(p + UDP_CHECK, 0xff, 2);
	p += UDP_LEN;
	memcpy(p, bth, BTH_LEN);
	p[BTH_RESV8A] = 0xff;
	p += BTH_LEN;
	return crc(~0u, buf, p - buf);
}

u32 weft_icrc_v4(weft_crc32_fn crc, const void *ip, size_t ip_len, const void *udp,
		 const void *bth)
{
	u8 buf[ONES_LEN + IPV4_MAX + UDP_LEN + BTH_LEN];
	u8 *p = buf + ONES_LEN;

	ip_len = min_t(size_t, ip_len, IPV4_MAX);
	memcpy(p, ip, ip_len);
	p[IPV4_TOS] = 0xff;
	p[IPV4_TTL] = 0xff;
	memset(p + IPV4_CHECK, 0xff, 2);
	return masked_crc(crc, buf, ip_len, udp, bth);
}
EXPORT_SYMBOL_GPL(weft_icrc_v4);

u32 weft_icrc_v6(weft_crc32_fn crc, const void *ip6, const void *udp, const void *bth)
{
	u8 buf[ONES_LEN + IPV6_LEN + UDP_LEN + BTH_LEN];
	u8 *p = buf + ONES_LEN;

	memcpy(p, ip6, IPV6_LEN);
	p[0] |= 0x0f; /* the version stays; traffic class and flow label are behind it */
	memset(p + 1, 0xff, 3);
	p[IPV6_HOP_LIMIT] = 0xff;
	return masked_crc(crc, buf, IPV6_LEN, udp, bth);
}
EXPORT_SYMBOL_GPL(weft_icrc_v6);
