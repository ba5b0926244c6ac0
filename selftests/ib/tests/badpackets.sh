# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Frames built by hand with one fault each: dropped, counted by exactly one, logged never.
# lists: check full
# limit: 180
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "rdma_rxe does not count what it drops"
topo_pair 4200
python badpackets.py
finish
