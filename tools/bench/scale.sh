#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many QPs and threads: what a 64 B WRITE costs when 1024 QPs take turns, and what the kernel holds for a QP.
#
# usage: scale.sh [MESSAGES]
set -u
ROW=${ROW:-scale}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

cost() { # LINK QPS THREADS MESSAGES
	local got
	got=$(stream --bytes 64 --depth 64 --qps "$2" --threads "$3" --messages "$4") || return 1
	record write_64 "$1" "$(member ns_per_message <<<"$got")" ns \
		"\"qps\": $2, \"threads\": $3, \"status\": \"$(member status <<<"$got")\""
}

bytes_of_qp() { # LINK
	local got
	got=$(stream --depth 16 --memory --qps 1024 --bytes 64) || return 1
	record qp_memory "$1" "$(member bytes_per_qp <<<"$got")" B "\"parts\": $got"
}

messages=${1:-10000}
prepare
modprobe rdma_rxe || exit 1
for kind in rxe weft; do
	topo_self 9000 "$kind"
	for qps in 1 1024; do
		cost "$kind" "$qps" 1 "$messages" || exit 1
	done
	for threads in 2 8; do
		cost "$kind" 4 "$threads" "$messages" || exit 1
	done
	bytes_of_qp "$kind" || exit 1
	rdma link del rxe_w0
	wait_for 10 no_device || exit 1
	ip link del wd0
done
