/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's CRC-32 backend for the ICRC: the fastest the machine offers. */
#ifndef WEFT_CRC_H
#define WEFT_CRC_H

#include <weft/icrc.h>

/*
 * For some @bytes in pieces: what to compute their CRC-32 with until weft_crc_end(), which gets it
 * back. Nothing in between sleeps, uses the FPU, or begins again. Any context.
 */
weft_crc32_fn weft_crc_begin(size_t bytes);
void weft_crc_end(weft_crc32_fn crc);

/* A weft_crc32_fn that needs no registers and no tables. Any context. crc_words.c */
u32 weft_crc32_words(u32 crc, const void *data, size_t len);

int weft_crc_init(void);
void weft_crc_uninit(void);

#endif
