# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Selective repeat between Weft peers: exact counts of what is sent again, probes, the hold queue's end, and
# that nobody else is sent an extended NAK.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs two namespaces and Weft's counters"
topo_pair 4200
modprobe -q sch_netem
for end in a b; do
	on $end weft link set "$(of $end DEV)" shortcut off icrc always || fail "weft link set"
	on $end ethtool -K "$(of $end NETDEV)" gso off || fail "ethtool -K"
done
python selective.py
finish
