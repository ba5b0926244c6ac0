/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CPU's vector registers: CRC-32 by carry-less multiplication, and copies.
 *
 * Between weft_vec_begin() and weft_vec_end() the registers are ours: nothing there sleeps, calls
 * out, or begins again. The claim costs about as much as the CRC of a few hundred bytes, so one is
 * for as much as there is.
 */
#ifndef WEFT_VEC_H
#define WEFT_VEC_H

#include <linux/string.h>
#include <linux/types.h>

/* Claiming the registers costs more than it saves for shorter copies. */
enum { WEFT_VEC_COPY_MIN = 1024 };

#ifdef CONFIG_X86_64
/* False: the CPU has not what we need, or somebody else has it. Any context. */
bool weft_vec_begin(void);
void weft_vec_end(void);

/* weft_crc32_fn of <weft/icrc.h>, between begin and end. */
u32 weft_vec_crc32(u32 crc, const void *data, size_t len);

/* As weft_vec_begin(), for copies. False too where memcpy() is as fast. */
bool weft_vec_copy_begin(void);
/* memcpy() of any length, between begin and end. */
void weft_vec_copy_piece(void *to, const void *from, size_t len);

void weft_vec_copy_long(void *to, const void *from, size_t len);

void weft_vec_init(void);
#else
static inline bool weft_vec_begin(void)
{
	return false;
}

static inline void weft_vec_end(void)
{
}

static inline u32 weft_vec_crc32(u32 crc, const void *data, size_t len)
{
	return crc;
}

static inline bool weft_vec_copy_begin(void)
{
	return false;
}

static inline void weft_vec_copy_piece(void *to, const void *from, size_t len)
{
}

static inline void weft_vec_copy_long(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

static inline void weft_vec_init(void)
{
}
#endif

/* memcpy(), by whatever is fastest for the length. Not between begin and end. */
static inline void weft_vec_copy(void *to, const void *from, size_t len)
{
	if (len < WEFT_VEC_COPY_MIN)
		memcpy(to, from, len);
	else
		weft_vec_copy_long(to, from, len);
}

#endif
