/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2 transport headers as they stand on the wire, and the decoded form of one packet.
 *
 * A packet behind UDP is: BTH, extended headers (their set follows from the opcode, see opcode.h),
 * payload, 0…3 pad bytes, ICRC. All header fields are big-endian; the ICRC is little-endian.
 */
#ifndef WEFT_BTH_H
#define WEFT_BTH_H

#include <weft/types.h>

#define WEFT_UDP_PORT 4791
#define WEFT_ICRC_LEN 4
#define WEFT_PSN_MASK 0xffffffu
#define WEFT_QPN_MASK 0xffffffu
#define WEFT_QPN_MULTICAST 0xffffffu
#define WEFT_PKEY_DEFAULT 0xffff
/* BTH + RETH + ImmDt is 32 and BTH + AtomicETH is 40: nothing is longer. */
#define WEFT_HDR_MAX 40
#define WEFT_MESSAGE_MAX 0x80000000u /* bytes */

struct weft_bth {
	u8 opcode;
	u8 flags;      /* WEFT_BTH_SE … WEFT_BTH_TVER */
	__be16 pkey;
	__be32 qpn;    /* FECN, BECN, six reserved bits (outside the ICRC), destination QPN */
	__be32 psn;    /* AckReq, seven reserved bits, PSN */
} __packed;
BUILD_BUG_ON_SIZE(struct weft_bth, 12);

#define WEFT_BTH_SE BIT(7)
#define WEFT_BTH_MIGREQ BIT(6)
#define WEFT_BTH_PAD GENMASK(5, 4)
#define WEFT_BTH_TVER GENMASK(3, 0)
#define WEFT_BTH_FECN BIT(31)
#define WEFT_BTH_BECN BIT(30)
#define WEFT_BTH_RESV6 GENMASK(29, 24)
#define WEFT_BTH_RESV8A 0xff000000u /* the octet that the ICRC takes as ones */
#define WEFT_BTH_ACKREQ BIT(31)

struct weft_deth {
	__be32 qkey;
	__be32 src_qpn;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_deth, 8);

struct weft_reth {
	__be64 va;
	__be32 rkey;
	__be32 dmalen;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_reth, 16);

struct weft_aeth {
	__be32 syndrome_msn;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_aeth, 4);

#define WEFT_AETH_SYNDROME GENMASK(31, 24)
#define WEFT_AETH_MSN GENMASK(23, 0)

struct weft_atomic_eth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_atomic_eth, 28);

struct weft_atomic_ack_eth {
	__be64 orig;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_atomic_ack_eth, 8);

struct weft_immdt {
	__be32 imm;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_immdt, 4);

struct weft_ieth {
	__be32 rkey;
} __packed;
BUILD_BUG_ON_SIZE(struct weft_ieth, 4);

struct weft_opcode_info;

/* One packet, decoded to host order. A field is defined only if the opcode carries its header. */
struct weft_pkt {
	const struct weft_opcode_info *op;
	u8 opcode;
	bool solicited;
	bool migreq;
	bool ackreq;
	bool fecn;
	bool becn;
	u8 resv6;        /* the six reserved bits beside FECN and BECN */
	u8 pad;          /* bytes, 0…3 */
	u16 pkey;
	u32 qpn;         /* destination */
	u32 psn;
	u16 hdr_len;     /* bytes, BTH and extended headers */
	u32 payload_len; /* bytes, without pad and ICRC */

	u32 qkey;        /* DETH */
	u32 src_qpn;
	u64 va;          /* RETH, AtomicETH */
	u32 rkey;        /* RETH, AtomicETH, IETH */
	u32 dmalen;      /* RETH, bytes */
	u64 swap_add;    /* AtomicETH */
	u64 compare;
	u64 orig;        /* AtomicAckETH */
	u8 syndrome;     /* AETH */
	u32 msn;
	__be32 imm;      /* ImmDt, opaque */
};

/* Why a packet is not taken. Each has a counter of its own in the driver. */
enum weft_drop {
	WEFT_DROP_NONE = 0,
	WEFT_DROP_TRUNCATED, /* shorter than its headers, pad and ICRC say */
	WEFT_DROP_VERSION,   /* BTH.TVer is not 0 */
	WEFT_DROP_OPCODE,    /* no such opcode */
	WEFT_DROP_LENGTH,    /* payload where the opcode has none, or not the pad that it needs */
};

/*
 * Decode a packet that begins at BTH. @data: at least min(@len, WEFT_HDR_MAX) readable bytes.
 * @len: bytes from BTH to the end of the ICRC, that is UDP length - 8. Reads nothing beyond.
 */
enum weft_drop weft_pkt_parse(struct weft_pkt *pkt, const void *data, size_t len);

/*
 * Write BTH and the extended headers that @pkt->opcode has. @buf: WEFT_HDR_MAX bytes.
 * Takes the number of pad bytes from @pkt->payload_len. Returns the bytes written, 0 for an
 * unknown opcode.
 */
unsigned int weft_pkt_build(void *buf, const struct weft_pkt *pkt);

static inline u8 weft_pad(u32 payload_len)
{
	return -payload_len & 3;
}

#endif
