# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Loss, doubles, reordering, corruption, late and absent receivers: each byte and each counter checked.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs two namespaces and Weft's counters"
topo_pair 4200
modprobe -q sch_netem
for end in a b; do
	# Everything has to pass the qdisc and the wire, one packet at a time, with a real ICRC.
	on $end weft link set "$(of $end DEV)" shortcut off icrc always || fail "weft link set"
	on $end ethtool -K "$(of $end NETDEV)" gso off || fail "ethtool -K"
done
python loss.py
finish
