// SPDX-License-Identifier: GPL-2.0
/* IP and UDP headers of an address vector. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <weft/bth.h>

#include "ip.h"

unsigned int weft_ip_len(const struct weft_av *av)
{
	return av->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static u8 weft_hop_limit(const struct weft_av *av)
{
	return av->hop_limit ? av->hop_limit : IPDEFTTL;
}

static void weft_ip_build_v4(struct iphdr *ip, const struct weft_av *av, u16 udp_len, u16 id)
{
	*ip = (struct iphdr){
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = av->tclass,
		.tot_len = htons(sizeof(*ip) + udp_len),
		.id = htons(id),
		.frag_off = htons(IP_DF),
		.ttl = weft_hop_limit(av),
		.protocol = IPPROTO_UDP,
		.saddr = av->saddr.s6_addr32[3],
		.daddr = av->daddr.s6_addr32[3],
	};
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static void weft_ip_build_v6(struct ipv6hdr *ip6, const struct weft_av *av, u16 udp_len)
{
	ip6_flow_hdr(ip6, av->tclass, htonl(av->flow_label) & IPV6_FLOWLABEL_MASK);
	ip6->payload_len = htons(udp_len);
	ip6->nexthdr = IPPROTO_UDP;
	ip6->hop_limit = weft_hop_limit(av);
	ip6->saddr = av->saddr;
	ip6->daddr = av->daddr;
}

void weft_ip_build(void *ip, const struct weft_av *av, u16 udp_len, u16 id)
{
	if (av->v6)
		weft_ip_build_v6(ip, av, udp_len);
	else
		weft_ip_build_v4(ip, av, udp_len, id);
}

void weft_udp_build(struct udphdr *udp, u16 src_port, u16 udp_len)
{
	udp->source = htons(src_port);
	udp->dest = htons(WEFT_UDP_PORT);
	udp->len = htons(udp_len);
	udp->check = 0;
}
