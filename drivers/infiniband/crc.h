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

int weft_crc_init(void);
void weft_crc_uninit(void);

#endif
