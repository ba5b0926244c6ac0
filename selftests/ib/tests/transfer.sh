# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Every operation and transport, sizes around every packet boundary, IPv4 and IPv6, each byte compared.
# lists: check full hosts
# full-limit: 2400
# limit: 120
. "$SUITE/lib.sh"

topo 4200
if [ "$TOPO" = hosts ]; then
	on_exec b /usr/bin/python3 "$SUITE/py/vx.py" serve 7900 &
	wait_for 20 listens b 7900 || fail "the other machine's end does not listen"
fi
python transfer.py
finish
