# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# rdma_cm with the tools of rdmacm-utils, IPv4 and IPv6: rping -V, ucmatose, udaddy, rstream -T v, mckey.
# lists: check full hosts
# limit: 180
. "$SUITE/lib.sh"

said() { # FILE WORDS
	grep -q "$2" "$TMP/$1" || {
		cat "$TMP/$1"
		return 1
	}
}

ping_validated() { # ADDRESS SIZE COUNT
	serve_balanced cm_listens b 7174 -- rping -s -V -a "$1" -p 7174 -S "$2" -C "$3" -v -- \
		rping -c -V -a "$1" -p 7174 -S "$2" -C "$3" -v &&
		equal "pings" "$(grep -c '^ping data' "$TMP/client")" "$3"
}

connected() { # TOOL ADDRESS COUNT SIZE
	# The tool's own word is its exit code; the counters say that the messages went both ways.
	LEAST=$((2 * $3 * $4)) serve_balanced cm_listens b 7174 -- "$1" -b "$2" -p 7174 -C "$3" -S "$4" -- \
		"$1" -s "$2" -p 7174 -C "$3" -S "$4"
}

datagrams() { # ADDRESS
	LEAST=$((2 * 20 * 512)) serve_balanced cm_listens b 7174 -- udaddy -b "$1" -C 20 -S 512 -- \
		udaddy -s "$1" -C 20 -S 512
}

stream() { # ADDRESS OPTION...
	local address=$1
	shift
	# A credit that meets a peer who has gone: BTH, RETH, immediate, 16 bytes, ICRC.
	STRAY=52 serve_balanced cm_listens b 7171 -- rstream -b "$address" -p 7171 -T v "$@" -- \
		rstream -s "$address" -p 7171 -T v "$@"
}

joined() {
	grep -q 'joined dgid' "$TMP/server" && grep -q 'receiving data' "$TMP/server"
}

multicast() { # GROUP BIND-A BIND-B
	local before
	before=$(counter b "rcvd_$(balance_unit)")
	serve joined -- stdbuf -oL mckey -m "$1" -b "$3" -C 10 -S 256 -- \
		stdbuf -oL mckey -s -m "$1" -b "$2" -C 10 -S 256 || return 1
	said server 'test complete' || return 1
	at_least "received" $(($(counter b "rcvd_$(balance_unit)") - before)) 10
}

topo
count=20
[ "$LEVEL" = full ] && count=500
for end in a b; do
	on $end ip route add 224.0.0.0/4 dev "$(of $end NETDEV)" 2>/dev/null
done
for ip in "$B_IP4" "$B_IP6"; do
	part "rping -V, $ip" ping_validated "$ip" 4000 $count
	part "ucmatose, $ip" connected ucmatose "$ip" $count 3000
	part "udaddy, $ip" datagrams "$ip"
	part "rstream -T v, $ip" stream "$ip" -S 65536 -I 5 -C 5
done
part "rping -V, 64 KiB - 1" ping_validated "$B_IP4" 65535 5
part "rping -V, the least size" ping_validated "$B_IP4" 23 5
part "rstream -T v, blocking" stream "$B_IP4" -T b -S 4096 -I 10 -C 2
# The kernel refuses an rdma_cm join of an IPv6 group over RoCEv2 (ENOTSUPP).
part "mckey, IPv4" multicast 239.7.7.7 "$A_IP4" "$B_IP4"
finish
