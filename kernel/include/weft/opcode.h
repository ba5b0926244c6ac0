/* SPDX-License-Identifier: GPL-2.0 */
/* BTH opcodes and the one table of their properties: headers, direction, place in the message. */
#ifndef WEFT_OPCODE_H
#define WEFT_OPCODE_H

#include <weft/types.h>

/* Transport: the three high bits of the opcode. */
#define WEFT_TRANSPORT_MASK 0xe0
#define WEFT_RC 0x00
#define WEFT_UC 0x20
#define WEFT_UD 0x60
#define WEFT_OPCODE_CNP 0x81

/* Operation: the five low bits, common to RC and UC (UD has SEND_ONLY and SEND_ONLY_IMM). */
enum weft_operation {
	WEFT_SEND_FIRST = 0x00,
	WEFT_SEND_MIDDLE = 0x01,
	WEFT_SEND_LAST = 0x02,
	WEFT_SEND_LAST_IMM = 0x03,
	WEFT_SEND_ONLY = 0x04,
	WEFT_SEND_ONLY_IMM = 0x05,
	WEFT_WRITE_FIRST = 0x06,
	WEFT_WRITE_MIDDLE = 0x07,
	WEFT_WRITE_LAST = 0x08,
	WEFT_WRITE_LAST_IMM = 0x09,
	WEFT_WRITE_ONLY = 0x0a,
	WEFT_WRITE_ONLY_IMM = 0x0b,
	WEFT_READ_REQUEST = 0x0c,
	WEFT_READ_RESPONSE_FIRST = 0x0d,
	WEFT_READ_RESPONSE_MIDDLE = 0x0e,
	WEFT_READ_RESPONSE_LAST = 0x0f,
	WEFT_READ_RESPONSE_ONLY = 0x10,
	WEFT_ACKNOWLEDGE = 0x11,
	WEFT_ATOMIC_ACKNOWLEDGE = 0x12,
	WEFT_COMPARE_SWAP = 0x13,
	WEFT_FETCH_ADD = 0x14,
	WEFT_SEND_LAST_INV = 0x16,
	WEFT_SEND_ONLY_INV = 0x17,
	WEFT_ATOMIC_WRITE = 0x1d,
};

/* Properties. */
#define WEFT_OP_REQUEST BIT(0)    /* travels from requester to responder */
#define WEFT_OP_RESPONSE BIT(1)
#define WEFT_OP_START BIT(2)      /* begins a message: FIRST or ONLY */
#define WEFT_OP_END BIT(3)        /* ends a message: LAST or ONLY */
#define WEFT_OP_SEND BIT(4)
#define WEFT_OP_WRITE BIT(5)
#define WEFT_OP_READ BIT(6)
#define WEFT_OP_ATOMIC BIT(7)     /* CAS, FAA */
#define WEFT_OP_ATOMIC_WRITE BIT(8)
/* A receive completion comes from it. (Its WQE a SEND takes at START already.) */
#define WEFT_OP_RECV_WQE BIT(9)
#define WEFT_OP_PAYLOAD BIT(10)   /* may carry payload */
#define WEFT_OP_DETH BIT(11)
#define WEFT_OP_RETH BIT(12)
#define WEFT_OP_AETH BIT(13)
#define WEFT_OP_ATOMIC_ETH BIT(14)
#define WEFT_OP_ATOMIC_ACK_ETH BIT(15)
#define WEFT_OP_IMM BIT(16)
#define WEFT_OP_IETH BIT(17)

struct weft_opcode_info {
	const char *name;
	u32 flags;
	u8 hdr_len; /* bytes, BTH and extended headers */
};

/* NULL: no such opcode. CNP is not a request of any QP and is not in the table. */
const struct weft_opcode_info *weft_opcode_info(u8 opcode);

#endif
