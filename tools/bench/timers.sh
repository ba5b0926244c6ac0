#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# RNR timers, and how long a silent peer is waited for, against the codes (weft_bench_timers).
#
# usage: timers.sh [RNR-CODES [ACK-CODES [RETRIES]]]    lists in quotes; all of the specification by default
set -u
ROW=${ROW:-timers}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

timer() { # LINK RNR|TIMEOUT CODE COUNT [NETDEV]
	local got
	got=$(on a "$ROOT/build/userspace/bin/weft_bench_timers" "$2" "$3" "$4" "${ends[@]}" "${@:5}") || {
		echo "$2 code $3, $4: failed" >&2
		record "$2" "$1" null us "\"code\": $3, \"count\": $4, \"expected\": null"
		return
	}
	record "$2" "$1" "$(member worst_us <<<"$got")" us \
		"\"code\": $3, \"count\": $4, \"expected\": $(member expected_us <<<"$got")"
}

prepare
veth_pair weft 4200
ends=("$A_DEV" "$(gid_there a)" "$B_DEV" "$(gid_there b)")
for code in ${1:-$(seq 1 31)}; do
	timer weft rnr "$code" 3 "$A_NETDEV"
done
for code in ${2:-$(seq 8 20)}; do
	for retries in ${3:-0 1 3 7}; do
		timer weft timeout "$code" "$retries"
	done
done
veth_gone
