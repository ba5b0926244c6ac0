// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 for the ICRC: by the vector registers (vec.c), by words (crc_words.c), or by what the
 * kernel has.
 *
 * Newer kernels' crc32_le() uses the CPU's carry-less multiplication by itself. Older ones offer
 * that only as a hash of the crypto layer, whose whole state is the 32-bit CRC: each call makes a
 * descriptor on the stack, sets the state and reads it back. At load all ways are compared on a
 * fixed text, so a crypto driver that keeps its state differently is noticed there and not on the
 * wire.
 *
 * Then they race. A CPU that exists as software only, an emulated one, may take a hundred times as
 * long for a carry-less multiplication as for an addition, and words are faster there.
 */
#include <linux/crc32.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <crypto/hash.h>

#include "crc.h"
#include "vec.h"

/* Shorter pieces are dearer to hand over than to compute. */
enum {
	WEFT_CRC_SHASH_MIN = 64,
	WEFT_CRC_VEC_MIN = 64,
};

static struct crypto_shash *weft_crc_shash; /* NULL: there is none that is faster than crc32_le() */
static bool weft_crc_vec __ro_after_init;   /* vec.c is the fastest */
static bool weft_crc_words __ro_after_init; /* crc_words.c is faster than what the kernel has */

struct weft_crc_desc {
	struct shash_desc shash;
	u32 state; /* shash.__ctx */
};

static u32 weft_crc_by_shash(struct crypto_shash *tfm, u32 crc, const void *data, size_t len)
{
	struct weft_crc_desc desc __aligned(CRYPTO_MINALIGN);
	u32 *state = shash_desc_ctx(&desc.shash);

	desc.shash.tfm = tfm;
	*state = crc;
	crypto_shash_update(&desc.shash, data, len);
	return *state;
}

static u32 weft_crc32_kernel(u32 crc, const void *data, size_t len)
{
	if (weft_crc_shash && len >= WEFT_CRC_SHASH_MIN)
		return weft_crc_by_shash(weft_crc_shash, crc, data, len);
	return crc32_le(crc, data, len);
}

weft_crc32_fn weft_crc_begin(size_t bytes)
{
	if (bytes >= WEFT_CRC_VEC_MIN && weft_crc_vec && weft_vec_begin())
		return weft_vec_crc32;
	return weft_crc_words ? weft_crc32_words : weft_crc32_kernel;
}

void weft_crc_end(weft_crc32_fn crc)
{
	if (crc == weft_vec_crc32)
		weft_vec_end();
}

static u8 weft_crc_text[1100] __initdata;

/* Known answer of the standard check string, then crc32_le()'s over odd lengths and places. */
static bool __init weft_crc_check(weft_crc32_fn crc)
{
	size_t from, len;

	if (~crc(~0, "123456789", 9) != 0xcbf43926)
		return false;
	for (from = 0; from < 17; from++)
		for (len = from % 5; from + len <= sizeof(weft_crc_text); len += 13)
			if (crc(from * 0x01234567, weft_crc_text + from, len) !=
			    crc32_le(from * 0x01234567, weft_crc_text + from, len))
				return false;
	return true;
}

static bool __init weft_crc_check_all(void)
{
	bool ok;
	size_t i;

	for (i = 0; i < sizeof(weft_crc_text); i++)
		weft_crc_text[i] = i * 7 + (i >> 3);
	ok = weft_crc_check(weft_crc32_kernel) && weft_crc_check(weft_crc32_words);
	if (!weft_vec_begin())
		return ok;
	ok = ok && weft_crc_check(weft_vec_crc32);
	weft_vec_end();
	return ok;
}

/* The shortest of a few times that @crc takes, in nanoseconds. */
static u64 __init weft_crc_time(weft_crc32_fn crc)
{
	u64 start, best = U64_MAX;
	int i;

	for (i = 0; i < 8; i++) {
		start = ktime_get_ns();
		crc(~0, weft_crc_text, sizeof(weft_crc_text));
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

static u32 __init weft_crc32_tables(u32 crc, const void *data, size_t len)
{
	return crc32_le(crc, data, len);
}

static void __init weft_crc_race(void)
{
	u64 best = weft_crc_time(weft_crc32_tables), words;

	if (weft_crc_shash) {
		u64 hash = weft_crc_time(weft_crc32_kernel);

		if (hash >= best)
			weft_crc_uninit();
		best = min(best, hash);
	}
	words = weft_crc_time(weft_crc32_words);
	if (words < best) {
		weft_crc_words = true;
		weft_crc_uninit(); /* nobody asks the crypto driver any more */
		best = words;
	}
	if (weft_vec_begin()) {
		weft_crc_vec = weft_crc_time(weft_vec_crc32) < best;
		weft_vec_end();
	}
	pr_debug("CRC-32 by %s\n", weft_crc_vec   ? "vector registers"
				   : weft_crc_words ? "words"
				   : weft_crc_shash ? "a crypto driver"
						    : "crc32_le()");
}

#ifdef WEFT_HAVE_CRC32_OPTIMIZATIONS
static struct crypto_shash *weft_crc_find_shash(void)
{
	return NULL;
}
#else
static struct crypto_shash *weft_crc_find_shash(void)
{
	struct crypto_shash *tfm = crypto_alloc_shash("crc32", 0, 0);

	if (IS_ERR(tfm))
		return NULL;
	if (crypto_shash_descsize(tfm) == sizeof(u32) &&
	    strcmp(crypto_tfm_alg_driver_name(crypto_shash_tfm(tfm)), "crc32-generic"))
		return tfm;
	crypto_free_shash(tfm);
	return NULL;
}
#endif

int __init weft_crc_init(void)
{
	weft_vec_init();
	weft_crc_shash = weft_crc_find_shash();
	if (!weft_crc_check_all()) {
		pr_err("CRC-32 gives wrong results\n");
		weft_crc_uninit();
		return -EINVAL;
	}
	weft_crc_race();
	return 0;
}

void weft_crc_uninit(void)
{
	crypto_free_shash(weft_crc_shash);
	weft_crc_shash = NULL;
}
