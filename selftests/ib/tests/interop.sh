# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Weft and rdma_rxe on two machines, each once on either side: the same bytes, rdma_rxe's own counters, and a
# capture whose every ICRC is right.
# lists: hosts
# limit: 400
. "$SUITE/lib.sh"

[ "${TOPO-}" = hosts ] || skip "needs two machines: hosts.sh"

ping_validated() { # ADDRESS SIZE
	serve cm_listens b 7174 -- rping -s -V -a "$1" -p 7174 -S "$2" -C 10 -v -- \
		rping -c -V -a "$1" -p 7174 -S "$2" -C 10 -v &&
		equal "pings" "$(grep -c '^ping data' "$TMP/client")" 10
}

pingpong() {
	serve listens b 18515 -- "ibv_$1_pingpong" -c -n 30 -s 1000 -d "$B_DEV" -g "$(gid_index b "$B_IP4")" -- \
		"ibv_$1_pingpong" -c -n 30 -s 1000 -d "$A_DEV" -g "$(gid_index a "$A_IP4")" "$B_IP4"
}

# Every operation went over the wire both ways, and each frame's ICRC is what our own computation gives.
captured() {
	local name
	cat "$TMP/frames"
	for name in SEND WRITE READ_REQUEST FAA CAS ACK; do
		grep -q "^\(out\|in\) $name " "$TMP/frames" || fail "no $name in the capture"
	done
	for name in "out SEND" "in ACK" "out READ_REQUEST" "in READ_RESPONSE" "in ATOMIC_ACK" "in SEND"; do
		grep -q "^$name " "$TMP/frames" || fail "'$name' is not in the capture"
	done
	awk '$4 > 0 { print; bad = 1 } END { exit bad }' "$TMP/frames" || fail "frames with a wrong ICRC"
}

# rdma_rxe's counters moved on its side by at least what the wire saw from and to it.
rxe_took_part() { # END
	local way frames other=out
	counters "$1" >"$TMP/rxe.1"
	moved "$TMP/rxe.0" "$TMP/rxe.1" | tee "$TMP/rxe"
	[ "$1" = a ] && other=in
	frames=$(awk -v way="$other" '$1 == way { n += $3 } END { print n + 0 }' "$TMP/frames")
	at_least "rcvd_pkts of rdma_rxe" "$(awk '$1 == "rcvd_pkts" { print $2 }' "$TMP/rxe")" "$((frames * 9 / 10))"
	at_least "sent_pkts of rdma_rxe" "$(awk '$1 == "sent_pkts" { print $2 }' "$TMP/rxe")" 100
	driver_is_rxe "$1"
}

# rdma_rxe does not say that it is Weft, so it was never sent an extended NAK, and nothing was held for it.
rxe_is_no_weft() { # END-OF-WEFT
	equal "extended NAKs" "$(counter "$1" ext_nak_sent)" 0
	equal "held packets" "$(counter "$1" held_pkts)" 0
}

# No Weft counter there, and Weft's are here.
driver_is_rxe() { # END
	local other=a
	[ "$1" = a ] && other=b
	on "$1" test ! -e "$(port_dir "$1")/hw_counters/rx_drop_icrc" || fail "$1 is not rdma_rxe"
	on "$other" test -e "$(port_dir "$other")/hw_counters/rx_drop_icrc" || fail "$other is not Weft"
}

both_ways() { # TYPE-A TYPE-B
	local sniffer server rxe=b weft=a
	[ "$1" = rxe ] && rxe=a weft=b
	topo_hosts "$1" "$2"
	note "client $1, server $2"
	counters $rxe >"$TMP/rxe.0"
	/usr/bin/python3 "$SUITE/py/sniff.py" "$A_NETDEV" >"$TMP/frames" &
	sniffer=$!
	wait_for 20 grep -q ready "$TMP/frames" || fail "the capture does not begin"
	on_exec b /usr/bin/python3 "$SUITE/py/vx.py" serve 7900 &
	server=$!
	wait_for 20 listens b 7900 || fail "the other machine's end does not listen"
	python transfer.py
	for ip in "$B_IP4" "$B_IP6"; do
		part "rping -V, $ip" ping_validated "$ip" 4000
	done
	for kind in rc uc ud; do
		part "ibv_${kind}_pingpong -c" pingpong $kind
	done
	kill "$sniffer"
	wait "$sniffer" || fail "the capture ended with $?"
	kill "$server"
	part "the capture" captured
	part "rdma_rxe took part" rxe_took_part $rxe
	part "rdma_rxe is not taken for Weft" rxe_is_no_weft $weft
	clean_all || fail "could not clean up"
}

both_ways weft rxe
both_ways rxe weft
finish
