// SPDX-License-Identifier: GPL-2.0
/* Invariant CRC: headers, masked and gathered so that the CRC backend is called once for them. */
#include <weft/bth.h>
#include <weft/icrc.h>

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

static void mask_v4(u8 *ip)
{
	ip[IPV4_TOS] = 0xff;
	ip[IPV4_TTL] = 0xff;
	memset(ip + IPV4_CHECK, 0xff, 2);
}

static void mask_v6(u8 *ip6)
{
	ip6[0] |= 0x0f; /* the version stays; traffic class and flow label are behind it */
	memset(ip6 + 1, 0xff, 3);
	ip6[IPV6_HOP_LIMIT] = 0xff;
}

void weft_icrc_mask(void *ip, size_t ip_len, bool v6)
{
	u8 *p = ip;

	if (v6)
		mask_v6(p);
	else
		mask_v4(p);
	p += ip_len;
	memset(p + UDP_CHECK, 0xff, 2);
	weft_icrc_mask_bth(p + UDP_LEN);
}
EXPORT_SYMBOL_GPL(weft_icrc_mask);

static u32 masked_crc(weft_crc32_fn crc, const void *ip, size_t ip_len, bool v6, const void *udp,
		      const void *bth)
{
	u8 buf[WEFT_ICRC_ONES + IPV4_MAX + UDP_LEN + BTH_LEN];
	u8 *p = buf + WEFT_ICRC_ONES;

	memset(buf, 0xff, WEFT_ICRC_ONES);
	memcpy(p, ip, ip_len);
	memcpy(p + ip_len, udp, UDP_LEN);
	memcpy(p + ip_len + UDP_LEN, bth, BTH_LEN);
	weft_icrc_mask(p, ip_len, v6);
	return crc(~0u, buf, WEFT_ICRC_ONES + ip_len + UDP_LEN + BTH_LEN);
}

u32 weft_icrc_v4(weft_crc32_fn crc, const void *ip, size_t ip_len, const void *udp,
		 const void *bth)
{
	return masked_crc(crc, ip, min_t(size_t, ip_len, IPV4_MAX), false, udp, bth);
}
EXPORT_SYMBOL_GPL(weft_icrc_v4);

u32 weft_icrc_v6(weft_crc32_fn crc, const void *ip6, const void *udp, const void *bth)
{
	return masked_crc(crc, ip6, IPV6_LEN, true, udp, bth);
}
EXPORT_SYMBOL_GPL(weft_icrc_v6);
