/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ib_alloc_device_with_net() for kernels whose ib_devices are all born in init_net; the flag of
 * ATOMIC_WRITE, which is an ABI value, for kernels that have no device with it.
 */
#ifndef WEFT_COMPAT_RDMA_IB_VERBS_H
#define WEFT_COMPAT_RDMA_IB_VERBS_H

#include_next <rdma/ib_verbs.h>

#ifndef WEFT_HAVE_IB_ALLOC_DEVICE_NET
#define ib_alloc_device_with_net(drv_struct, member, net)	\
	((void)(net), ib_alloc_device(drv_struct, member))
#endif

#ifndef WEFT_HAVE_IB_DEVICE_ATOMIC_WRITE
#define IB_DEVICE_ATOMIC_WRITE BIT_ULL(40)
#endif

#endif /* WEFT_COMPAT_RDMA_IB_VERBS_H */
