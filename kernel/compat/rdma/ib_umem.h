/* SPDX-License-Identifier: GPL-2.0 */
/* ib_umem_get_va() for kernels that call it ib_umem_get(). */
#ifndef WEFT_COMPAT_RDMA_IB_UMEM_H
#define WEFT_COMPAT_RDMA_IB_UMEM_H

#include_next <rdma/ib_umem.h>

#ifndef WEFT_HAVE_IB_UMEM_GET_VA
static inline struct ib_umem *ib_umem_get_va(struct ib_device *device, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(device, addr, size, access);
}
#endif

#endif /* WEFT_COMPAT_RDMA_IB_UMEM_H */
