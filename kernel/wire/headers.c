// SPDX-License-Identifier: GPL-2.0
/*
 * BTH and extended headers: from the wire to struct weft_pkt and back.
 *
 * The opcode table says which extended headers follow BTH; here is their order. Each step returns
 * where the next header stands.
 */
#include <weft/ack.h>
#include <weft/bth.h>
#include <weft/opcode.h>
#include <weft/sack.h>

static const void *parse_deth(struct weft_pkt *pkt, const void *p)
{
	const struct weft_deth *h = p;

	pkt->qkey = be32_to_cpu(h->qkey);
	pkt->src_qpn = be32_to_cpu(h->src_qpn) & WEFT_QPN_MASK;
	return h + 1;
}

static void *build_deth(void *p, const struct weft_pkt *pkt)
{
	struct weft_deth *h = p;

	h->qkey = cpu_to_be32(pkt->qkey);
	h->src_qpn = cpu_to_be32(pkt->src_qpn & WEFT_QPN_MASK);
	return h + 1;
}

static const void *parse_reth(struct weft_pkt *pkt, const void *p)
{
	const struct weft_reth *h = p;

	pkt->va = be64_to_cpu(h->va);
	pkt->rkey = be32_to_cpu(h->rkey);
	pkt->dmalen = be32_to_cpu(h->dmalen);
	return h + 1;
}

static void *build_reth(void *p, const struct weft_pkt *pkt)
{
	struct weft_reth *h = p;

	h->va = cpu_to_be64(pkt->va);
	h->rkey = cpu_to_be32(pkt->rkey);
	h->dmalen = cpu_to_be32(pkt->dmalen);
	return h + 1;
}

static const void *parse_atomic_eth(struct weft_pkt *pkt, const void *p)
{
	const struct weft_atomic_eth *h = p;

	pkt->va = be64_to_cpu(h->va);
	pkt->rkey = be32_to_cpu(h->rkey);
	pkt->swap_add = be64_to_cpu(h->swap_add);
	pkt->compare = be64_to_cpu(h->compare);
	return h + 1;
}

static void *build_atomic_eth(void *p, const struct weft_pkt *pkt)
{
	struct weft_atomic_eth *h = p;

	h->va = cpu_to_be64(pkt->va);
	h->rkey = cpu_to_be32(pkt->rkey);
	h->swap_add = cpu_to_be64(pkt->swap_add);
	h->compare = cpu_to_be64(pkt->compare);
	return h + 1;
}

static const void *parse_aeth(struct weft_pkt *pkt, const void *p)
{
	const struct weft_aeth *h = p;
	u32 word = be32_to_cpu(h->syndrome_msn);

	pkt->syndrome = FIELD_GET(WEFT_AETH_SYNDROME, word);
	pkt->msn = FIELD_GET(WEFT_AETH_MSN, word);
	return h + 1;
}

static void *build_aeth(void *p, const struct weft_pkt *pkt)
{
	struct weft_aeth *h = p;

	h->syndrome_msn = cpu_to_be32(FIELD_PREP(WEFT_AETH_SYNDROME, pkt->syndrome) |
				      FIELD_PREP(WEFT_AETH_MSN, pkt->msn & WEFT_AETH_MSN));
	return h + 1;
}

static const void *parse_atomic_ack(struct weft_pkt *pkt, const void *p)
{
	const struct weft_atomic_ack_eth *h = p;

	pkt->orig = be64_to_cpu(h->orig);
	return h + 1;
}

static void *build_atomic_ack(void *p, const struct weft_pkt *pkt)
{
	struct weft_atomic_ack_eth *h = p;

	h->orig = cpu_to_be64(pkt->orig);
	return h + 1;
}

static const void *parse_immdt(struct weft_pkt *pkt, const void *p)
{
	const struct weft_immdt *h = p;

	pkt->imm = h->imm;
	return h + 1;
}

static void *build_immdt(void *p, const struct weft_pkt *pkt)
{
	struct weft_immdt *h = p;

	h->imm = pkt->imm;
	return h + 1;
}

static const void *parse_ieth(struct weft_pkt *pkt, const void *p)
{
	const struct weft_ieth *h = p;

	pkt->rkey = be32_to_cpu(h->rkey);
	return h + 1;
}

static void *build_ieth(void *p, const struct weft_pkt *pkt)
{
	struct weft_ieth *h = p;

	h->rkey = cpu_to_be32(pkt->rkey);
	return h + 1;
}

static void parse_bth(struct weft_pkt *pkt, const struct weft_bth *bth)
{
	u32 qpn = be32_to_cpu(bth->qpn);
	u32 psn = be32_to_cpu(bth->psn);

	pkt->opcode = bth->opcode;
	pkt->solicited = bth->flags & WEFT_BTH_SE;
	pkt->migreq = bth->flags & WEFT_BTH_MIGREQ;
	pkt->pad = FIELD_GET(WEFT_BTH_PAD, bth->flags);
	pkt->pkey = be16_to_cpu(bth->pkey);
	pkt->fecn = qpn & WEFT_BTH_FECN;
	pkt->becn = qpn & WEFT_BTH_BECN;
	pkt->resv6 = FIELD_GET(WEFT_BTH_RESV6, qpn);
	pkt->qpn = qpn & WEFT_QPN_MASK;
	pkt->ackreq = psn & WEFT_BTH_ACKREQ;
	pkt->psn = psn & WEFT_PSN_MASK;
}

static void build_bth(struct weft_bth *bth, const struct weft_pkt *pkt)
{
	bth->opcode = pkt->opcode;
	bth->flags = (pkt->solicited ? WEFT_BTH_SE : 0) | (pkt->migreq ? WEFT_BTH_MIGREQ : 0) |
		     FIELD_PREP(WEFT_BTH_PAD, weft_pad(pkt->payload_len));
	bth->pkey = cpu_to_be16(pkt->pkey);
	bth->qpn = cpu_to_be32((pkt->fecn ? WEFT_BTH_FECN : 0) | (pkt->becn ? WEFT_BTH_BECN : 0) |
			       FIELD_PREP(WEFT_BTH_RESV6, pkt->resv6 & 0x3f) |
			       (pkt->qpn & WEFT_QPN_MASK));
	bth->psn = cpu_to_be32((pkt->ackreq ? WEFT_BTH_ACKREQ : 0) | (pkt->psn & WEFT_PSN_MASK));
}

static void parse_ext(struct weft_pkt *pkt, const void *p)
{
	u32 flags = pkt->op->flags;

	if (flags & WEFT_OP_DETH)
		p = parse_deth(pkt, p);
	if (flags & WEFT_OP_RETH)
		p = parse_reth(pkt, p);
	if (flags & WEFT_OP_ATOMIC_ETH)
		p = parse_atomic_eth(pkt, p);
	if (flags & WEFT_OP_AETH)
		p = parse_aeth(pkt, p);
	if (flags & WEFT_OP_ATOMIC_ACK_ETH)
		p = parse_atomic_ack(pkt, p);
	if (flags & WEFT_OP_IMM)
		p = parse_immdt(pkt, p);
	if (flags & WEFT_OP_IETH)
		parse_ieth(pkt, p);
}

static void build_ext(void *p, const struct weft_pkt *pkt, u32 flags)
{
	if (flags & WEFT_OP_DETH)
		p = build_deth(p, pkt);
	if (flags & WEFT_OP_RETH)
		p = build_reth(p, pkt);
	if (flags & WEFT_OP_ATOMIC_ETH)
		p = build_atomic_eth(p, pkt);
	if (flags & WEFT_OP_AETH)
		p = build_aeth(p, pkt);
	if (flags & WEFT_OP_ATOMIC_ACK_ETH)
		p = build_atomic_ack(p, pkt);
	if (flags & WEFT_OP_IMM)
		p = build_immdt(p, pkt);
	if (flags & WEFT_OP_IETH)
		build_ieth(p, pkt);
}

/* The one opcode whose payload depends on what its header says: a NAK, see sack.h. */
static bool has_payload(const struct weft_pkt *pkt)
{
	if (pkt->opcode != (WEFT_RC | WEFT_ACKNOWLEDGE))
		return pkt->op->flags & WEFT_OP_PAYLOAD;
	return pkt->syndrome == weft_syndrome_nak(WEFT_NAK_PSN_SEQUENCE) &&
	       pkt->payload_len <= sizeof(struct weft_sack) && pkt->payload_len % 4 == 0;
}

enum weft_drop weft_pkt_parse(struct weft_pkt *pkt, const void *data, size_t len)
{
	const struct weft_bth *bth = data;
	size_t rest;

	if (len < sizeof(*bth) + WEFT_ICRC_LEN)
		return WEFT_DROP_TRUNCATED;
	if (bth->flags & WEFT_BTH_TVER)
		return WEFT_DROP_VERSION;
	pkt->op = weft_opcode_info(bth->opcode);
	if (!pkt->op)
		return WEFT_DROP_OPCODE;

	parse_bth(pkt, bth);
	pkt->hdr_len = pkt->op->hdr_len;
	if (len < (size_t)pkt->hdr_len + pkt->pad + WEFT_ICRC_LEN)
		return WEFT_DROP_TRUNCATED;
	rest = len - pkt->hdr_len - WEFT_ICRC_LEN;
	pkt->payload_len = rest - pkt->pad;
	parse_ext(pkt, bth + 1);
	if (rest && !has_payload(pkt))
		return WEFT_DROP_LENGTH;
	/* Pad is what makes the payload a multiple of 4, no more and no less. */
	if (pkt->pad != weft_pad(pkt->payload_len))
		return WEFT_DROP_LENGTH;
	return WEFT_DROP_NONE;
}
EXPORT_SYMBOL_GPL(weft_pkt_parse);

unsigned int weft_pkt_build(void *buf, const struct weft_pkt *pkt)
{
	const struct weft_opcode_info *op = weft_opcode_info(pkt->opcode);
	struct weft_bth *bth = buf;

	if (!op)
		return 0;
	build_bth(bth, pkt);
	build_ext(bth + 1, pkt, op->flags);
	return op->hdr_len;
}
EXPORT_SYMBOL_GPL(weft_pkt_build);
