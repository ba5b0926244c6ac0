# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The shortest proof of life: link add, checked pingpong, a write test over two namespaces, rmmod.
# lists: smoke check quick full
# limit: 60
. "$SUITE/lib.sh"

write_bw() {
	serve listens b 18515 -- ib_write_bw -F -d "$B_DEV" -x "$(gid_index b "$B_IP4")" -s 65536 -n 50 -- \
		ib_write_bw -F -d "$A_DEV" -x "$(gid_index a "$A_IP4")" -s 65536 -n 50 "$B_IP4" || return 1
	awk '$1 == 65536 && $4 > 0 { print; seen = 1 } END { exit !seen }' "$TMP/client"
}

pingpong() {
	serve listens b 18515 -- ibv_rc_pingpong -c -n 50 -d "$B_DEV" -g "$(gid_index b "$B_IP4")" -- \
		ibv_rc_pingpong -c -n 50 -d "$A_DEV" -g "$(gid_index a "$A_IP4")" "$B_IP4"
}

no_links() {
	rdma link del "$A_DEV"
	[ "$TOPO" = self ] || rdma link del "$B_DEV"
	wait_for 5 no_device
}

reload() {
	local module=weft_ib
	[ "$LINK_TYPE" = weft ] || module=rdma_$LINK_TYPE
	rmmod "$module" || return 1
	! grep -q "^$module " /proc/modules || return 1
	load_modules
}

topo_pair
part "rc_pingpong, data checked" pingpong
part "ib_write_bw, 64 KiB" write_bw
note "$(awk '$1 == 65536 { print "ib_write_bw 64 KiB:", $4, "MB/s" }' "$TMP/client")"
part "link del" no_links
part "rmmod and load again" reload
finish
