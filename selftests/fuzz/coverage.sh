#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Measures the fuzzer's branch coverage of the parser and fails below a share of it:
# coverage.sh [PERCENT [CASES]], 90 and 200000 unless told.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
wanted=${1:-90}
cases=${2:-200000}
work=${WEFT_FUZZ_DIR:-$root/build/fuzz}/coverage
mkdir -p "$work"

# Debian's clang N and llvm N go together; the unversioned names may be missing.
version=$("${CC:-clang}" -dumpversion | cut -d. -f1)
tool() {
	command -v "$1-$version" || command -v "$1"
}

"$here/build.sh" "$root" "$work/parse_fuzz" -fprofile-instr-generate -fcoverage-mapping
LLVM_PROFILE_FILE="$work/raw" "$work/parse_fuzz" -runs="$cases" -max_len=192 -seed=1 \
	-artifact_prefix="$work/" -verbosity=0 >"$work/log" 2>&1
"$(tool llvm-profdata)" merge -sparse "$work/raw" -o "$work/data"
"$(tool llvm-cov)" export -summary-only "$work/parse_fuzz" -instr-profile="$work/data" \
	"$root/kernel/wire/headers.c" >"$work/summary.json"
python3 - "$work/summary.json" "$wanted" <<'PYTHON'
import json
import sys

summary = json.load(open(sys.argv[1], encoding="utf-8"))["data"][0]["totals"]["branches"]
share = 100 * summary["covered"] / summary["count"]
print(f"kernel/wire/headers.c: {summary['covered']} of {summary['count']} branches, {share:.1f} %")
sys.exit(share < float(sys.argv[2]))
PYTHON
