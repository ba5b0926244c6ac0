/* SPDX-License-Identifier: GPL-2.0 */
/* What types.h takes from the kernel's headers, for the host library (C11 or C++). */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#include <linux/types.h> /* __be16 and friends, __bitwise */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WEFT_BE(bits, x) __builtin_bswap##bits((u##bits)(x))
#define WEFT_LE(bits, x) ((u##bits)(x))
#else
#define WEFT_BE(bits, x) ((u##bits)(x))
#define WEFT_LE(bits, x) __builtin_bswap##bits((u##bits)(x))
#endif
#define cpu_to_be16(x) ((__be16)WEFT_BE(16, x))
#define cpu_to_be32(x) ((__be32)WEFT_BE(32, x))
#define cpu_to_be64(x) ((__be64)WEFT_BE(64, x))
#define cpu_to_le32(x) ((__le32)WEFT_LE(32, x))
#define be16_to_cpu(x) WEFT_BE(16, x)
#define be32_to_cpu(x) WEFT_BE(32, x)
#define be64_to_cpu(x) WEFT_BE(64, x)
#define le32_to_cpu(x) WEFT_LE(32, x)

#define BIT(n) (1UL << (n))
#define GENMASK(h, l) ((~0UL << (l)) & (~0UL >> (63 - (h))))
#define FIELD_GET(mask, reg) (((reg) & (mask)) >> __builtin_ctzl(mask))
#define FIELD_PREP(mask, val) (((u64)(val) << __builtin_ctzl(mask)) & (mask))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#ifndef __cplusplus /* where they would hide those of std */
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(t, a, b) min((t)(a), (t)(b))
#define max_t(t, a, b) max((t)(a), (t)(b))
#endif
#define EXPORT_SYMBOL_GPL(symbol) BUILD_BUG_ON_SIZE(u8, 1) /* one library, one name space */
#define WEFT_ATTRIBUTE(x) __attribute__((x))
#define __packed WEFT_ATTRIBUTE(packed)
#define BUILD_BUG_ON_SIZE(t, n) static_assert(sizeof(t) == (n), #t)

#endif
