#!/bin/bash
# SPDX-License-Identifier: MIT
# The demo inside the VM: says what it does, does it, checks it. Ends with 0 only if every step held.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."
PATH=$PWD/build/userspace/bin:$PATH
# shellcheck source=tools/demo/perftest.sh
. tools/demo/perftest.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo; echo "demo: step $step failed (line $LINENO: $BASH_COMMAND)" >&2' ERR

step=0
title() {
	step=$((step + 1))
	printf '\n%s\n' "==== $step. $*"
}
say() { printf '%s\n' "     $*"; }
run() {
	printf '%s\n' "   \$ $*"
	"$@" | sed 's/^/     /'
}
fail() {
	echo "demo: $*" >&2
	return 1
}
on() { # HOST COMMAND...: as a user of that host would type it
	printf '%s\n' "   $1 \$ ${*:2}"
	ip netns exec "$@" | sed 's/^/     /'
}

hosts() {
	title "Two hosts: network namespaces, joined by a cable (veth) with an MTU of 4200"
	ip netns add hostA
	ip netns add hostB
	ip link add vethA mtu 4200 netns hostA type veth peer name vethB mtu 4200 netns hostB
	local n=1 host
	for host in A B; do
		ip -n host$host link set lo up
		ip -n host$host addr add 192.0.2.$n/24 dev veth$host
		ip -n host$host addr add 2001:db8::$n/64 dev veth$host nodad
		ip -n host$host link set veth$host up
		n=$((n + 1))
	done
	on hostA ping -q -c 1 -W 5 192.0.2.2 >"$work/ping"
	say "hostA 192.0.2.1 and hostB 192.0.2.2 reach each other."
}

links() {
	title "An RDMA device on each: rdma link add"
	on hostA rdma link add rxe_a type weft netdev vethA
	on hostB rdma link add rxe_b type weft netdev vethB
	on hostA rdma link show rxe_a/1
	on hostA weft link show
	say "A request that makes no sense is refused, and Weft tells why:"
	if on hostA rdma link add rxe_x type weft netdev lo 2>"$work/refused"; then
		fail "a link on lo was not refused"
	fi
	sed 's/^/     /' "$work/refused"
	on hostA weft link why
}

# A GID is an address of the netdev; it appears when the address is usable.
wait_for_gid() { # DEVICE GID
	local tries
	for tries in {1..200}; do
		! grep -qsx "$2" -r "/sys/class/infiniband/$1/ports/1/gids/" || return 0
		sleep 0.1
	done
	fail "$1 has no GID $2 after $tries tries"
}

gids() {
	title "Their GIDs: one for each address of the netdev"
	wait_for_gid rxe_a 0000:0000:0000:0000:0000:ffff:c000:0201
	wait_for_gid rxe_b 0000:0000:0000:0000:0000:ffff:c000:0202
	local device ports index gid
	for device in rxe_a rxe_b; do
		ports=/sys/class/infiniband/$device/ports/1
		# The table has many entries; most are zeros.
		while IFS=: read -r index gid; do
			say "$device ${index##*/}  $gid  $(cat "$ports/gid_attrs/types/${index##*/}")"
		done < <(grep -rv '^[0:]*$' "$ports/gids/")
	done
}

start_server() { # OPTIONS...
	ip netns exec hostB rdma_write server "$@" >"$work/server" 2>&1 &
	server=$!
	until grep -q listens "$work/server"; do
		kill -0 $server 2>/dev/null || fail "the server ended: $(cat "$work/server")"
		sleep 0.05
	done
}

end_server() {
	wait $server || fail "the server ended with $?: $(cat "$work/server")"
	sed 's/^/     /' "$work/server"
}

one_sided_write() {
	title "rdma_write: hostA writes 1 MiB into a process on hostB that does not run"
	say "hostB \$ rdma_write server"
	start_server
	on hostA rdma_write client 192.0.2.2 --stop
	end_server
}

# Opcodes of RC: WRITE FIRST 6, MIDDLE 7, LAST 8, ACK 17.
check_capture() {
	awk -F '\t' '
		$3 == 17 { acked = $4; next }
		{ order = order $3 " "; if (n++ && $4 != last + 1) broken = 1; last = $4 }
		END { exit !(order == "6 7 7 8 " && !broken && acked == last) }' "$1"
}

capture() {
	title "One 16 KiB WRITE on the wire, path MTU 4096, as tshark decodes it"
	ip netns exec hostB tcpdump -Z root -U --immediate-mode -i vethB -w "$work/write.pcap" \
		udp port 4791 2>"$work/tcpdump" &
	local tcpdump=$!
	until grep -q 'listening on' "$work/tcpdump"; do
		kill -0 $tcpdump || fail "tcpdump: $(cat "$work/tcpdump")"
		sleep 0.05
	done
	start_server --bytes 16384
	ip netns exec hostA rdma_write client 192.0.2.2 >"$work/client"
	wait $server
	kill -INT $tcpdump
	wait $tcpdump

	# All but the connection's own messages, which go to QP1.
	tshark -r "$work/write.pcap" -Y 'infiniband.bth.destqp != 1' -T fields \
		-e ip.src -e ip.dst -e infiniband.bth.opcode -e infiniband.bth.psn \
		-e infiniband.bth.destqp -e udp.length 2>"$work/tshark" >"$work/packets" ||
		fail "tshark: $(cat "$work/tshark")"
	awk -F '\t' '
		BEGIN {
			name[6] = "RDMA WRITE FIRST"; name[7] = "RDMA WRITE MIDDLE"
			name[8] = "RDMA WRITE LAST"; name[17] = "ACKNOWLEDGE"
			format = "     %-10s  %-10s  %-18s  %-9s  %-9s  %s\n"
			printf format, "from", "to", "opcode", "PSN", "QP", "UDP bytes"
		}
		{ printf format, $1, $2, $3 in name ? name[$3] : $3, $4, $5, $6 }' "$work/packets"
	awk -F '\t' '{ print $1 "\t" $2 "\t" $3 "\t" $4 }' "$work/packets" >"$work/checked"
	check_capture "$work/checked" || fail "these are not FIRST, MIDDLE, MIDDLE, LAST and the ACK of LAST"
}

compare() {
	title "perftest, a device talking to itself: Weft and rdma_rxe in the same boot"
	local name address
	modprobe rdma_rxe
	for name in weft rxe; do
		address=$([ $name = weft ] && echo 198.51.100.1 || echo 203.0.113.1)
		ip link add dummy_$name mtu 9000 type dummy
		ip link set dummy_$name up
		ip addr add "$address/24" dev dummy_$name
		rdma link add rxe_$name type $name netdev dummy_$name
	done
	wait_for_gid rxe_weft 0000:0000:0000:0000:0000:ffff:c633:6401
	wait_for_gid rxe_rxe 0000:0000:0000:0000:0000:ffff:cb00:7101
	say "MTU 4096, 2 vCPUs. Weft twice: as it is, and with packets that go through the IP stack"
	say "and carry an ICRC (weft link set rxe_weft icrc always shortcut off), as rdma_rxe's do."
	perftest_table "$work"
}

counters() {
	title "What the devices counted"
	say "hostA \$ rdma statistic show link rxe_a/1      (what is not 0)"
	ip netns exec hostA rdma statistic show link rxe_a/1 >"$work/statistic"
	tr ' ' '\n' <"$work/statistic" | awk '
		NR > 2 && NR % 2 { name = $0 }
		NR > 2 && NR % 2 == 0 && $0 != 0 { printf "     %-26s %s\n", name, $0 }'
	grep -q 'sent_pkts [1-9]' "$work/statistic" || fail "rxe_a counted no packet"
	on hostA weft link show rxe_a -s
}

farewell() {
	cat <<-'END'

		==== Done: every step held. Where to go next:
		     make check                      the proof, in at most 15 minutes
		     make shell                      a prompt in such a VM: try ibv_devinfo, rping, perftest
		     tools/weft-vm run -- COMMAND    your own program on a Weft device, also in CI
		     make install                    Weft on this machine: README.md, "On a real machine"
		     Documentation/quickstart.rst, Documentation/examples.rst, weft-link(8)
	END
}

hosts
links
gids
one_sided_write
capture
compare
counters
farewell
