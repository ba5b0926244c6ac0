/* SPDX-License-Identifier: GPL-2.0 */
/* The core's only view of its surroundings: fixed-width types, byte order, bit fields, memcpy. */
#ifndef WEFT_TYPES_H
#define WEFT_TYPES_H

#ifdef __KERNEL__

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#define BUILD_BUG_ON_SIZE(t, n) static_assert(sizeof(t) == (n), #t)

#else

#include <weft/host.h>

#endif /* __KERNEL__ */

#endif
