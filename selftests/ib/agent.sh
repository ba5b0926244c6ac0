#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs commands on the other VM, by the agent there (py/agent.py): a line of shell goes over TCP, output and
# exit code come back.
#
# usage: agent.sh serve            until somebody runs `quit`
#        agent.sh run HOST CMD...  exit code of CMD; CMD is killed when this side goes away
#        agent.sh quit HOST
set -u
port=9944

# No other process takes part: under emulation each costs a tenth of a second.
run() { # HOST CMD...
	local line rc=255
	exec 9<>"/dev/tcp/$1/$port" || return 255
	shift
	printf '%q ' "$@" >&9
	echo >&9
	while IFS= read -r line <&9 || [ "$line" ]; do
		case $line in
		*"agent-exit-code "*)
			rc=${line##*agent-exit-code }
			printf %s "${line%agent-exit-code *}"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	return "$rc"
}

case ${1-} in
serve) exec /usr/bin/python3 "$(dirname "$0")/py/agent.py" "$port" ;;
run)
	shift
	run "$@" 2>/dev/null
	;;
quit) echo quit >"/dev/tcp/$2/$port" ;;
*)
	sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
