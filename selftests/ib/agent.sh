#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs commands on the other VM: a line of shell goes there over TCP, output and exit code come back.
#
# usage: agent.sh serve            until somebody runs `quit`
#        agent.sh run HOST CMD...  exit code of CMD; CMD is killed when this side goes away
#        agent.sh quit HOST
set -u
port=9944

run() { # HOST CMD...
	local host=$1 out rc
	shift
	# `sleep` keeps our side of the connection open: its end is how the other side knows that we are gone.
	exec 9< <(printf '%s\n' "$(printf '%q ' "$@")"; exec sleep infinity)
	trap 'kill "$!" 2>/dev/null' EXIT
	out=$(mktemp)
	socat -t 0.02 - "TCP:$host:$port" <&9 | tee "$out" | sed -u '/^agent-exit-code [0-9]*$/d; s/agent-exit-code [0-9]*$//'
	rc=$(sed -n 's/.*agent-exit-code //p' "$out" | tail -n 1)
	rm -f "$out"
	return "${rc:-255}"
}

# One connection: stdin has the command, and ends when the caller is gone.
serve_one() {
	local line pid watcher rc
	read -r line || exit 0
	if [ "$line" = quit ]; then
		kill "$SOCAT_PPID"
		exit 0
	fi
	setsid bash -c "$line" </dev/null 2>&1 &
	pid=$!
	{
		cat >/dev/null
		kill -TERM -- "-$pid" 2>/dev/null
	} <&0 >/dev/null 2>&1 &
	watcher=$!
	wait "$pid"
	rc=$?
	kill "$watcher" 2>/dev/null
	echo "agent-exit-code $rc"
}

case ${1-} in
serve)
	socat "TCP-LISTEN:$port,reuseaddr,fork" "EXEC:$0 one"
	exit 0
	;;
one) serve_one ;;
run)
	shift
	run "$@"
	;;
quit) echo quit | socat - "TCP:$2:$port" ;;
*)
	sed -n '3,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
