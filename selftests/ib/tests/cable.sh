# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A veth pair: quiet, it is passed by; watched, packets travel on it, many in one or each by itself.
# lists: check full
# limit: 180
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs two namespaces and Weft's counters"
topo_pair 4200
modprobe -q sch_netem
python cable.py
finish
