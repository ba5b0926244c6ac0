# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# States, memory windows, invalidation, SRQ and CQ limits and events, shapes of work requests, errors.
# lists: check quick full
# limit: 60
. "$SUITE/lib.sh"

topo_pair 4200
python features.py
finish
