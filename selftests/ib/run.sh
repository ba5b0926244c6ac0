#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the VM suite's tests, each in its own session and within its own time, and reports them as TAP.
#
# usage: run.sh check|quick|smoke|full|hosts|TEST...        as root, in a VM made for it
#
# A test is tests/NAME.sh. Comment lines in it say in which lists it is and how many seconds it may take;
# SLOW (8 on a kernel with KASAN, else 1) times as many. Exit code 0 is a pass, 4 a skip. Whatever a test
# leaves behind (processes, links, netdevs, namespaces) is removed; a line of the kernel log that tells of
# a fault fails the test that ran. The environment: LINK_TYPE (weft), VERBOSE=1 (all output), KEEP=DIR
# (where the tests' logs stay).
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=selftests/ib/lib.sh
. "$here/lib.sh"

usage() {
	sed -n '3,6s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

header() { # TEST KEY
	sed -n "s/^# $2: *//p" "$here/tests/$1.sh" | head -n 1
}

tests_of() { # LIST|TEST
	local file name
	case $1 in
	check | quick | smoke | full | hosts)
		for file in "$here"/tests/*.sh; do
			name=${file##*/}
			name=${name%.sh}
			case " $(header "$name" lists) " in *" $1 "*) echo "$name" ;; esac
		done
		;;
	*)
		if [ ! -f "$here/tests/$1.sh" ]; then
			echo "run.sh: no list and no test is named '$1'" >&2
			return 1
		fi
		echo "$1"
		;;
	esac
}

[ $# -gt 0 ] || usage
[ "$(id -u)" = 0 ] || { echo "run.sh: needs root, in a VM (tools/weft-vm run)" >&2; exit 2; }
list=()
for word in "$@"; do
	case $word in check | quick | full) LEVEL=$word ;; esac
	more=$(tests_of "$word") || exit 2
	# shellcheck disable=SC2206 # test names have no spaces
	list+=($more)
done
export LEVEL

work=${KEEP:-$(mktemp -d /tmp/suite.XXXXXX)}
mkdir -p "$work"
# Warnings that a kernel built to find them prints, and what ends a machine.
faults='WARNING:|BUG:|Oops|KASAN|UBSAN|KCSAN|general protection|possible recursive|circular locking'
faults+='|inconsistent lock|suspicious RCU|rcu:.*stall|hung_task|blocked for more than|soft lockup'
faults+='|kmemleak:.*new|unregister_netdevice: waiting|refcount_t:|Call Trace|ref_tracker'
passed=0 failed=0 skipped=0 number=0 suite_start=$SECONDS

# The kernel log since the test began.
log_since() {
	dmesg | awk -v mark="$1" 'index($0, mark) { seen = 1; next } seen'
}

# Show a test's output as it comes.
follow() { # PID FILE
	tail -n +1 -f -s 0.2 --pid="$1" "$2" | sed -u 's/^/# | /'
}

run_one() { # TEST
	local name=$1 limit pid follower rc mark start shown=0 dir=$work/$1
	limit=$(header "$name" limit)
	if [ "$LEVEL" = full ]; then
		limit=$(header "$name" full-limit)
		[ "$limit" ] || limit=$(($(header "$name" limit) * 5))
	fi
	limit=$((limit * SLOW))
	mkdir -p "$dir"
	number=$((number + 1))
	mark="suite $number $name $$"
	echo "$mark" >/dev/kmsg
	start=${EPOCHREALTIME/./}
	TEST=$name TMP=$dir setsid timeout -k 10 "$limit" bash "$here/tests/$name.sh" >"$dir/out" 2>&1 </dev/null &
	pid=$!
	follower=
	[ -z "${VERBOSE-}" ] || { follow "$pid" "$dir/out" & follower=$!; }
	wait "$pid"
	rc=$?
	if [ "$follower" ]; then
		wait "$follower"
		shown=$(wc -l <"$dir/out")
	fi
	[ "$rc" = 124 ] && echo "stopped: still running after $limit s" >>"$dir/out"
	kill -KILL -- "-$pid" 2>/dev/null
	if ! clean_all >"$dir/clean" 2>&1; then
		echo "could not clean up:" >>"$dir/out"
		cat "$dir/clean" >>"$dir/out"
		[ "$rc" = 0 ] && rc=1
	fi
	log_since "$mark" | grep -v 'speed is unknown' >"$dir/dmesg"
	if grep -qE "$faults" "$dir/dmesg"; then
		echo "the kernel log tells of a fault" >>"$dir/out"
		rc=1
	fi
	report "$name" "$rc" $((${EPOCHREALTIME/./} - start)) "$dir" "$shown"
}

# Of a failed test's output from a line on: what its parts say that failed, and its end.
tell() { # FILE LINE
	awk -v first="$2" -v end=$(($(wc -l <"$1") - 60)) '
		/^    (not )?ok - / { failed = /^    not/ }
		NR >= first && (NR > end || (failed && told++ < 200))
	' "$1"
}

report() { # TEST RC MICROSECONDS DIR LINES-SHOWN
	local time
	time=$(printf '%d.%01d' $(($3 / 1000000)) $(($3 / 100000 % 10)))
	case $2 in
	0)
		passed=$((passed + 1))
		grep '^# ' "$4/out"
		echo "# $1: $time s"
		echo "ok $number - $1"
		;;
	4)
		skipped=$((skipped + 1))
		echo "ok $number - $1 # SKIP $(tail -n 1 "$4/out")"
		;;
	*)
		failed=$((failed + 1))
		tell "$4/out" $(($5 + 1)) | sed 's/^/# | /'
		tail -n 25 "$4/dmesg" | sed 's/^/# kernel | /'
		echo "# $1: $time s, exit code $2"
		echo "not ok $number - $1"
		;;
	esac
}

prepare
echo "TAP version 13"
echo "1..${#list[@]}"
for name in "${list[@]}"; do
	run_one "$name"
done
[ "${KEEP-}" ] || rm -rf "$work"
echo "# ${#list[@]} tests on $(uname -r), list $LEVEL, link type $LINK_TYPE, in $((SECONDS - suite_start)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
