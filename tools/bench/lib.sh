# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# What the guest's parts of the benchmark share: records, topologies for both drivers, the two programs.
# $ROW is the name of the part; its records go to $WEFT_OUT/$ROW.jsonl, one line of JSON each.
SUITE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../selftests/ib" && pwd) || exit 1
TMP=$(mktemp -d)
# Under icount an idle guest's clock leaps to its next timer, also while it waits for a file of the host's: a
# limit in guest time must be one that no such wait reaches.
SLOW=${SLOW:-1000}
export SUITE TMP SLOW
# shellcheck source=selftests/ib/lib.sh
. "$SUITE/lib.sh"
OUT=${WEFT_OUT:-$TMP}/${ROW?}.jsonl
: >"$OUT"

# One figure; the rest are more members of the record, as JSON.
record() { # FIGURE LINK VALUE UNIT [JSON]
	echo "$2: $1 $3 $4" >&2
	printf '{"row": "%s", "kernel": "%s", "figure": "%s", "link": "%s", "value": %s, "unit": "%s"%s}\n' \
		"$ROW" "$(uname -r)" "$1" "$2" "$3" "$4" "${5:+, $5}" >>"$OUT"
}

member() { # NAME: of the JSON object on standard input; names are unique, strings without quotes
	sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p"
}

# Two namespaces joined by a veth, with a link of that type on each end.
veth_pair() { # TYPE MTU
	local end
	new_netns wt_a
	new_netns wt_b
	ip link add wv0 mtu "$2" netns wt_a type veth peer name wv1 mtu "$2" netns wt_b
	in_ns wt_a ip link set wv0 up
	in_ns wt_b ip link set wv1 up
	add_addresses wt_a wv0 1
	add_addresses wt_b wv1 2
	add_link wt_a rxe_w0 wv0 "$1" || fail "rdma link add"
	add_link wt_b rxe_w1 wv1 "$1" || fail "rdma link add"
	A_NS=wt_a A_DEV=rxe_w0 A_NETDEV=wv0 A_IP4=192.0.2.1 A_IP6=2001:db8::1
	B_NS=wt_b B_DEV=rxe_w1 B_NETDEV=wv1 B_IP4=192.0.2.2 B_IP6=2001:db8::2
	for end in a b; do
		follow_netdev $end
		wait_for 20 has_gid $end || fail "no GID at $end"
	done
}

# Where namespaces of RDMA are exclusive, rdma_rxe's device has to be brought to its netdev.
follow_netdev() { # END
	rdma system show | grep -q 'netns exclusive' || return
	on "$1" rdma dev show "$(of "$1" DEV)" >/dev/null 2>&1 || rdma dev set "$(of "$1" DEV)" netns "$(of "$1" NS)"
}

# As the end's namespace sees it: sysfs of another one does not show its devices.
has_gid() { # END
	[ "$(gid_there "$1")" ]
}

gid_there() { # END
	# shellcheck disable=SC2016 # the inner shell's
	on "$1" bash -c '. "$1/lib.sh"; A_DEV=$2 gid_index a "$3"' - "$SUITE" "$(of "$1" DEV)" "$(of "$1" IP4)"
}

# Shared devices have their counters in the initial namespace only, exclusive ones only in their own.
counter_there() { # END NAME
	cat "$(port_dir "$1")/hw_counters/$2" 2>/dev/null ||
		on "$1" cat "$(port_dir "$1")/hw_counters/$2" 2>/dev/null
}

veth_gone() {
	on a rdma link del "$A_DEV"
	on b rdma link del "$B_DEV"
	ip netns del wt_a
	ip netns del wt_b
	wait_for 20 no_device || fail "a device is left over"
	wait_for 20 no_veth || fail "a veth is left over"
}

no_veth() {
	! ip -o link show | grep -q ': wv[01]'
}

# perftest between the ends: what column COLUMN of its result says.
perftest() { # COLUMN COMMAND...
	local column=$1 a b
	shift
	a=$(gid_there a) b=$(gid_there b)
	serve listens b 18515 -- "$@" -F -d "$B_DEV" -x "$b" -- "$@" -F -d "$A_DEV" -x "$a" "$B_IP4" >&2 || return 1
	awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { value = $column } END { print value + 0; exit !(value > 0) }' \
		"$TMP/client"
}

# weft_bench_stream between the ends: its record.
stream() { # OPTION...
	local a b program=$ROOT/build/userspace/bin/weft_bench_stream
	a=$(gid_there a) b=$(gid_there b)
	serve test -S "$TMP/meet" -- "$program" --socket "$TMP/meet" "$B_DEV" "$b" -- \
		"$program" --socket "$TMP/meet" --client "$@" "$A_DEV" "$a" >&2 || return 1
	cat "$TMP/client"
}
