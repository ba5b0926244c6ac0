/* SPDX-License-Identifier: GPL-2.0 */
/* IP and UDP headers of an address vector. */
#ifndef WEFT_IP_H
#define WEFT_IP_H

#include <linux/udp.h>

#include "av.h"

/* Bytes of the IP header. */
unsigned int weft_ip_len(const struct weft_av *av);
/* @udp_len: bytes from the UDP header to the end of the ICRC. @id: IPv4 identification. */
void weft_ip_build(void *ip, const struct weft_av *av, u16 udp_len, u16 id);
void weft_udp_build(struct udphdr *udp, u16 src_port, u16 udp_len);

#endif
