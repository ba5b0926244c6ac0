/* SPDX-License-Identifier: GPL-2.0 */
/* <net/gso.h> for kernels that have __skb_gso_segment() in <linux/netdevice.h>. */
#ifndef WEFT_COMPAT_NET_GSO_H
#define WEFT_COMPAT_NET_GSO_H

#ifdef WEFT_HAVE_NET_GSO_H
#include_next <net/gso.h>
#else
#include <linux/netdevice.h>
#endif

#endif /* WEFT_COMPAT_NET_GSO_H */
