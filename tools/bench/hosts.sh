#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 64 KiB WRITE between two machines by wall clock: Weft, rdma_rxe and TCP take turns in the same boots.
# In both machines of `weft-vm run --hosts 2`: machine 1 only does what machine 0 asks it for.
#
# usage: hosts.sh [ROUNDS]
set -u
ROW=${ROW:-hosts} SLOW=${SLOW:-8}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

tcp() {
	serve listens b 5201 -- iperf3 -s -1 -- iperf3 -c "$B_HOST" -t 2 -f M >&2 || return 1
	# iperf3's MByte is 2^20, too.
	awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i == "MBytes/sec") print $(i - 1) }' "$TMP/client"
}

rdma_write() { # TYPE
	topo_hosts "$1" "$1"
	perftest 4 ib_write_bw -u 16 -s 65536 -n 4000
}

links_gone() {
	rdma link del rxe_w0
	on b rdma link del rxe_w1
}

rounds() { # N
	local round kind value
	for round in $(seq "$1"); do
		for kind in weft rxe tcp; do
			if [ $kind = tcp ]; then
				value=$(tcp) || return 1
			else
				value=$(rdma_write $kind) || return 1
				# A subshell made the links; their names are known.
				links_gone
			fi
			record write_64k "$kind" "$value" MB/s "\"round\": $round"
		done
	done
}

prepare
modprobe rdma_rxe || exit 1
if [ "${WEFT_HOST:-0}" != 0 ]; then
	"$SUITE/agent.sh" serve
	exit
fi
export B_HOST=192.0.2.2
A_NS='' B_NS=''
answers() {
	[ "$("$SUITE/agent.sh" run "$B_HOST" echo here)" = here ]
}
wait_for 60 answers || fail "machine 1 does not answer"
rc=0
rounds "${1:-9}" || rc=1
"$SUITE/agent.sh" quit "$B_HOST"
exit $rc
