/* SPDX-License-Identifier: GPL-2.0 */
/* AETH syndromes, and the timers that go with them (IBTA 9.7.5.1, 9.7.5.2.8, 9.7.6.1.3). */
#ifndef WEFT_ACK_H
#define WEFT_ACK_H

#include <weft/types.h>

enum weft_ack_kind {
	WEFT_ACK_POSITIVE,
	WEFT_ACK_RNR,
	WEFT_ACK_NAK,
	WEFT_ACK_RESERVED, /* no meaning: the packet is dropped */
};

enum weft_nak_code {
	WEFT_NAK_PSN_SEQUENCE = 0,
	WEFT_NAK_INVALID_REQUEST = 1,
	WEFT_NAK_REMOTE_ACCESS = 2,
	WEFT_NAK_REMOTE_OPERATIONAL = 3,
	WEFT_NAK_INVALID_RD_REQUEST = 4,
};

#define WEFT_SYNDROME_ACK 0x1f /* positive, no end-to-end credits */

static inline u8 weft_syndrome_rnr(u8 timer)
{
	return 0x20 | (timer & 0x1f);
}

static inline u8 weft_syndrome_nak(enum weft_nak_code code)
{
	return 0x60 | (code & 0x1f);
}

enum weft_ack_kind weft_syndrome_kind(u8 syndrome);

/* WEFT_ACK_POSITIVE; the low five bits are credits. */
static inline bool weft_syndrome_is_ack(u8 syndrome)
{
	return syndrome < 0x20;
}

static inline u8 weft_syndrome_value(u8 syndrome)
{
	return syndrome & 0x1f;
}

/* Wait that an RNR NAK's timer code (0…31) asks for, ns. Code 0: 655.36 ms, code 1: 10 µs. */
u64 weft_rnr_timer_ns(u8 code);

/* Local ACK timeout of the code (0…31), ns: 4.096 µs × 2^code. Code 0, no timeout: 0. */
u64 weft_ack_timeout_ns(u8 code);

#endif
