// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target of the packet parser, judged by a second, slow reading of the same bytes.
 *
 * The oracle below shares nothing with the core but struct weft_pkt: it has its own list of opcodes
 * (written as letters, one for each extended header) and takes every field from a byte offset.
 * For each input it says which verdict and which fields must come out; then the packet is built
 * again and must equal the input, but for the bits that the standard reserves. The parser sees a
 * heap block of exactly the bytes that it may read.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weft/bth.h>
#include <weft/opcode.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

#define REQUIRE(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "oracle: line %d: %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

/*
 * Extended headers in the order of the wire: D DETH, R RETH, C AtomicETH, A AETH, O AtomicAckETH,
 * I ImmDt, V IETH; P: may have payload. NULL: not an opcode.
 */
static const char *layout_of(uint8_t opcode)
{
	static const char *const rc[] = {
		"P",  "P",  "P",  "IP", "P",  "IP", "RP", "P",	"P",  "IP", "RP",
		"RIP", "R", "AP", "P",	"AP", "AP", "A",  "AO", "C",  "C",  NULL,
		"VP", "VP", NULL, NULL, NULL, NULL, NULL, "RP", NULL, NULL,
	};

	if (opcode < 0x20)
		return rc[opcode];
	if (opcode < 0x2c)
		return rc[opcode - 0x20];
	if (opcode == 0x64)
		return "DP";
	if (opcode == 0x65)
		return "DIP";
	return NULL;
}

static size_t bytes_of(char header)
{
	switch (header) {
	case 'D':
	case 'O':
		return 8;
	case 'R':
		return 16;
	case 'C':
		return 28;
	case 'A':
	case 'I':
	case 'V':
		return 4;
	}
	return 0;
}

static size_t header_bytes(const char *layout)
{
	size_t sum = 12;

	for (; *layout; layout++)
		sum += bytes_of(*layout);
	return sum;
}

static uint64_t number(const uint8_t *p, size_t bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n * 256 + *p++;
	return n;
}

static enum weft_drop expected_drop(const uint8_t *data, size_t size)
{
	const char *layout;
	size_t pad, rest;

	if (size < 16)
		return WEFT_DROP_TRUNCATED;
	if (data[1] % 16)
		return WEFT_DROP_VERSION;
	layout = layout_of(data[0]);
	if (!layout)
		return WEFT_DROP_OPCODE;
	pad = data[1] / 16 % 4;
	if (size < header_bytes(layout) + pad + 4)
		return WEFT_DROP_TRUNCATED;
	rest = size - header_bytes(layout) - 4;
	/* The extended NAK: NAK code 0, a word and up to 1024 bits of bitmap in whole words. */
	if (rest && data[0] == 0x11 && (data[12] != 0x60 || rest > 132 || pad))
		return WEFT_DROP_LENGTH;
	if (rest && data[0] != 0x11 && !strchr(layout, 'P'))
		return WEFT_DROP_LENGTH;
	/* The least pad that fills up to a multiple of 4. */
	if (rest % 4 || (pad && rest == pad))
		return WEFT_DROP_LENGTH;
	return WEFT_DROP_NONE;
}

static void check_bth(const struct weft_pkt *pkt, const uint8_t *d)
{
	REQUIRE(pkt->opcode == d[0]);
	REQUIRE(pkt->solicited == d[1] / 128);
	REQUIRE(pkt->migreq == d[1] / 64 % 2);
	REQUIRE(pkt->pad == d[1] / 16 % 4);
	REQUIRE(pkt->pkey == number(d + 2, 2));
	REQUIRE(pkt->fecn == d[4] / 128);
	REQUIRE(pkt->becn == d[4] / 64 % 2);
	REQUIRE(pkt->resv6 == d[4] % 64);
	REQUIRE(pkt->qpn == number(d + 5, 3));
	REQUIRE(pkt->ackreq == d[8] / 128);
	REQUIRE(pkt->psn == number(d + 9, 3));
}

static void check_extended(const struct weft_pkt *pkt, const uint8_t *d, char header)
{
	switch (header) {
	case 'D':
		REQUIRE(pkt->qkey == number(d, 4));
		REQUIRE(pkt->src_qpn == number(d + 5, 3));
		break;
	case 'R':
		REQUIRE(pkt->va == number(d, 8));
		REQUIRE(pkt->rkey == number(d + 8, 4));
		REQUIRE(pkt->dmalen == number(d + 12, 4));
		break;
	case 'C':
		REQUIRE(pkt->va == number(d, 8));
		REQUIRE(pkt->rkey == number(d + 8, 4));
		REQUIRE(pkt->swap_add == number(d + 12, 8));
		REQUIRE(pkt->compare == number(d + 20, 8));
		break;
	case 'A':
		REQUIRE(pkt->syndrome == d[0]);
		REQUIRE(pkt->msn == number(d + 1, 3));
		break;
	case 'O':
		REQUIRE(pkt->orig == number(d, 8));
		break;
	case 'I':
		REQUIRE(!memcmp(&pkt->imm, d, 4));
		break;
	case 'V':
		REQUIRE(pkt->rkey == number(d, 4));
		break;
	}
}

/* The input's headers with the reserved bits that the decoded form does not keep taken as zero. */
static void check_rebuilt(const struct weft_pkt *pkt, const uint8_t *data, const char *layout)
{
	struct weft_pkt again = *pkt;
	uint8_t out[WEFT_HDR_MAX];
	uint8_t want[WEFT_HDR_MAX];
	size_t len = header_bytes(layout);

	memset(want, 0xa5, sizeof(want));
	memset(out, 0xa5, sizeof(out));
	memcpy(want, data, len);
	want[8] &= 0x80;
	if (*layout == 'D')
		want[12 + 4] = 0;
	again.pad = 3; /* comes from payload_len, not from here */
	REQUIRE(weft_pkt_build(out, &again) == len);
	REQUIRE(!memcmp(out, want, sizeof(want)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t readable = size < WEFT_HDR_MAX ? size : WEFT_HDR_MAX;
	uint8_t *exact = malloc(readable);
	enum weft_drop drop;
	struct weft_pkt pkt;
	const char *layout, *h;
	const uint8_t *d;

	if (!exact)
		return 0;
	memcpy(exact, data, readable);
	memset(&pkt, 0xa5, sizeof(pkt));
	drop = weft_pkt_parse(&pkt, exact, size);
	REQUIRE(!memcmp(exact, data, readable));
	free(exact);

	REQUIRE(drop == expected_drop(data, size));
	if (drop != WEFT_DROP_NONE) {
		uint8_t out[WEFT_HDR_MAX];

		memset(&pkt, 0, sizeof(pkt));
		pkt.opcode = size ? data[0] : 0;
		layout = layout_of(pkt.opcode);
		REQUIRE(!layout == !weft_opcode_info(pkt.opcode));
		REQUIRE(weft_pkt_build(out, &pkt) == (layout ? header_bytes(layout) : 0));
		return 0;
	}
	layout = layout_of(data[0]);
	REQUIRE(pkt.op == weft_opcode_info(data[0]));
	REQUIRE(pkt.hdr_len == header_bytes(layout));
	REQUIRE((size_t)pkt.hdr_len + pkt.payload_len + pkt.pad + 4 == size);
	check_bth(&pkt, data);
	for (h = layout, d = data + 12; *h; d += bytes_of(*h++))
		check_extended(&pkt, d, *h);
	check_rebuilt(&pkt, data, layout);
	return 0;
}

/* Half of the time as libFuzzer likes, else a packet that is nearly well-formed. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const char *layout;
	size_t payload, want;

	size = LLVMFuzzerMutate(data, size, max_size);
	if (seed % 2 || size < 12)
		return size;
	data[0] = (seed >> 1) % 256;
	layout = layout_of(data[0]);
	if (!layout)
		return size;
	payload = (seed >> 9) % 3 && strchr(layout, 'P') ? (seed >> 11) % 24 : 0;
	if (data[0] == 0x11)
		payload = (seed >> 11) % 36 * 4;
	want = header_bytes(layout) + (payload + 3) / 4 * 4 + 4 + ((seed >> 16) % 8 == 0);
	if (want > max_size)
		return size;
	if (want > size)
		memset(data + size, seed >> 20, want - size);
	data[1] = (data[1] & 0xc0) | (-payload % 4) << 4 | ((seed >> 19) % 8 == 0);
	if (data[0] == 0x11 && (seed >> 9) % 3)
		data[12] = 0x60;
	return want;
}
