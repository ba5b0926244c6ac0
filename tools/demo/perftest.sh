# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# perftest on one device that talks to itself: numbers out of its reports, and the table of the demo.

perftest_port=18515

# perftest_once LOG TOOL DEVICE ARGUMENTS...: server and client; the client's report goes to LOG.
perftest_once() {
	local log=$1 tool=$2 device=$3 server
	shift 3
	perftest_port=$((perftest_port + 1))
	# An emulated CPU may pause for longer than the 67 ms that a QP's timeout is by default: 1 s.
	set -- -d "$device" -F -p "$perftest_port" -u 18 "$@"
	timeout 120 "$tool" "$@" >"$log.server" 2>&1 &
	server=$!
	until ss -Hltn "sport = :$perftest_port" | grep -q .; do
		kill -0 "$server" 2>/dev/null || break
		sleep 0.02
	done
	if ! timeout 120 "$tool" "$@" 127.0.0.1 >"$log" 2>&1 || ! wait "$server"; then
		echo "demo: $tool $* failed:" >&2
		grep -ihE 'error|fail|unable|could|status' "$log" "$log.server" >&2
		return 1
	fi
}

# Column N of the one line of results.
perftest_value() { awk -v n="$2" '/^ *#bytes/ { getline; print $n; exit }' "$1"; }

# perftest COLUMN LOG TOOL DEVICE ARGUMENTS...: the value. perftest finds the frequency of the CPU by
# measuring; when the machine is disturbed meanwhile it fails, and says 0 or inf: then once more.
perftest() {
	local column=$1 value
	shift
	for _ in 1 2 3 4; do
		perftest_once "$@" || return
		value=$(perftest_value "$1" "$column")
		awk -v value="$value" 'BEGIN { exit !(value ~ /^[0-9.]+$/ && value > 0) }' && break
	done
	echo "$value"
}

# Jiffies that the CPUs were not idle.
busy_jiffies() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# bandwidth WORK VERB DEVICE: of 64 KiB messages; and the CPU time of one, without what it costs to start
# and end the two programs.
bandwidth() {
	local log=$1/bw tool=ib_$2_bw device=$3 few=5 many=505 start short long
	start=$(busy_jiffies)
	perftest 4 "$log" "$tool" "$device" -s 65536 -n $few >"$log.few"
	short=$(($(busy_jiffies) - start))
	start=$(busy_jiffies)
	perftest 4 "$log" "$tool" "$device" -s 65536 -n $many
	long=$(($(busy_jiffies) - start))
	awk -v busy=$((long - short)) -v hz="$(getconf CLK_TCK)" -v n=$((many - few)) 'BEGIN {
		if (busy > 0) printf "%.0f\n", busy / hz / n * 1e6; else print "(noise)" }'
}

# One column of the table for one verb, a line each.
perftest_column() { # WORK VERB DEVICE
	perftest 5 "$1/lat" "ib_$2_lat" "$3" -s 64 -n 300
	bandwidth "$@"
	perftest 5 "$1/rate" "ib_$2_bw" "$3" -s 64 -n 2000 >"$1/mpps"
	awk '{ printf "%.0f\n", $1 * 1e6 }' "$1/mpps"
}

perftest_table() { # WORK
	local work=$1 verb
	printf '     %-7s %-30s %10s %14s %10s\n' '' '' Weft 'Weft, on wire' rdma_rxe
	for verb in send write read; do
		weft link set rxe_weft icrc auto shortcut on
		perftest_column "$work" $verb rxe_weft >"$work/plain"
		weft link set rxe_weft icrc always shortcut off
		perftest_column "$work" $verb rxe_weft >"$work/wire"
		perftest_column "$work" $verb rxe_rxe >"$work/rxe"
		printf '%s\n' "64 B latency, us (typical)" "64 KiB bandwidth, MiB/s" \
			"64 KiB CPU time, us/message" "64 B messages per second" |
			paste -d '|' - "$work/plain" "$work/wire" "$work/rxe" >"$work/rows"
		awk -F '|' -v verb="${verb^^}" '
			NF != 4 || $2 == "" || $3 == "" || $4 == "" { bad = 1 }
			{ printf "     %-7s %-30s %10s %14s %10s\n", NR == 1 ? verb : "", $1, $2, $3, $4 }
			END { exit bad || NR != 4 }' "$work/rows"
	done
}
