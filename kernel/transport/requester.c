// SPDX-License-Identifier: GPL-2.0
/* Requester arithmetic: which packets a work request becomes. */
#include <weft/requester.h>

enum position {
	POS_FIRST,
	POS_MIDDLE,
	POS_LAST,
	POS_ONLY,
	POS_COUNT,
};

#define TRANSPORT_BIT(t) BIT((t) >> 5)
#define RC TRANSPORT_BIT(WEFT_RC)
#define UC TRANSPORT_BIT(WEFT_UC)
#define UD TRANSPORT_BIT(WEFT_UD)

struct wr_info {
	u8 transports;           /* that know it */
	bool one_packet;         /* whatever its length */
	u8 operation[POS_COUNT];
};

#define ONE_PACKET(op) \
	{ .transports = RC, .one_packet = true, \
	  .operation = { WEFT_##op, WEFT_##op, WEFT_##op, WEFT_##op } }
#define SEGMENTED(t, kind, last, only) \
	{ .transports = (t), \
	  .operation = { WEFT_##kind##_FIRST, WEFT_##kind##_MIDDLE, \
			 WEFT_##kind##_##last, WEFT_##kind##_##only } }

static const struct wr_info wr_infos[WEFT_WR_COUNT] = {
	[WEFT_WR_SEND] = SEGMENTED(RC | UC | UD, SEND, LAST, ONLY),
	[WEFT_WR_SEND_IMM] = SEGMENTED(RC | UC | UD, SEND, LAST_IMM, ONLY_IMM),
	[WEFT_WR_SEND_INV] = SEGMENTED(RC, SEND, LAST_INV, ONLY_INV),
	[WEFT_WR_WRITE] = SEGMENTED(RC | UC, WRITE, LAST, ONLY),
	[WEFT_WR_WRITE_IMM] = SEGMENTED(RC | UC, WRITE, LAST_IMM, ONLY_IMM),
	[WEFT_WR_READ] = ONE_PACKET(READ_REQUEST),
	[WEFT_WR_COMPARE_SWAP] = ONE_PACKET(COMPARE_SWAP),
	[WEFT_WR_FETCH_ADD] = ONE_PACKET(FETCH_ADD),
	[WEFT_WR_ATOMIC_WRITE] = ONE_PACKET(ATOMIC_WRITE),
};

bool weft_wr_allowed(u8 transport, enum weft_wr wr)
{
	return (u32)wr < WEFT_WR_COUNT && (wr_infos[wr].transports & TRANSPORT_BIT(transport));
}
EXPORT_SYMBOL_GPL(weft_wr_allowed);

u32 weft_wr_psn_count(enum weft_wr wr, u32 len, u32 mtu)
{
	if (wr_infos[wr].one_packet && wr != WEFT_WR_READ)
		return 1;
	return len ? (len - 1) / mtu + 1 : 1;
}
EXPORT_SYMBOL_GPL(weft_wr_psn_count);

struct weft_segment weft_req_segment(u8 transport, enum weft_wr wr, u32 len, u32 offset, u32 mtu)
{
	const struct wr_info *info = &wr_infos[wr];
	u32 rest = offset < len ? len - offset : 0;
	struct weft_segment seg = { .last = true };
	enum position pos = POS_ONLY;

	if (!info->one_packet) {
		seg.last = rest <= mtu;
		seg.payload_len = min(rest, mtu);
		if (offset)
			pos = seg.last ? POS_LAST : POS_MIDDLE;
		else
			pos = seg.last ? POS_ONLY : POS_FIRST;
	} else if (wr == WEFT_WR_ATOMIC_WRITE) {
		seg.payload_len = len;
	}
	seg.opcode = transport | info->operation[pos];
	return seg;
}
EXPORT_SYMBOL_GPL(weft_req_segment);

u32 weft_req_offset_of_psn(enum weft_wr wr, u32 first_psn, u32 psn, u32 mtu, u32 len)
{
	u64 offset = (u64)((psn - first_psn) & WEFT_PSN_MASK) * mtu;

	if (wr_infos[wr].one_packet && wr != WEFT_WR_READ)
		return 0;
	return min_t(u64, offset, len);
}
EXPORT_SYMBOL_GPL(weft_req_offset_of_psn);

bool weft_req_want_ack(const struct weft_segment *seg, bool end, u32 psn, u32 interval)
{
	return (seg->last && end) || (interval && psn % interval == 0);
}
EXPORT_SYMBOL_GPL(weft_req_want_ack);
