# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# perftest once more, over one device that talks to itself.
# lists: check full
# full-limit: 3000
# limit: 120
TOPO=self
[ "$LEVEL" = full ] || LEVEL=quick
# shellcheck source=selftests/ib/tests/perftest.sh
. "$SUITE/tests/perftest.sh"
