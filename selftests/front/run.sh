#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests of the front door: help, set-up, install and uninstall, the feature probe, a clean checkout.
#
# usage: selftests/front/run.sh [TEST...]        after make modules userspace; TAP
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
make=(make --no-print-directory)

fail() {
	echo "# $*"
	return 1
}

# One screen, and nothing in it that make does not know.
test_help() {
	"${make[@]}" help >"$work/help"
	local lines target
	lines=$(wc -l <"$work/help")
	[ "$lines" -le 30 ] || fail "$lines lines" || return 1
	[ "$(wc -L <"$work/help")" -le 100 ] || fail "a line is too long" || return 1
	for target in $(sed -n 's/^ *make \([a-z-]*\) .*/\1/p' "$work/help" | sort -u); do
		grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile || fail "no target $target" || return 1
	done
	for target in $(sed -n 's/^\.PHONY: //p' Makefile); do
		case $target in help | kbuild-tree | host-build) continue ;; esac
		grep -qw "make $target" "$work/help" || fail "make $target is not in help" || return 1
	done
}

# Nothing is missing here any more: no output, and no time.
test_setup_is_quick() {
	local started=${EPOCHREALTIME/./}
	tools/setup >"$work/out" 2>&1 || fail "exit code $?" || return 1
	[ ! -s "$work/out" ] || fail "it says: $(cat "$work/out")" || return 1
	local took=$(((${EPOCHREALTIME/./} - started) / 1000))
	[ "$took" -lt 5000 ] || fail "$took ms"
}

# An ordinary user without sudo is told what to install, in one line, and nothing is tried.
test_setup_without_root() {
	mkdir "$work/bin"
	printf '#!/bin/sh\nexit 1\n' >"$work/bin/sudo"
	# A database that knows of no package.
	printf '#!/bin/sh\n' >"$work/bin/dpkg-query"
	chmod -R a+rx "$work"
	chmod +x "$work"/bin/*
	local user=()
	[ "$(id -u)" != 0 ] || user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"${user[@]}" env PATH="$work/bin:$PATH" sh <tools/setup >"$work/out" 2>&1
	[ $? = 1 ] || fail "no refusal" || return 1
	[ "$(wc -l <"$work/out")" = 1 ] || fail "not one line: $(cat "$work/out")" || return 1
	grep -q 'apt-get install .*perftest.*qemu-system-x86' "$work/out" || fail "$(cat "$work/out")"
}

test_install_and_uninstall() {
	local release file
	release=$(basename "$(ls -d build/modules/* | head -n 1)")
	"${make[@]}" install DESTDIR="$work/dest" >"$work/log" 2>&1 ||
		fail "$(tail -n 5 "$work/log")" || return 1
	(cd "$work/dest" && find . -type f) >"$work/files"
	for file in "lib/modules/.*/updates/weft_core.ko" "lib/modules/.*/updates/weft_ib.ko" \
		usr/local/bin/weft "usr/local/share/man/man8/weft.*"; do
		grep -qx "\./$file" "$work/files" || fail "no $file" || return 1
	done
	"${make[@]}" uninstall DESTDIR="$work/dest" >"$work/log" 2>&1 || return 1
	find "$work/dest" -type f >"$work/files"
	[ ! -s "$work/files" ] || fail "left for $release: $(cat "$work/files")"
}

test_install_says_what_it_may_not() {
	"${make[@]}" install PREFIX=/proc/nowhere >"$work/out" 2>&1 && fail "no refusal" && return 1
	grep -q 'not writable' "$work/out" || fail "$(tail -n 3 "$work/out")"
}

# Headers that compile nothing are refused with the log's place, not taken for an old kernel.
test_probe_is_loud() {
	local kdir=$work/headers
	mkdir -p "$kdir/include/generated" "$work/out.d"
	echo '#define UTS_RELEASE "0.0-broken"' >"$kdir/include/generated/utsrelease.h"
	: >"$kdir/include/generated/autoconf.h"
	printf 'modules:\n\t@echo no compiler; exit 1\n' >"$kdir/Makefile"
	sh kernel/compat/probe "$kdir" "$work/out.d" >"$work/out" 2>&1 && fail "no refusal" && return 1
	[ ! -e "$work/out.d/weft_features.h" ] || fail "features of nothing" || return 1
	grep -q "$work/out.d/probe/log" "$work/out" || fail "no place of the log: $(cat "$work/out")"
}

test_no_headers() {
	"${make[@]}" modules KDIR="$work/none" >"$work/out" 2>&1 && fail "no refusal" && return 1
	grep -q 'make setup' "$work/out" || fail "$(cat "$work/out")"
}

# Each break's old text is in its file, once; each source with a duty has a break.
test_mutations_fit() {
	tools/check/mutate --list >"$work/out" || return 1
	local source
	for source in kernel/{wire,transport,congestion,steering}/*.c drivers/infiniband/*.c; do
		[ -e "$source" ] || continue
		grep -q " $source: " "$work/out" || fail "no break for $source" || return 1
	done
}

# All that was built is below build/.
test_checkout_is_clean() {
	git status --porcelain --ignored >"$work/out"
	if [ -n "${CI-}" ]; then
		grep -v '^!! build/$' "$work/out" >"$work/foreign"
	else
		# A developer's own changes are none of our business: what is ignored is.
		grep '^!!' "$work/out" | grep -v '^!! build/$' >"$work/foreign"
	fi
	[ ! -s "$work/foreign" ] || fail "$(cat "$work/foreign")"
}

mapfile -t tests < <(sed -n 's/^test_\([a-z_]*\)() {$/\1/p' "$0")
[ $# -gt 0 ] && tests=("$@")
passed=0 failed=0 number=0
echo "TAP version 13"
echo "1..${#tests[@]}"
for name in "${tests[@]}"; do
	number=$((number + 1))
	if "test_$name"; then
		passed=$((passed + 1))
		echo "ok $number - front door: ${name//_/ }"
	else
		failed=$((failed + 1))
		echo "not ok $number - front door: ${name//_/ }"
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
