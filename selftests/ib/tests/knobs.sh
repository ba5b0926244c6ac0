# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# weft link: each setting does what it says, counters of queues add up, and who may see and set a link.
# lists: check full
# limit: 180
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "the settings are Weft's"

# python3 with the result of `weft link show -s --json` as `links`; prints what the expression gives.
links() { # EXPRESSION
	weft link show -s --json | /usr/bin/python3 -c "
import json, sys
links = json.load(sys.stdin)
print($1)"
}

pingpong() { # COUNT [KIND [COMMAND...]]
	local tool=("${@:3}" "ibv_${2:-rc}_pingpong")
	serve listens b 18515 -- "${tool[@]}" -c -n "$1" -s 64 -d "$B_DEV" -g "$(gid_index b "$B_IP4")" -- \
		"${tool[@]}" -c -n "$1" -s 64 -d "$A_DEV" -g "$(gid_index a "$A_IP4")" "$B_IP4"
}

set_and_shown() {
	local said
	said=$(weft link set rxe_w0 rx-queues 3 rx-usecs 7 rx-frames 5 icrc always shortcut off placement early --json |
		/usr/bin/python3 -c "
import json, sys
link = json.load(sys.stdin)
print(*(link[key] for key in 'rx_queues rx_usecs rx_frames icrc shortcut placement gsi provider'.split()))")
	equal "--json of set" "$said" "3 7 5 always off early own rxe"
	[[ $(weft link show wd0) == "rxe_w0 netdev wd0 rx-queues 3 rx-usecs 7 rx-frames 5 icrc always shortcut off placement early "* ]] ||
		fail "$(weft link show)"
	equal "queues" "$(links '[q["index"] for q in links[0]["queues"]]')" "[0, 1, 2]"
	# One value that is refused: all stay.
	weft link set rxe_w0 icrc auto rx-queues 65 2>"$TMP/set" && fail "65 queues"
	grep -q 'rx-queues is 1 to 64' "$TMP/set" || fail "$(cat "$TMP/set")"
	weft link show rxe_w0 | grep -q 'rx-queues 3 .*icrc always' || fail "a refusal changed $(weft link show)"
	weft link set rxe_w0 rx-usecs 0 rx-frames 1 icrc auto shortcut on placement ordered
}

# What the queues took is what the device received; where it went is what was set.
queues_add_up() {
	local before after number
	for number in 1 4; do
		weft link set rxe_w0 rx-queues "$number"
		before=$(($(links 'sum(q["packets"] for q in links[0]["queues"])') - $(counter a rcvd_pkts)))
		pingpong 200 || return 1
		nap 0.02
		after=$(($(links 'sum(q["packets"] for q in links[0]["queues"])') - $(counter a rcvd_pkts)))
		equal "packets of queues less packets of device" "$after" "$before"
	done
	equal "no drop" "$(links 'sum(q["drops"] for q in links[0]["queues"])')" 0
}

# A lone packet waits for rx-usecs when rx-frames is not reached; so does each step of a pingpong. UC: no
# acknowledgment makes the queue poll for another reason. And on the queue's CPU: what another one sends while the
# poll is under way does not wait.
moderation() {
	local before start quick slow cpu
	# By the shortcut, a poll takes what it sends to its own queue at once.
	weft link set rxe_w0 rx-queues 1 shortcut off
	cpu=$(links 'links[0]["queues"][0]["cpu"]')
	start=${EPOCHREALTIME/./}
	pingpong 20 uc taskset -c "$cpu" || return 1
	quick=$((${EPOCHREALTIME/./} - start))
	equal "moderated polls without moderation" "$(links 'links[0]["queues"][0]["moderated"]')" 0
	weft link set rxe_w0 rx-usecs 20000 rx-frames 32
	before=$(links 'links[0]["queues"][0]["moderated"]')
	start=${EPOCHREALTIME/./}
	pingpong 20 uc taskset -c "$cpu" || return 1
	slow=$((${EPOCHREALTIME/./} - start))
	weft link set rxe_w0 rx-usecs 0 rx-frames 1 shortcut on
	# 20 messages there and 20 back.
	at_least "moderated polls" $(($(links 'links[0]["queues"][0]["moderated"]') - before)) 40
	at_least "rx_moderated" "$(counter a rx_moderated)" 40
	at_least "microseconds" "$slow" $((40 * 20000))
	note "20 messages: $quick us at once, $slow us moderated"
}

moved_by() { # COUNTER...: how much each moved by a pingpong
	local name before=()
	for name in "$@"; do
		before+=("$(counter a "$name")")
	done
	pingpong 20 || return 1
	nap 0.02
	for name in "$@"; do
		printf '%d ' $(($(counter a "$name") - before[0]))
		before=("${before[@]:1}")
	done
}

icrc_and_shortcut() {
	local on with off
	on=$(moved_by sent_pkts tx_shortcut_pkts tx_icrc_offloaded rx_icrc_offloaded) || fail "$on"
	weft link set rxe_w0 icrc always
	with=$(moved_by sent_pkts tx_shortcut_pkts tx_icrc_offloaded rx_icrc_offloaded) || fail "$with"
	weft link set rxe_w0 icrc auto shortcut off
	off=$(moved_by tx_shortcut_pkts tx_icrc_offloaded rx_drop_icrc) || fail "$off"
	weft link set rxe_w0 shortcut on
	# shellcheck disable=SC2086 # numbers
	set -- $on
	at_least "packets" "$1" 80
	equal "on, auto" "$on" "$1 $1 $1 $1 "
	# shellcheck disable=SC2086 # numbers
	set -- $with
	at_least "packets" "$1" 80
	equal "on, always" "$with" "$1 $1 0 0 "
	equal "off" "$off" "0 0 0 "
}

# A link belongs to the namespace of its netdev: seen and set there, not elsewhere.
namespaces() {
	ip netns add kn
	ip link add kn0 netns kn type dummy
	add_link kn rxe_kn kn0
	equal "seen here" "$(links '[link["name"] for link in links]')" "['rxe_w0']"
	[[ $(in_ns kn weft link show) == "rxe_kn netdev kn0 "* ]] || fail "$(in_ns kn weft link show)"
	weft link set rxe_kn rx-queues 1 2>"$TMP/set" && fail "set from another namespace"
	in_ns kn weft link set rxe_kn rx-queues 1 || return 1
	rdma link del rxe_kn
	ip netns del kn
}

# Seeing is for all, setting for the administrator of the namespace, the reason for who may add links.
permissions() {
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all)
	"${nobody[@]}" weft link show rxe_w0 >/dev/null || fail "nobody cannot see it"
	"${nobody[@]}" weft link set rxe_w0 rx-queues 1 2>"$TMP/set" && fail "nobody may set it"
	grep -qi 'permitted' "$TMP/set" || fail "$(cat "$TMP/set")"
	"${nobody[@]}" weft link why 2>"$TMP/why" && fail "nobody may know why"
	grep -qi 'permitted' "$TMP/why" || fail "$(cat "$TMP/why")"
}

# More links and queues than one message of a dump holds: each once.
long_dumps() {
	local i wanted=''
	for i in {1..12}; do
		new_netdev kd"$i" 1500
		add_link '' rxe_kd"$i" kd"$i"
		weft link set rxe_kd"$i" rx-queues 64
		wanted+="rxe_kd$i "
	done
	equal "links" "$(links '*sorted((l["name"] for l in links if "kd" in l["name"]), key=lambda n: int(n[6:])), ""')" \
		"$wanted"
	equal "queues" "$(links '{tuple(q["index"] for q in l["queues"]) == tuple(range(64)) for l in links if "kd" in l["name"]}')" \
		"{True}"
	for i in {1..12}; do
		rdma link del rxe_kd"$i"
	done
}

exit_codes() {
	local rc
	weft link set rxe_w0 2>/dev/null
	rc=$?
	equal "nothing to set" "$rc" 2
	weft link set rxe_w0 rx-usecs many 2>/dev/null
	rc=$?
	equal "no number" "$rc" 2
	weft link show nothing 2>/dev/null
	rc=$?
	equal "no link" "$rc" 1
	weft nothing 2>/dev/null
	rc=$?
	equal "no command" "$rc" 2
	weft link set --help >/dev/null || fail "--help"
}

topo_self
part "what is set is shown, all or nothing" set_and_shown
part "queues add up" queues_add_up
part "moderation holds packets back" moderation
part "icrc and shortcut" icrc_and_shortcut
part "namespaces" namespaces
part "permissions" permissions
part "dumps of more than one message" long_dumps
part "exit codes" exit_codes
finish
