#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tail of 64 B SEND latency: events, one device to itself, and a CPU burner beside it that has the
# same priority. Percentiles are perftest's. Then the same of two processes and a pipe: what any driver's
# messages wait for there.
#
# usage: tail.sh [MESSAGES]
set -u
ROW=${ROW:-tail}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

burn() {
	while :; do :; done
}

prepare
modprobe rdma_rxe || exit 1
for kind in rxe weft; do
	topo_self 9000 "$kind"
	burn &
	burner=$!
	PATIENCE=600 perftest 5 ib_send_lat -e -s 64 -n "${1:-20000}" >/dev/null || exit 1
	kill "$burner"
	# bytes iterations min max typical average deviation 99% 99.9%
	read -r _ _ _ max typical average _ p99 p999 < <(grep -E '^ *64 ' "$TMP/client")
	record send_lat_64_p999 "$kind" "$p999" us \
		"\"typical\": $typical, \"average\": $average, \"p99\": $p99, \"max\": $max, \"messages\": ${1:-20000}"
	rdma link del rxe_w0
	wait_for 10 no_device || exit 1
	ip link del wd0
done
burn &
burner=$!
got=$("$ROOT/build/userspace/bin/weft_bench_pipe" "${1:-20000}") || exit 1
kill "$burner"
record pipe_p999 "" "$(member p999_us <<<"$got")" us \
	"\"typical\": $(member typical_us <<<"$got"), \"p99\": $(member p99_us <<<"$got"), \"max\": $(member max_us <<<"$got")"
