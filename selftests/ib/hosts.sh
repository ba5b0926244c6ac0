#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tests that need two machines: `weft-vm run --hosts 2 --mtu 4200 -- selftests/ib/hosts.sh LIST`.
#
# usage: hosts.sh check|full|TEST...    in both machines; WEFT_HOST says in which
#
# Machine 1 only serves: it does what machine 0 asks for by agent.sh. Machine 0 runs the tests of the list
# "hosts" with the topology of that name; `full` has the whole matrices.
set -u
SUITE=$(cd "$(dirname "$0")" && pwd) || exit 1
export SUITE
# shellcheck source=selftests/ib/lib.sh
. "$SUITE/lib.sh"

answers() {
	[ "$("$SUITE/agent.sh" run "$B_HOST" echo here)" = here ]
}

main() { # LIST
	local rc=0 what=("$@")
	export B_HOST=192.0.2.2 TOPO=hosts LEVEL
	case $1 in
	check) LEVEL=quick what=(hosts) ;;
	full) LEVEL=full what=(hosts) ;;
	esac
	wait_for 120 answers || fail "machine 1 does not answer"
	"$SUITE/run.sh" "${what[@]}" || rc=$?
	"$SUITE/agent.sh" quit "$B_HOST"
	return "$rc"
}

case ${1-} in
# What machine 0 asks machine 1 for.
clean) clean_all ;;
netdev) netdev_of "$2" ;;
link) add_link '' "$2" "$3" "$4" ;;
'')
	sed -n '3,5s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
*)
	if [ "${WEFT_HOST:-0}" = 0 ]; then
		main "$@"
	else
		prepare
		"$SUITE/agent.sh" serve
	fi
	;;
esac
