// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 for the ICRC.
 *
 * Newer kernels' crc32_le() uses the CPU's carry-less multiplication by itself. Older ones offer
 * that only as a hash of the crypto layer, whose whole state is the 32-bit CRC: each call makes a
 * descriptor on the stack, sets the state and reads it back. At load both are compared on a fixed
 * text, so a crypto driver that keeps its state differently is noticed there and not on the wire.
 */
#include <linux/crc32.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/random.h>
#include <crypto/hash.h>

#include "crc.h"

/* Shorter pieces are dearer to hand to the crypto layer than to compute. */
enum { WEFT_CRC_SHASH_MIN = 64 };

static struct crypto_shash *weft_crc_shash; /* NULL: crc32_le() is the fastest there is */

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

u32 weft_crc32(u32 crc, const void *data, size_t len)
{
	if (weft_crc_shash && len >= WEFT_CRC_SHASH_MIN)
		return weft_crc_by_shash(weft_crc_shash, crc, data, len);
	return crc32_le(crc, data, len);
}

/* Known answer of the standard check string, then both ways over odd lengths and places. */
static int weft_crc_check(void)
{
	u8 text[301];
	size_t from, len;

	if (~weft_crc32(~0, "123456789", 9) != 0xcbf43926)
		return -EINVAL;
	for (len = 0; len < sizeof(text); len++)
		text[len] = len * 7 + (len >> 3);
	for (from = 0; from < 17; from++)
		for (len = WEFT_CRC_SHASH_MIN - 1; from + len <= sizeof(text); len += 13)
			if (weft_crc32(from * 0x01234567, text + from, len) !=
			    crc32_le(from * 0x01234567, text + from, len))
				return -EINVAL;
	return 0;
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

int weft_crc_init(void)
{
	weft_crc_shash = weft_crc_find_shash();
	if (!weft_crc_check())
		return 0;
	pr_err("the kernel's CRC-32 gives wrong results\n");
	weft_crc_uninit();
	return -EINVAL;
}

void weft_crc_uninit(void)
{
	crypto_free_shash(weft_crc_shash);
	weft_crc_shash = NULL;
}
