/* SPDX-License-Identifier: GPL-2.0 */
/* vm_flags_set() for kernels where a driver writes vm_flags itself. */
#ifndef WEFT_COMPAT_LINUX_MM_H
#define WEFT_COMPAT_LINUX_MM_H

#include_next <linux/mm.h>

#ifndef WEFT_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#endif /* WEFT_COMPAT_LINUX_MM_H */
