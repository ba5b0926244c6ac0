# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Selective repeat between Weft peers: exact counts of what is sent again, probes, the hold queue's end, and
# that nobody else is sent an extended NAK.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "needs two namespaces and Weft's counters"
topo_pair 4200
single_packets
python selective.py
finish
