#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests of the VM runner itself, as TAP. Usage: run.sh [NAME...] runs all tests or the named ones.
#
# The tests on the debug kernel run when that kernel is in the cache, and are skipped otherwise.
# shellcheck disable=SC2016 # the guests expand what stands in single quotes

here=$(cd "$(dirname "$0")" && pwd)
vm=$here/../../tools/weft-vm
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Time limits are measured here: do not wait for other machines.
export WEFT_VM_SLOTS="${WEFT_VM_SLOTS:-8}"
number=0
passed=0
failed=0
skipped=0

# Runs the runner without Weft's modules; leaves out, err, rc, seconds.
vm()
{
	start=$(date +%s)
	"$vm" run --no-weft --timeout "${limit:-240}" "$@" >"$work/out" 2>"$work/err"
	rc=$?
	seconds=$(($(date +%s) - start))
}

# Each check says what it wanted and what it saw; a test is its checks.
is() # WHAT SEEN WANTED
{
	[ "$2" = "$3" ] && return 0
	echo "# $1: saw '$2', wanted '$3'; standard error:"
	tail -30 "$work/err" | sed 's/^/#   /'
	return 1
}

has() # FILE TEXT
{
	grep -qF -- "$2" "$work/$1" && return 0
	echo "# no '$2' in std$1:"
	sed 's/^/#   /' "$work/$1" | tail -20
	return 1
}

lacks() # FILE TEXT
{
	grep -qF -- "$2" "$work/$1" || return 0
	echo "# '$2' in std$1"
	return 1
}

test_units()
{
	python3 -B "$here/test_units.py" >"$work/out" 2>&1 && return 0
	sed 's/^/# /' "$work/out"
	return 1
}

test_success_and_streams()
{
	vm -- sh -c 'echo one; echo two >/dev/stderr; id -u; ulimit -l; test -w /dev/shm && test -d /sys/kernel/debug/tracing'
	is exit "$rc" 0 && is stdout "$(cat "$work/out")" "$(printf 'one\n0\nunlimited')" && is stderr "$(cat "$work/err")" two
}

# Two CPUs trust their time stamp counter; and one has the barriers that a machine for two has.
test_clock_and_barriers()
{
	vm --smp 2 -- sh -c 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource; nproc'
	is exit "$rc" 0 && is stdout "$(cat "$work/out")" "$(printf 'tsc\n2')" || return
	vm --smp 1 -- sh -c 'cat /sys/devices/system/cpu/possible; nproc'
	is exit "$rc" 0 && is stdout "$(cat "$work/out")" "$(printf '0-1\n1')"
}

test_all_output_arrives()
{
	vm -- sh -c 'sleep 1000 & seq 1 400000'
	is exit "$rc" 0 && is lines "$(wc -l <"$work/out")" 400000 && is last "$(tail -1 "$work/out")" 400000
}

test_exit_code()
{
	vm -- sh -c 'exit 7'
	is exit "$rc" 7
}

test_place_and_environment()
{
	dir="$work/a place"
	mkdir "$dir"
	echo content >"$dir/file"
	cd "$dir" || return 1
	WEFT_SAMPLE='a "b" $c' vm --env 'OTHER=x y' -- sh -c 'pwd; cat file; echo "$WEFT_SAMPLE|$OTHER|$WEFT_HOST|$WEFT_HOSTS"'
	cd "$here" || return 1
	is exit "$rc" 0 && is stdout "$(cat "$work/out")" "$(printf '%s\ncontent\na "b" $c|x y|0|1' "$dir")"
}

test_host_stays_untouched()
{
	probe=$here/../../weft-vm-selftest-probe
	vm --out "$work/back" -- sh -c "echo x >$probe && echo artefact >\$WEFT_OUT/file"
	is exit "$rc" 0 && is artefact "$(cat "$work/back/file")" artefact && [ ! -e "$probe" ] && [ -s "$work/back/h0-console.log" ]
}

test_rdma_stack()
{
	vm -- sh -c 'modprobe rdma_rxe && ip link add d0 type dummy && ip addr add 10.9.9.1/24 dev d0 &&
		ip link set d0 up && rdma link add rxe0 type rxe netdev d0 && ls /dev/infiniband && ibv_devices'
	is exit "$rc" 0 && has out uverbs0 && has out rdma_cm && has out umad0 && has out rxe0
}

test_warning_fails()
{
	vm -- sh -c 'echo "<4>WARNING: CPU: 0 PID: 1 at selftest" >/dev/kmsg; echo done'
	is exit "$rc" 120 && has out 'done' && has err 'WARNING: CPU: 0 PID: 1 at selftest'
}

test_warning_keeps_the_commands_code()
{
	vm -- sh -c 'echo "<4>BUG: selftest" >/dev/kmsg; exit 5'
	is exit "$rc" 5 && has err 'BUG: selftest'
}

test_allowed_warning()
{
	vm --allow-log 'WARNING: .* at selftest$' -- sh -c 'echo "<4>WARNING: CPU: 0 PID: 1 at selftest" >/dev/kmsg'
	is exit "$rc" 0 && vm --allow-log 'WARNING: .* at selftest$' -- \
		sh -c 'echo "<4>WARNING: CPU: 0 PID: 1 at selftest" >/dev/kmsg; echo "<4>UBSAN: other" >/dev/kmsg'
	is exit "$rc" 120 && has err 'UBSAN: other' && lacks err 'at selftest'
}

test_timeout()
{
	limit=60 vm -- sh -c 'echo "<4>last words" >/dev/kmsg; echo begun; sleep 1000'
	is exit "$rc" 124 && has out begun && has err 'last words' && [ "$seconds" -lt 75 ]
}

test_panic_ends_at_once()
{
	vm -- sh -c 'echo c >/proc/sysrq-trigger'
	is exit "$rc" 122 && has err 'sysrq triggered crash' && [ "$seconds" -lt 120 ]
}

test_silent_end_is_no_success()
{
	vm -- sh -c 'echo b >/proc/sysrq-trigger; sleep 100'
	is exit "$rc" 122 && has err 'without its token'
}

test_missing_modules()
{
	"$vm" run --modules "$work/nothing" -- true >"$work/out" 2>"$work/err"
	rc=$?
	is exit "$rc" 2 && has err 'weft_core.ko' && has err 'make modules'
}

test_two_hosts()
{
	vm --hosts 2 --mtu 9000 --pcap "$work/pcap" -- sh -c '
		set -e
		peer=$((2 - WEFT_HOST))
		weft-barrier up
		ping -c 2 -i 0.2 -W 20 -M do -s 8972 192.0.2.$peer
		ping -c 1 -W 20 2001:db8::$peer
		ping -c 1 -W 20 h$((1 - WEFT_HOST))
		weft-barrier down
		echo "name $(hostname)"'
	is exit "$rc" 0 && has out 'h0| name h0' && has out 'h1| name h1' && has out '8980 bytes from 192.0.2.1' || return 1
	[ "$(wc -c <"$work/pcap")" -gt 36000 ] || { echo "# capture is too small"; return 1; }
}

test_three_hosts_unicast()
{
	vm --hosts 3 --smp 1 --mem 1G -- sh -c '
		weft-barrier up
		if [ $WEFT_HOST = 0 ]; then ping -c 20 -i 0.1 -W 20 -q h2; fi
		weft-barrier down
		echo "rx $(cat /sys/class/net/eth0/statistics/rx_packets)"'
	is exit "$rc" 0 || return 1
	# A learning hub: the ping between h0 and h2 does not reach h1.
	h1=$(sed -n 's/^h1| rx //p' "$work/out")
	h2=$(sed -n 's/^h2| rx //p' "$work/out")
	[ "$h2" -ge 20 ] && [ "$h1" -lt 20 ] && return 0
	echo "# h1 got $h1 frames, h2 $h2"
	return 1
}

test_first_failure_wins()
{
	vm --hosts 2 --smp 1 -- sh -c 'weft-barrier one; if [ $WEFT_HOST = 1 ]; then exit 9; fi; weft-barrier two 100 || exit 3'
	is exit "$rc" 9 && has err 'h0| weft-barrier two: h1 has ended' && [ "$seconds" -lt 90 ]
}

test_a_lost_host_ends_the_run()
{
	vm --hosts 2 --smp 1 -- sh -c 'weft-barrier up; if [ $WEFT_HOST = 1 ]; then echo c >/proc/sysrq-trigger; fi; sleep 1000'
	is exit "$rc" 122 && has err 'h0: stopped, since h1 failed' && [ "$seconds" -lt 200 ]
}

test_barrier_time_limit()
{
	vm --hosts 2 --smp 1 -- sh -c 'if [ $WEFT_HOST = 1 ]; then sleep 8; else weft-barrier alone 2; exit $?; fi'
	is exit "$rc" 1 && has err 'weft-barrier alone: time is over'
}

test_icount_repeats()
{
	loop='i=0; a=$(cut -d" " -f1 /proc/uptime); while [ $i -lt 300000 ]; do i=$((i+1)); done; b=$(cut -d" " -f1 /proc/uptime); echo "$a $b" | awk "{ printf \"%d\\n\", (\$2 - \$1) * 100 }"'
	vm --icount -- sh -c "$loop"
	first=$(cat "$work/out")
	is exit "$rc" 0 || return 1
	vm --icount -- sh -c "$loop"
	second=$(cat "$work/out")
	[ "$first" -gt 5 ] && [ $((first - second)) -ge -1 ] && [ $((first - second)) -le 1 ] && return 0
	echo "# centiseconds: '$first' and '$second'"
	return 1
}

debug_fault() # WHAT EXIT [TEXT]
{
	[ -n "$debug_ready" ] || return 4
	limit=900 vm --kernel debug --bind "$work" -- insmod "$work/fault/weft_vm_fault.ko" what="$1"
	is exit "$rc" "$2" && { [ -z "$3" ] || has err "$3"; }
}

# A module with a planted fault of each kind; without it the same boot is silent.
prepare_debug()
{
	debug_ready=
	"$vm" kernel list | grep -q '^debug *[0-9]' || return 0
	cp -r "$here/fault" "$work/fault"
	make -s -C "$("$vm" kernel kdir debug)" M="$work/fault" modules >"$work/make" 2>&1 || {
		sed 's/^/# /' "$work/make"
		return 0
	}
	debug_ready=1
}

test_debug_silent()
{
	debug_fault none 0
}

test_debug_kasan()
{
	debug_fault kasan 120 'BUG: KASAN: '
}

test_debug_lockdep()
{
	debug_fault lockdep 120 'WARNING: possible'
}

test_debug_leak()
{
	debug_fault leak 120 'unreferenced object'
}

all=$(sed -n 's/^test_\([a-z_]*\)()$/\1/p' "$0")
chosen=${*:-$all}
case " $chosen" in
*" debug_"*) prepare_debug ;;
esac
# shellcheck disable=SC2086 # a list of names
set -- $chosen
echo "TAP version 13"
echo "1..$#"
for name; do
	number=$((number + 1))
	"test_$name"
	case $? in
	0) passed=$((passed + 1)) && echo "ok $number $name" ;;
	4) skipped=$((skipped + 1)) && echo "ok $number $name # SKIP no debug kernel in the cache" ;;
	*) failed=$((failed + 1)) && echo "not ok $number $name" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
