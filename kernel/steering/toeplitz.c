// SPDX-License-Identifier: GPL-2.0
/* Receive-side scaling: Toeplitz hash over addresses and ports, and the indirection table. */
#include <weft/steering.h>

const u8 weft_rss_default_key[WEFT_RSS_KEY_LEN] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
EXPORT_SYMBOL_GPL(weft_rss_default_key);

/* Each set bit of the data adds the 32 key bits that begin at the bit's own place. */
u32 weft_toeplitz(const u8 *key, const u8 *data, size_t len)
{
	u64 window = (u64)key[0] << 24 | (u64)key[1] << 16 | (u64)key[2] << 8 | key[3];
	u32 hash = 0;
	size_t i;
	int bit;

	for (i = 0; i < len; i++) {
		window = window << 8 | key[i + 4];
		for (bit = 7; bit >= 0; bit--)
			if (data[i] & BIT(bit))
				hash ^= (u32)(window >> (bit + 1));
	}
	return hash;
}
EXPORT_SYMBOL_GPL(weft_toeplitz);

u32 weft_rss_hash_v4(const u8 *key, __be32 saddr, __be32 daddr, __be16 sport, __be16 dport)
{
	u8 tuple[12];

	memcpy(tuple, &saddr, 4);
	memcpy(tuple + 4, &daddr, 4);
	memcpy(tuple + 8, &sport, 2);
	memcpy(tuple + 10, &dport, 2);
	return weft_toeplitz(key, tuple, sizeof(tuple));
}
EXPORT_SYMBOL_GPL(weft_rss_hash_v4);

u32 weft_rss_hash_v6(const u8 *key, const void *saddr, const void *daddr, __be16 sport,
		     __be16 dport)
{
	u8 tuple[36];

	memcpy(tuple, saddr, 16);
	memcpy(tuple + 16, daddr, 16);
	memcpy(tuple + 32, &sport, 2);
	memcpy(tuple + 34, &dport, 2);
	return weft_toeplitz(key, tuple, sizeof(tuple));
}
EXPORT_SYMBOL_GPL(weft_rss_hash_v6);

void weft_rss_indir_default(u8 *indir, unsigned int queues)
{
	unsigned int i;

	for (i = 0; i < WEFT_RSS_INDIR_SIZE; i++)
		indir[i] = i % queues;
}
EXPORT_SYMBOL_GPL(weft_rss_indir_default);
