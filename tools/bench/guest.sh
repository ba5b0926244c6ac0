#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guest's part of icount: each benchmark on each kind of link, figures to $WEFT_OUT/icount.json.
set -u
SUITE=$(cd "$(dirname "$0")/../../selftests/ib" && pwd) || exit 1
TMP=$(mktemp -d)
# Limits that no wait for a file reaches: see lib.sh.
export SUITE TMP SLOW=1000
# shellcheck source=selftests/ib/lib.sh
. "$SUITE/lib.sh"

# name, unit, column of perftest's result line, command
benchmarks='write_64k|MB/s|4|ib_write_bw -s 65536 -n 200
read_64k|MB/s|4|ib_read_bw -s 65536 -n 200
send_64k|MB/s|4|ib_send_bw -e -s 65536 -n 200
write_64|msg/s|5|ib_write_bw -s 64 -n 2000
send_lat_64_events|us|5|ib_send_lat -e -s 64 -n 500'

measure() { # COLUMN-OF-RESULTS COMMAND...
	local column=$1
	shift
	serve listens b 18515 -- "$@" -F -d "$B_DEV" -x "$(gid_index b "$B_IP4")" -- \
		"$@" -F -d "$A_DEV" -x "$(gid_index a "$A_IP4")" "$B_IP4" >&2 || return 1
	awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { value = $column } END { print value + 0; exit !(value > 0) }' \
		"$TMP/client"
}

all_of() { # WHAT
	local name unit column command value
	while IFS='|' read -r name unit column command; do
		# shellcheck disable=SC2086 # words of a command
		value=$(measure "$column" $command) || { echo "$1: $command failed" >&2; return 1; }
		[ "$unit" != msg/s ] || value=$(awk -v v="$value" 'BEGIN { print v * 1000000 }')
		echo "$1: $name $value $unit" >&2
		results+=("{\"link\": \"$1\", \"name\": \"$name\", \"unit\": \"$unit\", \"value\": $value, \"command\": \"$command\"}")
	done <<<"$benchmarks"
}

results=()
prepare
modprobe rdma_rxe || exit 1
for kind in rxe weft "weft, icrc always" "weft, shortcut off"; do
	topo_self 9000 "${kind%%,*}"
	case $kind in
	*always) weft link set rxe_w0 icrc always || exit 1 ;;
	*off) weft link set rxe_w0 shortcut off icrc always || exit 1 ;;
	esac
	all_of "$kind" || exit 1
	rdma link del rxe_w0
	wait_for 10 no_device || exit 1
	ip link del wd0
done
{
	echo "{\"kernel\": \"$(uname -r)\", \"results\": ["
	printf '%s,\n' "${results[@]}" | sed '$s/,$//'
	echo "]}"
} >"${WEFT_OUT:-$TMP}/icount.json"
