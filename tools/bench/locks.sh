#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which locks are waited for when threads send at once: /proc/lock_stat of a debug kernel that was booted with
# no_hash_pointers, so that /proc/lockdep tells whose a class is by the address of its key.
#
# usage: locks.sh [MESSAGES [THREADS]]
set -u
ROW=${ROW:-locks}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

messages=${1:-1000000} threads=${2:-4}
[ -w /proc/lock_stat ] || { echo "this kernel has no LOCK_STAT" >&2; exit 1; }
prepare
topo_self 9000 weft
echo 0 >/proc/lock_stat
echo 1 >/proc/sys/kernel/lock_stat
got=$(PATIENCE=3000 stream --events --bytes 64 --depth 16 --qps 4 --threads "$threads" --messages "$messages") || exit 1
echo 0 >/proc/sys/kernel/lock_stat
cp /proc/lock_stat /proc/lockdep "$WEFT_OUT/" || exit 1
awk '{ print $1, $2, $6 }' /proc/modules >"$WEFT_OUT/module_addresses"
record write_64 weft "$(member ns_per_message <<<"$got")" ns \
	"\"threads\": $threads, \"qps\": 4, \"messages\": $(member messages <<<"$got")"
/usr/bin/python3 "$(dirname "$0")/locks.py" "$WEFT_OUT" >>"$OUT" || exit 1
tail -n +2 "$OUT" >&2
