// SPDX-License-Identifier: GPL-2.0
/* AETH syndromes and timer codes. */
#include <weft/ack.h>

#define SYNDROME_TYPE 0xe0
#define SYNDROME_TYPE_ACK 0x00
#define SYNDROME_TYPE_RNR 0x20
#define SYNDROME_TYPE_NAK 0x60

#define RNR_UNIT_NS 10000u
#define ACK_UNIT_NS 4096u

/* In units of 10 µs. */
static const u32 rnr_timer[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

enum weft_ack_kind weft_syndrome_kind(u8 syndrome)
{
	switch (syndrome & SYNDROME_TYPE) {
	case SYNDROME_TYPE_ACK:
		return WEFT_ACK_POSITIVE;
	case SYNDROME_TYPE_RNR:
		return WEFT_ACK_RNR;
	case SYNDROME_TYPE_NAK:
		if (weft_syndrome_value(syndrome) <= WEFT_NAK_INVALID_RD_REQUEST)
			return WEFT_ACK_NAK;
		return WEFT_ACK_RESERVED;
	default:
		return WEFT_ACK_RESERVED;
	}
}
EXPORT_SYMBOL_GPL(weft_syndrome_kind);

u64 weft_rnr_timer_ns(u8 code)
{
	return (u64)rnr_timer[code & 0x1f] * RNR_UNIT_NS;
}
EXPORT_SYMBOL_GPL(weft_rnr_timer_ns);

u64 weft_ack_timeout_ns(u8 code)
{
	code &= 0x1f;
	return code ? (u64)ACK_UNIT_NS << code : 0;
}
EXPORT_SYMBOL_GPL(weft_ack_timeout_ns);
