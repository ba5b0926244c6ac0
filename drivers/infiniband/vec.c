// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 and copies by the vector registers of x86-64.
 *
 * The CRC of a text T of 128-bit blocks is T(x) · x^32 mod P(x). A block A·x^64 + B that stands D
 * bits before another one may be added to that one as A · (x^(64+D) mod P) + B · (x^D mod P): two
 * carry-less multiplications, and the text is a block shorter. Eight accumulators take turns, so
 * that the multiplier's latency does not matter, then are folded into one, which is reduced by the
 * quotient that a multiplication with x^95 / P gives (Barrett).
 *
 * CRC-32 is bit-reflected: bit i of a 64-bit half is the coefficient of x^(63-i), and the product
 * of two halves comes out one place too low, that is times x; hence the odd powers in the
 * constants.
 *
 * Blocks of zeros in front change nothing. So the first block is filled up with zeros in front, and
 * what follows is a multiple of 16 bytes.
 *
 * The compiler uses none of these registers in the kernel; they keep their content from one asm
 * statement to the next.
 */
#ifdef CONFIG_X86_64
#include <linux/crc32.h>
#include <linux/crc32poly.h>
#include <linux/kasan-checks.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

#include "vec.h"

enum {
	WEFT_VEC_BLOCK = 16,
	WEFT_VEC_CRC_MIN = WEFT_VEC_BLOCK, /* shorter texts are left to crc32_le() */
	WEFT_VEC_LANES = 8,
	WEFT_VEC_ROUND = WEFT_VEC_LANES * WEFT_VEC_BLOCK,
	WEFT_VEC_COPY_ROUND = 256,
};

static bool weft_vec_usable __ro_after_init;
static bool weft_vec_copies __ro_after_init;

/* Pairs for the low and the high half. */
static struct weft_vec_constants {
	u64 fold_round[2]; /* by WEFT_VEC_ROUND bytes */
	u64 fold_block[2]; /* by one block */
	u64 barrett[2];    /* x^95 / P, and P without its x^32 */
	u64 last;          /* the low half by 96 bits */
} weft_vec_k __aligned(16) __ro_after_init;

/* At n: moves n bytes of a block to its end, zeros before them. */
static const u8 weft_vec_shift[2 * WEFT_VEC_BLOCK] __aligned(16) = {
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,	  2,	3,    4,    5,
	6,    7,    8,	  9,	10,   11,   12,	  13,	14,   15,
};

bool weft_vec_begin(void)
{
	if (!weft_vec_usable || !irq_fpu_usable())
		return false;
	kernel_fpu_begin();
	return true;
}

void weft_vec_end(void)
{
	kernel_fpu_end();
}

/* --- CRC-32 --- */

/* xmm9 is the constant, xmm8 scratch. Lane @lane and the block @next behind it into the lane. */
#define WEFT_FOLD(lane, next)                                          \
	"vpclmulqdq $0x00, %%xmm9, %%xmm" #lane ", %%xmm8\n\t"         \
	"vpclmulqdq $0x11, %%xmm9, %%xmm" #lane ", %%xmm" #lane "\n\t" \
	"vpxor " next ", %%xmm8, %%xmm8\n\t"                           \
	"vpxor %%xmm8, %%xmm" #lane ", %%xmm" #lane "\n\t"

/* Lane @lane into the lane @next. */
#define WEFT_FOLD_LANE(lane, next)                                     \
	"vpclmulqdq $0x00, %%xmm9, %%xmm" #lane ", %%xmm8\n\t"         \
	"vpclmulqdq $0x11, %%xmm9, %%xmm" #lane ", %%xmm" #lane "\n\t" \
	"vpxor %%xmm8, %%xmm" #next ", %%xmm" #next "\n\t"             \
	"vpxor %%xmm" #lane ", %%xmm" #next ", %%xmm" #next "\n\t"

/* Lane 0 begins with the first @n bytes of the text, 1…16. */
static void weft_vec_crc_first(u32 crc, const u8 *p, unsigned int n)
{
	asm volatile("vmovd %[crc], %%xmm0\n\t"
		     "vpxor (%[p]), %%xmm0, %%xmm0\n\t"
		     "vpshufb (%[shift]), %%xmm0, %%xmm0"
		     : : [crc] "r"(crc), [p] "r"(p), [shift] "r"(weft_vec_shift + n) : "memory");
}

/* All lanes from lane 0 and seven blocks; whole rounds; and all in one lane, which is lane 0. */
static const u8 *weft_vec_crc_rounds(const u8 *p, size_t rounds)
{
	asm volatile("vmovdqu 0x00(%[p]), %%xmm1\n\t"
		     "vmovdqu 0x10(%[p]), %%xmm2\n\t"
		     "vmovdqu 0x20(%[p]), %%xmm3\n\t"
		     "vmovdqu 0x30(%[p]), %%xmm4\n\t"
		     "vmovdqu 0x40(%[p]), %%xmm5\n\t"
		     "vmovdqu 0x50(%[p]), %%xmm6\n\t"
		     "vmovdqu 0x60(%[p]), %%xmm7\n\t"
		     "vmovdqa %[k], %%xmm9"
		     : : [p] "r"(p), [k] "m"(weft_vec_k.fold_round) : "memory");
	p += WEFT_VEC_ROUND - WEFT_VEC_BLOCK;
	/* A block more in each lane. */
	if (rounds & 1) {
		asm volatile(WEFT_FOLD(0, "0x00(%[p])")
			     WEFT_FOLD(1, "0x10(%[p])")
			     WEFT_FOLD(2, "0x20(%[p])")
			     WEFT_FOLD(3, "0x30(%[p])")
			     WEFT_FOLD(4, "0x40(%[p])")
			     WEFT_FOLD(5, "0x50(%[p])")
			     WEFT_FOLD(6, "0x60(%[p])")
			     WEFT_FOLD(7, "0x70(%[p])")
			     : : [p] "r"(p) : "memory");
		p += WEFT_VEC_ROUND;
	}
	/* Two blocks more at a time. */
	rounds /= 2;
	if (rounds)
		asm volatile("1:\n\t"
			     WEFT_FOLD(0, "0x00(%[p])")
			     WEFT_FOLD(1, "0x10(%[p])")
			     WEFT_FOLD(2, "0x20(%[p])")
			     WEFT_FOLD(3, "0x30(%[p])")
			     WEFT_FOLD(4, "0x40(%[p])")
			     WEFT_FOLD(5, "0x50(%[p])")
			     WEFT_FOLD(6, "0x60(%[p])")
			     WEFT_FOLD(7, "0x70(%[p])")
			     WEFT_FOLD(0, "0x80(%[p])")
			     WEFT_FOLD(1, "0x90(%[p])")
			     WEFT_FOLD(2, "0xa0(%[p])")
			     WEFT_FOLD(3, "0xb0(%[p])")
			     WEFT_FOLD(4, "0xc0(%[p])")
			     WEFT_FOLD(5, "0xd0(%[p])")
			     WEFT_FOLD(6, "0xe0(%[p])")
			     WEFT_FOLD(7, "0xf0(%[p])")
			     "add $0x100, %[p]\n\t"
			     "dec %[rounds]\n\t"
			     "jnz 1b"
			     : [p] "+r"(p), [rounds] "+r"(rounds) : : "cc", "memory");
	asm volatile("vmovdqa %[k], %%xmm9\n\t"
		     WEFT_FOLD_LANE(0, 1)
		     WEFT_FOLD_LANE(1, 2)
		     WEFT_FOLD_LANE(2, 3)
		     WEFT_FOLD_LANE(3, 4)
		     WEFT_FOLD_LANE(4, 5)
		     WEFT_FOLD_LANE(5, 6)
		     WEFT_FOLD_LANE(6, 7)
		     "vmovdqa %%xmm7, %%xmm0"
		     : : [k] "m"(weft_vec_k.fold_block) : "memory");
	return p;
}

/* Lane 0 mod P, times x^32. */
static u32 weft_vec_crc_last(void)
{
	u32 crc;

	asm volatile("vmovq %[last], %%xmm1\n\t"
		     "vpclmulqdq $0x00, %%xmm1, %%xmm0, %%xmm1\n\t"
		     "vpsrldq $8, %%xmm0, %%xmm0\n\t"
		     "vpxor %%xmm1, %%xmm0, %%xmm0\n\t"
		     "vpclmulqdq $0x00, %[barrett], %%xmm0, %%xmm1\n\t"
		     "vpclmulqdq $0x10, %[barrett], %%xmm1, %%xmm1\n\t"
		     "vpxor %%xmm1, %%xmm0, %%xmm0\n\t"
		     "vpextrd $2, %%xmm0, %[crc]"
		     : [crc] "=r"(crc)
		     : [last] "m"(weft_vec_k.last), [barrett] "m"(weft_vec_k.barrett));
	return crc;
}

u32 weft_vec_crc32(u32 crc, const void *data, size_t len)
{
	unsigned int odd = len & 3;
	size_t blocks = (len - odd - 1) / WEFT_VEC_BLOCK; /* behind the first */
	unsigned int first = len - odd - blocks * WEFT_VEC_BLOCK;
	const u8 *p = data;

	if (unlikely(len < WEFT_VEC_CRC_MIN))
		return crc32_le(crc, data, len);
	kasan_check_read(data, len);
	weft_vec_crc_first(crc, p, first);
	p += first;
	if (blocks >= WEFT_VEC_LANES) {
		p = weft_vec_crc_rounds(p, (blocks + 1) / WEFT_VEC_LANES - 1);
		blocks = (blocks + 1) % WEFT_VEC_LANES;
	} else {
		asm volatile("vmovdqa %[k], %%xmm9" : : [k] "m"(weft_vec_k.fold_block));
	}
	for (; blocks; blocks--, p += WEFT_VEC_BLOCK)
		asm volatile(WEFT_FOLD(0, "(%[p])") : : [p] "r"(p) : "memory");
	crc = weft_vec_crc_last();
	return odd ? crc32_le(crc, p, odd) : crc;
}

/* --- copies --- */

/* One or more. */
static void weft_vec_copy_rounds(void *to, const void *from, size_t rounds)
{
	asm volatile("1:\n\t"
		     "vmovdqu 0x00(%[from]), %%ymm0\n\t"
		     "vmovdqu 0x20(%[from]), %%ymm1\n\t"
		     "vmovdqu 0x40(%[from]), %%ymm2\n\t"
		     "vmovdqu 0x60(%[from]), %%ymm3\n\t"
		     "vmovdqu 0x80(%[from]), %%ymm4\n\t"
		     "vmovdqu 0xa0(%[from]), %%ymm5\n\t"
		     "vmovdqu 0xc0(%[from]), %%ymm6\n\t"
		     "vmovdqu 0xe0(%[from]), %%ymm7\n\t"
		     "vmovdqu %%ymm0, 0x00(%[to])\n\t"
		     "vmovdqu %%ymm1, 0x20(%[to])\n\t"
		     "vmovdqu %%ymm2, 0x40(%[to])\n\t"
		     "vmovdqu %%ymm3, 0x60(%[to])\n\t"
		     "vmovdqu %%ymm4, 0x80(%[to])\n\t"
		     "vmovdqu %%ymm5, 0xa0(%[to])\n\t"
		     "vmovdqu %%ymm6, 0xc0(%[to])\n\t"
		     "vmovdqu %%ymm7, 0xe0(%[to])\n\t"
		     "add $0x100, %[from]\n\t"
		     "add $0x100, %[to]\n\t"
		     "dec %[rounds]\n\t"
		     "jnz 1b\n\t"
		     "vzeroupper"
		     : [to] "+r"(to), [from] "+r"(from), [rounds] "+r"(rounds)
		     : : "cc", "memory");
}

bool weft_vec_copy_begin(void)
{
	return weft_vec_copies && weft_vec_begin();
}

void weft_vec_copy_piece(void *to, const void *from, size_t len)
{
	size_t rest = len % WEFT_VEC_COPY_ROUND;

	if (len >= WEFT_VEC_COPY_ROUND) {
		kasan_check_read(from, len);
		kasan_check_write(to, len);
		weft_vec_copy_rounds(to, from, len / WEFT_VEC_COPY_ROUND);
	}
	if (rest)
		memcpy(to + len - rest, from + len - rest, rest);
}

void weft_vec_copy_long(void *to, const void *from, size_t len)
{
	if (weft_vec_copy_begin()) {
		weft_vec_copy_piece(to, from, len);
		weft_vec_end();
	} else {
		memcpy(to, from, len);
	}
}

/* --- constants --- */

/* x^n mod P, reflected: bit i is the coefficient of x^(31-i). */
static u32 __init weft_vec_power(unsigned int n)
{
	u32 r = BIT(31);

	for (; n; n--)
		r = (r >> 1) ^ (r & 1 ? CRC32_POLY_LE : 0);
	return r;
}

/* A block that stands @bits before another: its halves' multipliers. */
static void __init weft_vec_fold_by(u64 k[2], unsigned int bits)
{
	k[0] = (u64)weft_vec_power(64 + bits - 1) << 32;
	k[1] = (u64)weft_vec_power(bits - 1) << 32;
}

/* x^95 / P, reflected. */
static u64 __init weft_vec_quotient(void)
{
	u32 r = weft_vec_power(31); /* of x^95, the terms that are not divided yet */
	u64 q = 0;
	int i;

	for (i = 0; i < 64; i++) {
		if (r & 1)
			q |= BIT_ULL(i);
		r = (r >> 1) ^ (r & 1 ? CRC32_POLY_LE : 0);
	}
	return q;
}

void __init weft_vec_init(void)
{
	weft_vec_fold_by(weft_vec_k.fold_round, 8 * WEFT_VEC_ROUND);
	weft_vec_fold_by(weft_vec_k.fold_block, 8 * WEFT_VEC_BLOCK);
	weft_vec_k.barrett[0] = weft_vec_quotient();
	weft_vec_k.barrett[1] = (u64)CRC32_POLY_LE << 1;
	weft_vec_k.last = weft_vec_power(95);
	weft_vec_usable = boot_cpu_has(X86_FEATURE_PCLMULQDQ) && boot_cpu_has(X86_FEATURE_AVX2) &&
			  cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
	/* Where the CPU has fast string instructions, memcpy() uses them. */
	weft_vec_copies = !boot_cpu_has(X86_FEATURE_ERMS) && !boot_cpu_has(X86_FEATURE_FSRM);
}
#endif
