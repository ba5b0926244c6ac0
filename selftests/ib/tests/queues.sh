# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The settings of `weft link set` by their effect: receive queues, moderation, ICRC, shortcut; taps. Acknowledgments
# of what wants no completion.
# lists: check full
# limit: 180
. "$SUITE/lib.sh"

[ "$LINK_TYPE" = weft ] || skip "the settings are Weft's"
topo_pair 4200
python queues.py
clean_all || fail "could not clean up"
topo_twins 4200
python samehost.py
python unasked.py
finish
