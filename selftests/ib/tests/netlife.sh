# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The life of a netdev under checked traffic: what QPs survive, what they are told, what is cleaned up.
# lists: check full
# limit: 180
. "$SUITE/lib.sh"

topo_pair 4200
python netlife.py
finish
