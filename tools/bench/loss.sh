#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 1 MiB WRITEs over a veth that delays, loses and reorders single packets: goodput, and what was sent again.
#
# usage: loss.sh [--links "LINK..."] [--losses "PERCENT..."] [--runs N] [--messages N] [--seconds N] [--no-reorder]
#
# A run ends after that many messages or seconds (40), whichever comes first: its goodput is a rate.
# The wire is netem on both ends. Segmentation is off, so that a frame is a packet; whether netem really
# dropped packets and no batches is for the reader of the records to compare: "dropped" is its own count of
# the data's direction, "missing" what the one end sent and the other did not receive.
set -u
ROW=${ROW:-loss}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

links=weft losses="0.1 1 5" runs=3 messages=2000 seconds=40 reorder=yes
while [ $# -gt 0 ]; do
	case $1 in
	--links) links=$2 && shift ;;
	--losses) losses=$2 && shift ;;
	--runs) runs=$2 && shift ;;
	--messages) messages=$2 && shift ;;
	--seconds) seconds=$2 && shift ;;
	--no-reorder) reorder='' ;;
	*)
		sed -n '5s/^# //p' "$0" >&2
		exit 2
		;;
	esac
	shift
done

no_batches() {
	local end
	for end in a b; do
		on $end ethtool -K "$(of $end NETDEV)" tso off gso off tx-udp-segmentation off tx-gso-list off || return 1
	done
}

# netem that can be seeded is newer than 6.1: there the runs differ by chance.
wire() { # SEED NETEM...
	local end seed=''
	wire_gone
	for end in a b; do
		[ "$can_seed" ] && seed="seed $(($1 * 2 + $([ $end = a ] && echo 0 || echo 1)))"
		# shellcheck disable=SC2086 # words
		on $end tc qdisc add dev "$(of $end NETDEV)" root netem limit 100000 "${@:2}" $seed || return 1
	done
}

wire_gone() {
	on a tc qdisc del dev "$A_NETDEV" root 2>/dev/null
	on b tc qdisc del dev "$B_NETDEV" root 2>/dev/null
}

dropped() { # END
	on "$1" tc -s qdisc show dev "$(of "$1" NETDEV)" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'
}

counts=(a:sent_pkts a:sent_bytes a:retransmitted_pkts b:rcvd_pkts)
read_counts() {
	local one
	nap 0.1
	for one in "${counts[@]}"; do
		counter_there "${one%%:*}" "${one##*:}" || echo 0
	done
}

# One run: a record with what moved.
run() { # LINK FIGURE MESSAGES MEMBERS
	local got before after
	mapfile -t before < <(read_counts)
	got=$(stream --bytes 1048576 --depth 16 --messages "$3" --events --seconds "$seconds") || exit 1
	mapfile -t after < <(read_counts)
	record "$2" "$1" "$(member mb_per_s <<<"$got")" MB/s "$4, \"seeded\": ${can_seed:-false}, \"status\": \"$(member status <<<"$got")\", \
\"messages\": $(member messages <<<"$got"), \"seconds\": $(member seconds <<<"$got"), \
\"sent\": $((after[0] - before[0])), \"sent_bytes\": $((after[1] - before[1])), \
\"retransmitted\": $((after[2] - before[2])), \"missing\": $((after[0] - before[0] - after[3] + before[3])), \
\"dropped\": $(dropped a), \"dropped_back\": $(dropped b)"
}

all_of() { # LINK
	local loss seed
	wire 1 delay 50us || exit 1
	run "$1" goodput "$messages" '"loss": 0, "run": 1'
	for loss in $losses; do
		for seed in $(seq 1 "$runs"); do
			wire "$seed" delay 50us loss "$loss%" || exit 1
			run "$1" goodput "$messages" "\"loss\": $loss, \"run\": $seed"
		done
	done
	[ "$reorder" ] || return
	wire 1 delay 1ms || exit 1
	run "$1" reorder "$messages" '"reorder": 0'
	wire 1 delay 1ms reorder 25% gap 5 || exit 1
	run "$1" reorder "$messages" '"reorder": 25'
}

prepare
can_seed=''
case " $links " in *" rxe "*)
	modprobe rdma_rxe && rdma system set netns exclusive || exit 1
	;;
esac
for link in $links; do
	veth_pair "$link" 9000
	no_batches || exit 1
	on a tc qdisc add dev "$A_NETDEV" root netem delay 1us seed 1 2>/dev/null && can_seed=true
	all_of "$link"
	veth_gone
done
