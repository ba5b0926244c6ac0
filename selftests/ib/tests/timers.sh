# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# ACK timeouts and RNR timers: as long as their codes say, whatever the adaptive timeout does meanwhile.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs Weft's counters"
topo_pair 4200
for end in a b; do
	on $end weft link set "$(of $end DEV)" shortcut off || fail "weft link set"
done
python timers.py
finish
