/* SPDX-License-Identifier: GPL-2.0 */
/* Receive-side steering: Toeplitz hash, indirection, and when a moderated queue fires. */
#ifndef WEFT_STEERING_H
#define WEFT_STEERING_H

#include <weft/types.h>

#define WEFT_RSS_KEY_LEN 40
#define WEFT_RSS_INDIR_SIZE 128

/* The key of the published verification vectors: the default of most NICs. */
extern const u8 weft_rss_default_key[WEFT_RSS_KEY_LEN];

/* Toeplitz hash of @len bytes; @key: at least @len + 4 bytes. */
u32 weft_toeplitz(const u8 *key, const u8 *data, size_t len);

/* Hash of the 4-tuple in network order: source and destination address, then the ports. */
u32 weft_rss_hash_v4(const u8 *key, __be32 saddr, __be32 daddr, __be16 sport, __be16 dport);
u32 weft_rss_hash_v6(const u8 *key, const void *saddr, const void *daddr, __be16 sport,
		     __be16 dport);

/* Default indirection table: entries go round robin over @queues (1…WEFT_RSS_INDIR_SIZE). */
void weft_rss_indir_default(u8 *indir, unsigned int queues);

static inline unsigned int weft_rss_queue(const u8 *indir, u32 hash)
{
	return indir[hash % WEFT_RSS_INDIR_SIZE];
}

/*
 * Moderation, with ethtool's meaning: fire @usecs after the first frame since the last interrupt,
 * or at once when @frames frames wait; 0 turns that condition off (both 0: as if frames were 1).
 */
struct weft_moderation {
	u32 usecs;
	u32 frames;
};

/*
 * How long to wait from now until the queue fires, ns; 0: fire now; WEFT_MODERATION_NEVER: no
 * timer, only more frames make it fire. @pending: frames waiting, at least 1. @age_ns: time since
 * the first of them came.
 */
#define WEFT_MODERATION_NEVER (~0ULL)
u64 weft_moderation_delay(const struct weft_moderation *mod, u32 pending, u64 age_ns);

#endif
