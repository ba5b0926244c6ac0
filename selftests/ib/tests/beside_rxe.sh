# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# rdma_rxe beside Weft: loaded, used on another netdev and on the same one, its netdevs renamed, resized and
# removed, unloaded, all while Weft carries checked traffic and udevd runs.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "is about Weft beside rdma_rxe"
modinfo rdma_rxe >/dev/null 2>&1 || skip "this kernel has no rdma_rxe"

# What stands still would not be noticed by a check at the end: each step has its own.
step() { # NAME CMD...
	local name=$1
	shift
	part "$name" "$@"
	part "Weft's traffic after: $name" traffic_goes_on
	TRAFFIC_SEEN=$(<"$TMP/traffic.count")
}

names_are() { # NAME...: exactly these devices
	local names
	names=$(rdma dev show | sed 's/^[0-9]*: \([^:]*\):.*/\1/' | sort | xargs)
	equal "RDMA devices" "$names" "$(printf '%s\n' "$@" | sort | xargs)"
}

# rdma_rxe's own traffic, end to end through rdma_cm on its own netdev.
rxe_rping() { # ADDRESS
	A_DEV=rxe_r5 B_DEV=rxe_r5
	serve cm_listens b 7175 -- rping -s -V -a "$1" -p 7175 -S 3000 -C 10 -v -- \
		rping -c -V -a "$1" -p 7175 -S 3000 -C 10 -v || return 1
	equal "pings" "$(grep -c '^ping data' "$TMP/client")" 10
}

pingpong_on() { # DEVICE ADDRESS
	A_DEV=$1 B_DEV=$1
	serve listens b 18515 -- ibv_rc_pingpong -c -n 30 -d "$1" -g "$(gid_index b "$2")" -- \
		ibv_rc_pingpong -c -n 30 -d "$1" -g "$(gid_index a "$2")" "$2"
}

rxe_add() { # NAME NETDEV ADDRESS
	rdma link add "$1" type rxe netdev "$2" || return 1
	A_DEV=$1
	wait_for 10 gid_index a "$3"
}

moved_on() { # DEVICE COUNTER BEFORE
	local now
	nap 0.02
	read -r now <"/sys/class/infiniband/$1/ports/1/hw_counters/$2"
	[ "$now" -gt "$3" ]
}

other_netdev() {
	new_netdev wd5 4200
	ip addr add 198.51.100.5/24 dev wd5
	rxe_add rxe_r5 wd5 198.51.100.5 && names_are rxe_w0 rxe_r5
}

same_netdev() {
	rxe_add rxe_r0 wd0 192.0.2.1 && names_are rxe_w0 rxe_r5 rxe_r0 && pingpong_on rxe_r0 192.0.2.1 &&
		moved_on rxe_r0 rcvd_pkts 30
}

renames() {
	local old new
	for old in wd5 wd6; do
		new=wd6
		[ "$old" = wd5 ] || new=wd5
		ip link set "$old" down && ip link set "$old" name "$new" && ip link set "$new" up || return 1
	done
	names_are rxe_w0 rxe_r5 rxe_r0
}

resizes() {
	local mtu
	for mtu in 1500 9000 4200; do
		ip link set wd5 mtu "$mtu" && ip link set wd0 mtu "$mtu" || return 1
	done
}

removed() {
	ip link del wd5 && wait_for 10 gone rxe_r5 && names_are rxe_w0 rxe_r0
}

gone() { # DEVICE
	[ ! -e "/sys/class/infiniband/$1" ]
}

unload() {
	rmmod rdma_rxe && names_are rxe_w0 && ! grep -q '^rdma_rxe ' /proc/modules
}

again_and_again() {
	local turn
	for turn in 1 2 3; do
		modprobe rdma_rxe && rxe_add rxe_r0 wd0 192.0.2.1 || return 1
		[ "$turn" != 2 ] || rdma link del rxe_r0 || return 1
		rmmod rdma_rxe || return 1
	done
	names_are rxe_w0
}

# rdma_rxe was first on the netdev: QP1 stays with it, Weft says so and serves without rdma_cm.
rxe_first() {
	clean_all || return 1
	modprobe rdma_rxe
	new_netdev wd5 4200
	ip addr add 198.51.100.5/24 dev wd5
	rxe_add rxe_r5 wd5 198.51.100.5 || return 1
	add_link '' rxe_w0 wd5 weft || return 1
	A_DEV=rxe_w0
	wait_for 10 gid_index a 198.51.100.5 || return 1
	weft link show rxe_w0 | grep -q 'gsi rdma_rxe' || { weft link show rxe_w0; return 1; }
	pingpong_on rxe_w0 198.51.100.5 && pingpong_on rxe_r5 198.51.100.5 && rxe_rping 198.51.100.5
}

modprobe rdma_rxe
/lib/systemd/systemd-udevd >"$TMP/udevd.log" 2>&1 &
UDEVD=$!
wait_for 20 udevadm control --ping --timeout=1 || fail "udevd does not run: $(cat "$TMP/udevd.log")"
topo_self 4200
traffic_start || fail "no traffic"
step "rdma_rxe on another netdev" other_netdev
step "rping over rdma_rxe" rxe_rping 198.51.100.5
step "rdma_rxe on Weft's own netdev" same_netdev
step "rdma_rxe's netdev renamed" renames
step "netdevs resized" resizes
step "rping over rdma_rxe once more" rxe_rping 198.51.100.5
step "rdma_rxe's netdev removed" removed
step "rdma_rxe unloaded with a link on Weft's netdev" unload
step "loaded, used and unloaded again and again" again_and_again
udevadm settle --timeout=20
part "no device was renamed" names_are rxe_w0
part "Weft's traffic, to the last byte" traffic_stop
part "rdma_rxe first on the netdev" rxe_first
kill "$UDEVD"
wait "$UDEVD"
finish
