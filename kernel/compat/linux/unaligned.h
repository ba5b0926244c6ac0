/* SPDX-License-Identifier: GPL-2.0 */
/* <linux/unaligned.h> for kernels that keep it under asm/. */
#ifndef WEFT_COMPAT_LINUX_UNALIGNED_H
#define WEFT_COMPAT_LINUX_UNALIGNED_H

#ifdef WEFT_HAVE_LINUX_UNALIGNED_H
#include_next <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* WEFT_COMPAT_LINUX_UNALIGNED_H */
