# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Every operation and transport, sizes around every packet boundary, IPv4 and IPv6, each byte compared.
# lists: check quick full
# limit: 120
. "$SUITE/lib.sh"

topo 4200
python transfer.py
finish
