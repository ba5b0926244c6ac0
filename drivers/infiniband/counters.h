/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a device: one list gives the enumeration, the names and the order in `rdma
 * statistic`.
 */
#ifndef WEFT_COUNTERS_H
#define WEFT_COUNTERS_H

#include <linux/percpu.h>
#include <linux/types.h>

struct ib_device;
struct rdma_hw_stats;

/* Names that dashboards know from mlx5 and rxe come first; drop reasons are rx_drop_*. */
#define WEFT_COUNTERS(X)          \
	X(sent_pkts)              \
	X(rcvd_pkts)              \
	X(sent_bytes)             \
	X(rcvd_bytes)             \
	X(duplicate_request)      \
	X(out_of_sequence)        \
	X(packet_seq_err)         \
	X(implied_nak_seq_err)    \
	X(rnr_nak_sent)           \
	X(rnr_nak_rcvd)           \
	X(rnr_nak_retry_err)      \
	X(local_ack_timeout_err)  \
	X(retry_exceeded_err)     \
	X(retransmitted_pkts)     \
	X(spurious_retrans)       \
	X(roce_adp_retrans)       \
	X(tail_loss_probes)       \
	X(ack_sent)               \
	X(ack_rcvd)               \
	X(nak_sent)               \
	X(nak_rcvd)               \
	X(ext_nak_sent)           \
	X(ext_nak_rcvd)           \
	X(held_pkts)              \
	X(hold_drops)             \
	X(placed_early_pkts)      \
	X(req_remote_access_errors)  \
	X(req_remote_invalid_request) \
	X(resp_remote_access_errors) \
	X(req_cqe_error)          \
	X(resp_cqe_error)         \
	X(cq_overflow)            \
	X(send_queue_invalid)     \
	X(recv_queue_invalid)     \
	X(send_err)               \
	X(no_route)               \
	X(tx_shortcut_pkts)       \
	X(tx_icrc_offloaded)      \
	X(rx_icrc_offloaded)      \
	X(rx_inline)              \
	X(rx_moderated)           \
	X(rx_drop_ip)             \
	X(rx_drop_truncated)      \
	X(rx_drop_version)        \
	X(rx_drop_opcode)         \
	X(rx_drop_length)         \
	X(rx_drop_icrc)           \
	X(rx_drop_pkey)           \
	X(rx_drop_qkey)           \
	X(rx_drop_qpn)            \
	X(rx_drop_qp_type)        \
	X(rx_drop_qp_state)       \
	X(rx_drop_address)        \
	X(rx_drop_no_recv_wqe)    \
	X(rx_drop_queue_full)     \
	X(rx_drop_nomem)          \
	X(rx_drop_sender_mr)      \
	X(rx_cnp)                 \
	X(link_downed)            \
	X(rdma_sends)             \
	X(rdma_recvs)             \
	X(flushed_wrs)

enum weft_counter {
#define X(name) WEFT_CNT_##name,
	WEFT_COUNTERS(X)
#undef X
	WEFT_NUM_COUNTERS
};

struct weft_counters {
	u64 v[WEFT_NUM_COUNTERS];
};

/* Any context. */
#define weft_count(dev, name) this_cpu_inc((dev)->counters->v[WEFT_CNT_##name])
#define weft_count_add(dev, name, n) this_cpu_add((dev)->counters->v[WEFT_CNT_##name], n)

/* Sum over the CPUs. */
u64 weft_counter_read(const struct weft_counters __percpu *counters, enum weft_counter which);

struct rdma_hw_stats *weft_alloc_hw_port_stats(struct ib_device *ib_dev, u32 port);
int weft_get_hw_stats(struct ib_device *ib_dev, struct rdma_hw_stats *stats, u32 port, int index);

#endif
