# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# perftest on one device that talks to itself: numbers out of its reports, and the table of the demo.

perftest_port=18515

# Jiffies that all CPUs were not idle.
busy_jiffies() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# perftest LOG TOOL DEVICE ARGUMENTS...: server and client; the client's report goes to LOG.
perftest() {
	local log=$1 tool=$2 device=$3 server
	shift 3
	perftest_port=$((perftest_port + 1))
	set -- -d "$device" -F -p "$perftest_port" "$@"
	timeout 60 "$tool" "$@" >"$log.server" 2>&1 &
	server=$!
	until ss -Hltn "sport = :$perftest_port" | grep -q .; do
		kill -0 "$server" 2>/dev/null || break
		sleep 0.02
	done
	if ! timeout 60 "$tool" "$@" 127.0.0.1 >"$log" 2>&1 || ! wait "$server"; then
		echo "demo: $tool on $device failed:" >&2
		tail -n 5 "$log" "$log.server" >&2
		return 1
	fi
}

# Column N of the one line of results.
perftest_column() { awk -v n="$2" '/^ *#bytes/ { getline; print $n; exit }' "$1"; }

# One column of the table for one verb: latency, bandwidth, rate, CPU; a line each.
perftest_column_of() { # WORK VERB DEVICE
	local log=$1/perftest verb=$2 device=$3 idle busy n=1000
	perftest "$log" "ib_${verb}_lat" "$device" -s 64 -n 1000
	perftest_column "$log" 5
	# What starting and ending the two programs costs is not the message's.
	idle=$(busy_jiffies)
	perftest "$log" "ib_${verb}_bw" "$device" -s 65536 -n 5
	busy=$(busy_jiffies)
	idle=$((busy - idle))
	perftest "$log" "ib_${verb}_bw" "$device" -s 65536 -n $((n + 5))
	busy=$(($(busy_jiffies) - busy - idle))
	perftest_column "$log" 4
	perftest "$log.rate" "ib_${verb}_bw" "$device" -s 64 -n 5000
	perftest_column "$log.rate" 5 | awk '{ printf "%.0f\n", $1 * 1e6 }'
	awk -v busy=$busy -v hz="$(getconf CLK_TCK)" -v n=$n 'BEGIN {
		printf "%.0f\n", (busy > 0 ? busy : 0) / hz / n * 1e6 }'
}

perftest_table() { # WORK
	local work=$1 verb
	printf '     %-7s %-32s %10s %14s %10s\n' '' '' Weft 'Weft, on wire' rdma_rxe
	for verb in send write read; do
		weft link set rxe_weft icrc auto shortcut on
		perftest_column_of "$work" $verb rxe_weft >"$work/plain"
		weft link set rxe_weft icrc always shortcut off
		perftest_column_of "$work" $verb rxe_weft >"$work/wire"
		perftest_column_of "$work" $verb rxe_rxe >"$work/rxe"
		printf '%s\n' "64 B latency, µs (typical)" "64 KiB bandwidth, MiB/s" \
			"64 B messages per second" "64 KiB CPU time, µs per message" |
			paste -d '|' - "$work/plain" "$work/wire" "$work/rxe" |
			awk -F '|' -v verb="${verb^^}" '{
				if (NF != 4 || $2 == "" || $3 == "" || $4 == "") exit 1
				printf "     %-7s %-32s %10s %14s %10s\n", NR == 1 ? verb : "", $1, $2, $3, $4 }'
	done
}
