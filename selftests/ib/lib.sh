# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the VM suite's tests share: topologies, servers, counters, and how a test ends.
#
# A topology has two ends, a and b; each has a device, a netdev, two addresses and a way to run a command
# there (`on a CMD`). Three of them carry the same tests:
#   self    one device on a dummy netdev, both ends are that device
#   pair    two devices on the two ends of a veth, each in a namespace of its own
#   hosts   two VMs on one Ethernet (hosts.sh)
# rdma_rxe, which the tests themselves are tried with (LINK_TYPE=rxe), knows the initial namespace only
# before 7.1: its pair is a self.

LINK_TYPE=${LINK_TYPE:-weft}
LEVEL=${LEVEL:-check}
SUITE=${SUITE:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
ROOT=$(cd "$SUITE/../.." && pwd)
export LINK_TYPE LEVEL SUITE ROOT PYTHONPATH=$SUITE/py PYTHONDONTWRITEBYTECODE=1
export PATH=$PATH:/usr/sbin:/sbin:$ROOT/build/userspace/bin

# How many times longer things may take: a kernel that was built to find faults, or a busy machine.
if [ -z "${SLOW-}" ]; then
	SLOW=1
	if [ -e /sys/kernel/debug/kmemleak ] || grep -qw kasan_init /proc/kallsyms 2>/dev/null; then
		SLOW=8
	fi
fi
export SLOW

# ---- how a test ends ------------------------------------------------------------

fail() {
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "$*"
	exit 4
}

note() { # shown with the result
	echo "# $*"
}

# A Python part of a test, with the topology in its environment. Its lines are parts, too.
python() { # FILE ARGUMENT...
	local file=$1
	shift
	export A_DEV A_NETDEV A_NS A_IP4 A_IP6 B_DEV B_NETDEV B_NS B_IP4 B_IP6 B_HOST TOPO
	/usr/bin/python3 "$SUITE/py/$file" "$@" || failures=$((failures + 1))
}

failures=0
# A part of a test: runs it, says how it ended, goes on. `finish` gives the verdict.
part() { # NAME CMD...
	local name=$1 log=$TMP/part.log
	shift
	if ("$@") >"$log" 2>&1; then
		echo "    ok - $name"
	else
		echo "    not ok - $name"
		sed 's/^/        /' "$log" | tail -n 40
		failures=$((failures + 1))
	fi
}

finish() {
	[ "$failures" = 0 ] || fail "$failures parts"
	exit 0
}

# Run a command until it is true. Never a fixed sleep: a slow machine gets its time, a quick one goes on.
# Conditions return; they do not `fail`.
wait_for() { # SECONDS CMD...
	local end=$((${EPOCHREALTIME/./} + $1 * SLOW * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
		nap 0.02
	done
}

# A sleep that starts no process: nothing ever comes out of this pipe.
exec {nap_fd}<> <(:)
nap() { # SECONDS
	read -rt "$1" -u "$nap_fd" || true
}

equal() { # WHAT GOT WANTED
	[ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

at_least() { # WHAT GOT LEAST
	[ "$2" -ge "$3" ] || fail "$1: $2, expected at least $3"
}

at_most() { # WHAT GOT MOST
	[ "$2" -le "$3" ] || fail "$1: $2, expected at most $3"
}

# ---- modules, links, and removing everything -------------------------------------

prepare() {
	modprobe -q ib_uverbs
	modprobe -q rdma_ucm
	for module in dummy veth; do
		modprobe -q "$module"
	done
	ip link set lo up
	load_modules
	rm -rf /var/run/netns/wt_*
}

# The driver under test. weft-vm has loaded Weft's modules from build/, so that modprobe need not know them.
load_modules() {
	local dir
	dir=$ROOT/build/modules/$(uname -r)
	if [ "$LINK_TYPE" != weft ]; then
		modprobe "rdma_$LINK_TYPE"
		return
	fi
	grep -q '^weft_core ' /proc/modules || insmod "$dir/weft_core.ko" || return 1
	grep -q '^weft_ib ' /proc/modules || insmod "$dir/weft_ib.ko"
}

add_link() { # NETNS NAME NETDEV [TYPE]
	[ "${4:-$LINK_TYPE}" = weft ] || modprobe -q "rdma_$4"
	in_ns "$1" rdma link add "$2" type "${4:-$LINK_TYPE}" netdev "$3"
}

# Everything that a test may have made: names begin with rxe or weft (links), w (netdevs), wt_ (netns).
clean_all() {
	local name rc=0 pid
	for name in $(rdma dev show | sed 's/^[0-9]*: \([^:]*\):.*/\1/'); do
		rdma link del "$name" || rc=1
	done
	for name in $(ip netns list | awk '/^wt_/ { print $1 }'); do
		for pid in $(ip netns pids "$name"); do
			kill -KILL "$pid"
		done
		ip netns del "$name" || rc=1
	done
	for name in $(ip -o link show | sed 's/^[0-9]*: \([^:@]*\)[:@].*/\1/' | grep '^w'); do
		ip link del "$name" 2>/dev/null
	done
	if ! wait_for 10 no_device; then
		echo "an RDMA device is left over:"
		rdma dev show
		rdma resource show qp
		rc=1
	fi
	nft flush ruleset 2>/dev/null
	if [ "${B_HOST-}" ]; then
		on b "$SUITE/hosts.sh" clean || rc=1
	fi
	[ "$LINK_TYPE" = rxe ] || rmmod rdma_rxe 2>/dev/null
	return "$rc"
}

no_device() {
	[ -z "$(rdma dev show)" ]
}

in_ns() { # NETNS CMD...
	local ns=$1
	shift
	if [ -n "$ns" ]; then
		ip netns exec "$ns" "$@"
	else
		"$@"
	fi
}

# ---- topologies -------------------------------------------------------------------

# Run on an end. `on b` may be another machine.
on() { # END CMD...
	local end=$1
	shift
	if [ "$end" = a ]; then
		in_ns "$A_NS" "$@"
	elif [ "${B_HOST-}" ]; then
		"$SUITE/agent.sh" run "$B_HOST" "$@"
	else
		in_ns "$B_NS" "$@"
	fi
}

# The same in a subshell that becomes the command, so that `&` gives the command's own pid.
on_exec() { # END CMD...
	local end=$1 ns=${1^^}_NS
	shift
	if remote "$end"; then
		exec "$SUITE/agent.sh" run "$B_HOST" "$@"
	elif [ "${!ns}" ]; then
		exec ip netns exec "${!ns}" "$@"
	fi
	exec "$@"
}

new_netdev() { # NAME MTU
	ip link add "$1" mtu "$2" type dummy
	ip link set "$1" up
}

add_addresses() { # NETNS NETDEV LAST
	in_ns "$1" ip addr add "192.0.2.$3/24" dev "$2"
	in_ns "$1" ip addr add "2001:db8::$3/64" dev "$2" nodad
}

# A netns with lo up and without duplicate address detection: its addresses are usable at once.
new_netns() { # NAME
	ip netns add "$1"
	in_ns "$1" ip link set lo up
	in_ns "$1" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0
}

topo_self() { # [MTU] [TYPE]
	TOPO=self
	sysctl -qw net.ipv6.conf.default.accept_dad=0
	new_netdev wd0 "${1:-4200}"
	add_addresses '' wd0 1
	add_link '' rxe_w0 wd0 "${2:-$LINK_TYPE}" || fail "rdma link add"
	A_NS='' A_DEV=rxe_w0 A_NETDEV=wd0 A_IP4=192.0.2.1 A_IP6=2001:db8::1
	B_NS='' B_DEV=rxe_w0 B_NETDEV=wd0 B_IP4=192.0.2.1 B_IP6=2001:db8::1
	wait_ends
}

topo_pair() { # [MTU]
	local end
	if [ "$LINK_TYPE" = rxe ]; then
		topo_self "$@"
		return
	fi
	TOPO=pair
	new_netns wt_a
	new_netns wt_b
	ip link add wv0 mtu "${1:-4200}" netns wt_a type veth peer name wv1 mtu "${1:-4200}" netns wt_b
	in_ns wt_a ip link set wv0 up
	in_ns wt_b ip link set wv1 up
	add_addresses wt_a wv0 1
	add_addresses wt_b wv1 2
	add_link wt_a rxe_w0 wv0 || fail "rdma link add"
	add_link wt_b rxe_w1 wv1 || fail "rdma link add"
	A_NS=wt_a A_DEV=rxe_w0 A_NETDEV=wv0 A_IP4=192.0.2.1 A_IP6=2001:db8::1
	B_NS=wt_b B_DEV=rxe_w1 B_NETDEV=wv1 B_IP4=192.0.2.2 B_IP6=2001:db8::2
	# A quiet veth pair would be passed by; what is tested here is the wire. Another root file system than the host's
	# may not have the libraries of the tool; a qdisc does it, too.
	for end in a b; do
		if weft --version >/dev/null 2>&1; then
			on $end weft link set "$(of $end DEV)" shortcut off || fail "weft link set"
		else
			on $end tc qdisc add dev "$(of $end NETDEV)" root pfifo || fail "tc qdisc add"
		fi
	done
	wait_ends
}

# Everything passes the qdisc and the wire, one packet at a time, with a real ICRC.
single_packets() {
	local end
	modprobe -q sch_netem
	for end in a b; do
		on $end weft link set "$(of $end DEV)" shortcut off icrc always || fail "weft link set"
		on $end ethtool -K "$(of $end NETDEV)" gso off || fail "ethtool -K"
	done
}

# Two links in one namespace: what they send to each other never leaves the host.
topo_twins() { # [MTU]
	local i
	TOPO=twins
	for i in 0 1; do
		new_netdev wd$i "${1:-4200}"
		add_addresses '' wd$i $((i + 1))
		add_link '' rxe_w$i wd$i || fail "rdma link add"
	done
	A_NS='' A_DEV=rxe_w0 A_NETDEV=wd0 A_IP4=192.0.2.1 A_IP6=2001:db8::1
	B_NS='' B_DEV=rxe_w1 B_NETDEV=wd1 B_IP4=192.0.2.2 B_IP6=2001:db8::2
	wait_ends
}

# Two machines, see hosts.sh: a is this one, b is $B_HOST. Addresses and netdevs are there already.
topo_hosts() { # [TYPE-OF-A TYPE-OF-B]
	TOPO=hosts
	A_NETDEV=$(netdev_of 192.0.2.1) B_NETDEV=$(on b "$SUITE/hosts.sh" netdev "$B_HOST")
	A_NS='' A_DEV=rxe_w0 A_IP4=192.0.2.1 A_IP6=2001:db8::1
	B_NS='' B_DEV=rxe_w1 B_IP4=192.0.2.2 B_IP6=2001:db8::2
	add_link '' rxe_w0 "$A_NETDEV" "${1:-$LINK_TYPE}" || fail "rdma link add"
	on b "$SUITE/hosts.sh" link rxe_w1 "$B_NETDEV" "${2:-$LINK_TYPE}" || fail "rdma link add on the other machine"
	wait_ends
}

netdev_of() { # ADDRESS
	ip -o -4 addr show to "$1" | awk '{ print $2; exit }'
}

# The topology that the environment asks for.
topo() { # [MTU]
	case ${TOPO:-pair} in
	self) topo_self "$@" ;;
	hosts) topo_hosts ;;
	*) topo_pair "$@" ;;
	esac
}

wait_ends() {
	local end dev ip
	for end in a b; do
		for ip in IP4 IP6; do
			dev=$(of $end DEV)
			wait_for 10 gid_index $end "$(of $end $ip)" ||
				fail "no GID for $(of $end $ip) on $dev, only at $(gid_indices $end | xargs)"
		done
		wait_for 10 port_is $end ACTIVE || fail "the port of $dev is not active"
		wait_for 10 has_link_local_gid $end || fail "no GID for the link-local address of $dev"
	done
}

of() { # END WHAT: A_DEV and the like by name
	local name=${1^^}_$2
	echo "${!name}"
}

port_is() { # END STATE
	on "$1" rdma link show "$(of "$1" DEV)/1" | grep -q "state $2 "
}

# An address as sysfs writes a GID.
gid_of() { # ADDRESS
	local part full='' head tail n
	case $1 in
	*.*)
		# shellcheck disable=SC2046,SC2183 # four numbers
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' $(echo "$1" | tr . ' ')
		return
		;;
	esac
	head=${1%%::*} tail=''
	case $1 in *::*) tail=${1#*::} ;; esac
	head=${head//:/ } tail=${tail//:/ }
	n=0
	for part in $head; do
		full+=$(printf '%04x:' "0x$part")
		n=$((n + 1))
	done
	for part in $tail; do
		n=$((n + 1))
	done
	while [ $n -lt 8 ]; do
		full+=0000:
		n=$((n + 1))
	done
	for part in $tail; do
		full+=$(printf '%04x:' "0x$part")
	done
	echo "${full%:}"
}

# Directory of an end's port in sysfs. rdma devices are seen from every namespace (shared mode).
port_dir() { # END
	local name=${1^^}_DEV
	echo "/sys/class/infiniband/${!name}/ports/1"
}

remote() { # END: is it another machine?
	[ "$1" = b ] && [ "${B_HOST-}" ]
}

# The table has 1024 entries and is filled from the front; a test has few addresses.
# Index of the RoCEv2 GID of an address. Exit code 1: there is none.
gid_index() { # END ADDRESS
	local dir gid file found type
	dir=$(port_dir "$1") gid=$(gid_of "$2")
	if remote "$1"; then
		on "$1" bash -c ". '$SUITE/lib.sh'; B_DEV=$B_DEV gid_index b $2"
		return
	fi
	for file in "$dir"/gids/{0..31}; do
		read -r found <"$file"
		[ "$found" = "$gid" ] || continue
		read -r type 2>/dev/null <"$dir/gid_attrs/types/${file##*/}" || continue
		if [ "$type" = "RoCE v2" ]; then
			echo "${file##*/}"
			return
		fi
	done
	return 1
}

# The link-local address comes with the carrier, after the others; its netdev's MAC may have changed since.
has_link_local_gid() { # END
	local address
	address=$(on "$1" ip -6 -o addr show dev "$(of "$1" NETDEV)" scope link | awk '{ print $4; exit }')
	[ "$address" ] && gid_index "$1" "${address%/*}" >/dev/null
}

# Indices of all GIDs that are set.
gid_indices() { # END
	local file found
	if remote "$1"; then
		on "$1" bash -c ". '$SUITE/lib.sh'; B_DEV=$B_DEV gid_indices b"
		return
	fi
	for file in "$(port_dir "$1")"/gids/{0..31}; do
		read -r found <"$file"
		[ "$found" = 0000:0000:0000:0000:0000:0000:0000:0000 ] || echo "${file##*/}"
	done
}

# ---- counters ---------------------------------------------------------------------

# The kernel repeats what it read of hardware counters within the same jiffy.
counter() { # END NAME
	local value
	nap 0.02
	if remote "$1"; then
		on "$1" cat "$(port_dir "$1")/hw_counters/$2"
	else
		read -r value <"$(port_dir "$1")/hw_counters/$2" && echo "$value"
	fi
}

# Values by line; of another machine with one command, for each costs a connection.
counter_values() { # END NAME...
	local end=$1 value
	local files=("${@:2}")
	files=("${files[@]/#/$(port_dir "$end")/hw_counters/}")
	if remote "$end"; then
		on "$end" cat "${files[@]}"
		return
	fi
	for value in "${files[@]}"; do
		read -r value <"$value" && echo "$value"
	done
}

# All counters of an end, "name value" by line.
counters() { # END
	local file value dir
	nap 0.02
	dir=$(port_dir "$1")
	if remote "$1"; then
		on "$1" bash -c "cd $dir/hw_counters && grep . *" | tr : ' '
		return
	fi
	for file in "$dir"/hw_counters/*; do
		read -r value <"$file" && echo "${file##*/} $value"
	done
}

# What moved between two outputs of counters: "name difference" by line.
moved() { # BEFORE AFTER (files)
	awk 'NR == FNR { was[$1] = $2; next } $2 != was[$1] { print $1, $2 - was[$1] }' "$1" "$2"
}

has_counter() { # END NAME
	[ -e "/sys/class/infiniband/$A_DEV/ports/1/hw_counters/$2" ]
}

# ---- servers and clients -----------------------------------------------------------

# Is a port in LISTEN state where the server runs?
listens() { # END PORT
	local port line file
	if remote "$1"; then
		on "$1" ss -Hltn "sport = :$2" | grep -q .
		return
	fi
	printf -v port ':%04X ' "$2"
	for file in tcp tcp6; do
		while read -r line; do
			[[ $line == *"$port"*:*" 0A "* ]] && return
		done <"/proc/$SERVER_PID/net/$file"
	done 2>/dev/null
	return 1
}

# A listening rdma_cm id: those of the kernel have no TCP port that could be looked at.
cm_listens() { # END PORT
	local line
	while read -r line; do
		[[ $line == *"state LISTEN"*":$2 "* ]] && return
	done < <(on "$1" rdma resource show cm_id)
	return 1
}

# Server on b, client on a, both must end with 0, within $PATIENCE seconds (30). Outputs in $TMP/server and
# $TMP/client.
serve() { # READY-COMMAND... -- SERVER... -- CLIENT...
	local ready=() server=() pid rc=0
	while [ "$1" != -- ]; do
		ready+=("$1")
		shift
	done
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	on_exec b "${server[@]}" >"$TMP/server" 2>&1 </dev/null &
	pid=$!
	SERVER_PID=$pid
	if ! wait_for 20 "${ready[@]}"; then
		echo "the server is not ready: ${server[*]}"
		cat "$TMP/server"
		kill "$pid" 2>/dev/null
		wait "$pid"
		return 1
	fi
	on a timeout $((${PATIENCE:-30} * SLOW)) "$@" >"$TMP/client" 2>&1 </dev/null || rc=$?
	if [ $rc != 0 ]; then
		echo "client: exit code $rc: $*"
		cat "$TMP/client"
		wait_for 2 ended "$pid" || kill "$pid" 2>/dev/null
	fi
	wait_for 20 ended "$pid" || { echo "the server does not end"; kill "$pid"; }
	wait "$pid" || { echo "server: exit code $?: ${server[*]}"; cat "$TMP/server"; rc=1; }
	return $rc
}

ended() { # PID
	! kill -0 "$1" 2>/dev/null
}

# The unit in which two ends can be compared: rdma_rxe of 6.1 counts no bytes.
balance_unit() {
	if has_counter a sent_bytes; then echo bytes; else echo pkts; fi
}

# Sent, received, dropped for want of a QP and sent again by a and b since `balance_start`: $sent_a, $rcvd_a, $drop_a,
# $again_a, …_b.
balance_read() {
	local end way i now
	nap 0.02
	for end in a b; do
		# rdma_rxe has neither of the last two.
		mapfile -t now < <(counter_values $end "sent_$UNIT" "rcvd_$UNIT" rx_drop_qpn retransmitted_pkts 2>/dev/null)
		i=0
		for way in sent rcvd drop again; do
			printf -v "${way}_$end" %d $((${now[i]:-0} - ${BALANCE[$end$way]-0}))
			i=$((i + 1))
		done
	done
}

balance_start() {
	declare -gA BALANCE=()
	UNIT=$(balance_unit)
	balance_read
	BALANCE=([asent]=$sent_a [arcvd]=$rcvd_a [adrop]=$drop_a [aagain]=$again_a
		[bsent]=$sent_b [brcvd]=$rcvd_b [bdrop]=$drop_b [bagain]=$again_b)
}

# The largest packet, which a probe of the tail sends again when its acknowledgement is late.
PROBE_MAX=4140

# Each end received what the other one sent. The last packet may find a QP that is gone: it is then counted by
# rx_drop_qpn alone, and has $STRAY bytes at most (32: an acknowledgement), or is one of those sent again.
# rdma_rxe drops what comes twice without counting it.
balanced() {
	balance_read
	if [ "$UNIT" = pkts ]; then
		[ "$sent_a" -ge "$rcvd_b" ] && [ "$sent_b" -ge "$rcvd_a" ]
		return
	fi
	arrived "$sent_a" "$rcvd_b" "$drop_b" "$again_a" && arrived "$sent_b" "$rcvd_a" "$drop_a" "$again_b"
}

arrived() { # SENT RECEIVED DROPPED SENT-AGAIN
	local probes=$(($4 < $3 ? $4 : $3))
	[ "$1" -ge "$2" ] && [ "$1" -le $(($2 + ($3 - probes) * ${STRAY:-32} + probes * PROBE_MAX)) ]
}

# serve, after which the ends must be balanced, with $LEAST bytes on the wire at least.
serve_balanced() {
	balance_start
	serve "$@" || return 1
	if ! wait_for 3 balanced; then
		echo "$UNIT sent by a: $sent_a, received by b: $rcvd_b, sent by b: $sent_b, received by a: $rcvd_a"
		echo "packets without a QP: a $drop_a, b $drop_b"
		return 1
	fi
	[ "$UNIT" = pkts ] || at_least "bytes on the wire" $((rcvd_a + rcvd_b)) "${LEAST:-1}"
}

# ---- traffic in the background ------------------------------------------------------

# Checked RC traffic between the ends (py/traffic.py) until traffic_stop.
traffic_start() {
	export A_DEV A_IP4 A_IP6 B_DEV B_IP4 B_IP6
	echo 0 >"$TMP/traffic.count"
	/usr/bin/python3 "$SUITE/py/traffic.py" "$TMP/traffic.count" >"$TMP/traffic.log" 2>&1 &
	TRAFFIC_PID=$!
	TRAFFIC_SEEN=0
	traffic_goes_on
}

# It has done something since the last call, and is still at it.
traffic_goes_on() {
	wait_for 30 traffic_moved || {
		echo "no traffic beyond $TRAFFIC_SEEN operations"
		cat "$TMP/traffic.log"
		return 1
	}
	TRAFFIC_SEEN=$(<"$TMP/traffic.count")
	kill -0 "$TRAFFIC_PID"
}

traffic_moved() {
	local count
	read -r count <"$TMP/traffic.count" && [ "${count:-0}" -gt $((TRAFFIC_SEEN + 8)) ]
}

traffic_stop() {
	kill "$TRAFFIC_PID"
	wait_for 60 grep -q '^clean end' "$TMP/traffic.log" || {
		cat "$TMP/traffic.log"
		return 1
	}
}
