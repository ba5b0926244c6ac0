# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A process that scribbles over its rings harms nobody but itself: checked traffic beside it goes on, memory
# that it never registered stays, and its end frees everything.
# lists: check full
# limit: 60
. "$SUITE/lib.sh"

tool=$ROOT/build/userspace/bin/weft_scribble
[ -x "$tool" ] || fail "no $tool: make userspace"
seconds=4
[ "$LEVEL" = full ] && seconds=30

scribbled() { # SEED
	"$tool" rxe_w9 "$index" "$((seconds * (SLOW > 1 ? 4 : 1)))" "$1"
}

nothing_left() {
	[[ $(rdma resource show qp dev rxe_w9) != *" pid "* ]] && [[ $(rdma resource show mr dev rxe_w9) != *" pid "* ]]
}

topo_pair 4200
traffic_start || fail "no traffic"
new_netdev wd9 4200
ip addr add 198.51.100.9/24 dev wd9
add_link '' rxe_w9 wd9 || fail "link"
index=''
scribble_index() {
	index=$(A_DEV=rxe_w9 gid_index a 198.51.100.9)
}
wait_for 10 scribble_index || fail "no GID"
# The seed is shown, so that what it found can be found again.
for turn in 1 2 3; do
	seed=$((RANDOM * 32768 + RANDOM))
	part "seed $seed" scribbled $seed
	note "$(tail -n 1 "$TMP/part.log"), seed $seed"
	part "its objects are gone" wait_for 10 nothing_left
	part "the others' traffic" traffic_goes_on
	TRAFFIC_SEEN=$(<"$TMP/traffic.count")
done
part "the others' traffic, to the last byte" traffic_stop
A_NS='' B_NS=''
part "the device still works" serve listens b 18515 -- ibv_rc_pingpong -c -n 20 -d rxe_w9 -g "$index" -- \
	ibv_rc_pingpong -c -n 20 -d rxe_w9 -g "$index" 198.51.100.9
finish
