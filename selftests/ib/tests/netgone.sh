# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Unregister, namespace deletion, namespace move under traffic; link del under traffic; exclusive mode.
# lists: check quick full
# limit: 240
. "$SUITE/lib.sh"

# The same topology works again after its end: nothing of the old one is left.
again() {
	clean_all || return 1
	topo_pair 4200
	serve listens b 18515 -- ibv_rc_pingpong -c -n 20 -d "$B_DEV" -g "$(gid_index b "$B_IP4")" -- \
		ibv_rc_pingpong -c -n 20 -d "$A_DEV" -g "$(gid_index a "$A_IP4")" "$B_IP4"
}

# In exclusive mode a device is in one namespace; it comes home when that one goes.
exclusive() {
	clean_all || return 1
	rdma system set netns exclusive || return 1
	topo_self 4200
	ip netns add wt_x
	rdma dev set rxe_w0 netns wt_x || return 1
	[[ $(rdma dev show) != *rxe_w0* ]] || { echo "still in the old namespace"; return 1; }
	[[ $(in_ns wt_x rdma dev show) == *rxe_w0* ]] || { echo "not in the new namespace"; return 1; }
	in_ns wt_x ibv_devices | grep -q rxe_w0 || return 1
	ip netns del wt_x
	wait_for 10 home || { echo "it did not come home"; return 1; }
	# Still what the stock provider can drive.
	serve listens b 18515 -- ibv_rc_pingpong -c -n 20 -d "$B_DEV" -g "$(gid_index b "$B_IP4")" -- \
		ibv_rc_pingpong -c -n 20 -d "$A_DEV" -g "$(gid_index a "$A_IP4")" "$B_IP4"
}

home() {
	[[ $(rdma dev show) == *rxe_w0* ]]
}

shared() {
	clean_all
	rdma system set netns shared
}

topo_pair 4200
if [ "$TOPO" = self ]; then
	python netgone.py gone ip link del "$A_NETDEV"
else
	python netgone.py gone ip -n wt_a link del wv0
	part "a new link after unregister" again
	python netgone.py gone ip netns del wt_b
	part "a new link after the end of a namespace" again
	new_netns wt_c
	python netgone.py moved wt_c
	part "a new link after a move" again
	python netgone.py gone sh -c 'rdma link del rxe_w0; rdma link del rxe_w1'
	part "a new link after link del" again
fi
part "exclusive mode: a device moves and comes home" exclusive
part "back to shared mode" shared
finish
