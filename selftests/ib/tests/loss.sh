# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Loss, doubles, reordering, corruption, late and absent receivers: each byte and each counter checked.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs two namespaces and Weft's counters"
topo_pair 4200
single_packets
python loss.py
finish
