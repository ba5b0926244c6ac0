# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What is refused: links that cannot be, parameters out of range, settings out of range, rmmod in use. An errno
# for each, and its reason by `weft link why`.
# lists: check full
# limit: 60
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "the refusals are Weft's"

# Link add must fail with these words of the errno, and `weft link why` must name link, netdev and reason.
refused() { # ERRNO-TEXT REASON NAME NETDEV
	local said
	said=$(rdma link add "$3" type weft netdev "$4" 2>&1) && fail "$3 on $4 was taken"
	[[ $said == *"$1"* ]] || fail "$3 on $4: '$said', expected '$1'"
	[ "$2" ] || return 0
	said=$(weft link why)
	[[ $said == *"$3"*"$4"* ]] || fail "why: '$said', expected $3 and $4"
	[[ $said == *$2* ]] || fail "why: '$said', expected '$2'"
	weft link why --json | grep -q "\"reason\""
}

not_taken() { # "MODULE-PARAMETER=VALUE" ...
	local word dir rc
	dir=$ROOT/build/modules/$(uname -r)
	for word in "$@"; do
		if insmod "$dir/weft_ib.ko" "$word" 2>"$TMP/insmod"; then
			fail "weft_ib.ko was loaded with $word"
		fi
		grep -qiE 'invalid|range' "$TMP/insmod" || fail "$word: $(cat "$TMP/insmod")"
		grep -q '^weft_ib ' /proc/modules && fail "weft_ib stayed with $word"
	done
	return 0
}

parameters() {
	local name dir=$ROOT/build/modules rc=0 words=()
	rmmod weft_ib || return 1
	while read -r name; do
		words+=("$name=-1" "$name=100000" "$name=nonsense")
	done < <(modinfo -F parm "$dir/$(uname -r)/weft_ib.ko" | sed -n 's/^\(rx_queues\|num_rx_queues\|rxq\):.*/\1/p')
	[ ${#words[@]} -gt 0 ] || { echo "no parameter for the number of receive queues"; rc=1; }
	(not_taken "${words[@]}") || rc=1
	load_modules || rc=1
	return "$rc"
}

settings() {
	local word
	for word in "rx-queues 0" "rx-queues 65" "rx-usecs 100001" "rx-frames 4097" "icrc never" "shortcut maybe" \
		"placement late" "rx-frames 8" "unknown 1" "rx-queues"; do
		# shellcheck disable=SC2086 # two words
		if weft link set rxe_w0 $word 2>"$TMP/set"; then
			fail "weft link set $word was taken"
		fi
		[ -s "$TMP/set" ] || fail "no reason for $word"
	done
	weft link set nothing rx-queues 1 2>/dev/null && fail "a link that is not there was set"
	weft link show rxe_w0 | grep -q 'rx-usecs 0 rx-frames 1 ' || fail "changed: $(weft link show rxe_w0)"
}

in_use() {
	/usr/bin/python3 -c "
import sys
sys.path.insert(0, '$SUITE/py')
import vx
end = vx.End('$A_DEV', '$A_IP4')
print('open', flush=True)
sys.stdin.read()" < <(exec sleep infinity) >"$TMP/user" 2>&1 &
	local pid=$! said
	wait_for 20 grep -q open "$TMP/user" || fail "no user: $(cat "$TMP/user")"
	said=$(rmmod weft_ib 2>&1) && fail "rmmod while a QP is open"
	[[ $said == *"in use"* ]] || fail "rmmod: $said"
	[[ $(rdma dev show) == *"$A_DEV"* ]] || fail "the device is gone"
	kill "$pid"
	wait "$pid" 2>/dev/null
	wait_for 10 no_user || fail "still used: $(grep weft_ib /proc/modules)"
}

no_user() {
	[[ $(</proc/modules) == *"weft_ib "[0-9]*" 0 "* ]]
}

idle() {
	rmmod weft_ib || return 1
	no_device || return 1
	ip link show "$A_NETDEV" >/dev/null || return 1
	load_modules
}

kernel_only() {
	# A name that no provider matches: told once, visible, and no user context.
	dmesg >"$TMP/before"
	new_netdev wd7 1500
	add_link '' weft7 wd7 || return 1
	rdma link show weft7/1 | grep -q weft7 || return 1
	dmesg | tail -n +$(($(wc -l <"$TMP/before") + 1)) | grep -qi weft7 || { echo "not said"; dmesg | tail -n 5; return 1; }
	ibv_devinfo -d weft7 >/dev/null 2>&1 && return 1
	rdma link del weft7
}

topo_self
modprobe -q tun
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
ip tuntap add wt0 mode tun
ip link set wt0 up
new_netdev wd1 1500
part "not Ethernet: a tun" refused "Operation not supported" "Ethernet" rxe_x wt0
part "loopback" refused "Cannot assign requested address" "loopback" rxe_x lo
part "a name that is taken" refused "File exists" "rxe_w0" rxe_w0 wd1
part "a second link on a netdev" refused "Device or resource busy" "rxe_w0" rxe_x wd0
part "a name that cannot be" refused "Invalid argument" "name" 'rxe x' wd1
part "a netdev that is not there" refused "" "" rxe_x nothing
part "the netdevs are still usable" add_link '' rxe_w1 wd1
part "settings out of range" settings
part "a link that serves the kernel only says so" kernel_only
part "rmmod in use" in_use
part "rmmod with idle links" idle
part "module parameters out of range" parameters
finish
