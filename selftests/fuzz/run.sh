#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Fuzzes the packet parser under ASan and UBSan: run.sh [CASES], 10 million unless told. A finding is
# left as crash-* in the work directory, which is printed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cases=${1:-10000000}
work=${WEFT_FUZZ_DIR:-$root/build/fuzz}/run
mkdir -p "$work/corpus"

"$here/build.sh" "$root" "$work/parse_fuzz" -fsanitize=address,undefined \
	-fno-sanitize-recover=all
echo "$cases cases in $work"
if ! "$work/parse_fuzz" -runs="$cases" -max_len=192 -artifact_prefix="$work/" -verbosity=0 \
	"$work/corpus" >"$work/log" 2>&1; then
	cat "$work/log"
	exit 1
fi
echo "no finding in $cases cases"
