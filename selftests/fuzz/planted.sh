#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Proves that the fuzzer finds bugs: each one of planted.list is put into a copy of the core and must be
# found within CASES cases: planted.sh [CASES], 500000 unless told. The unchanged copy must pass.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cases=${1:-500000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

fuzz() {
	"$here/build.sh" "$work" "$work/parse_fuzz" -fsanitize=address,undefined \
		-fno-sanitize-recover=all || exit 2
	"$work/parse_fuzz" -runs="$cases" -max_len=192 -seed=1 -artifact_prefix="$work/" \
		-verbosity=0 >"$work/log" 2>&1
}

copy() {
	rm -rf "$work/kernel"
	cp -r "$root/kernel" "$work/kernel"
}

# plant NAME: changes the copy, or says that the list no longer fits the code.
plant() {
	python3 - "$here/planted.list" "$1" "$work" <<'PYTHON'
import sys
from pathlib import Path

text, name, tree = Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2], sys.argv[3]
for block in text.split("\n\n"):
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    if not lines or lines[0].split()[0] != name:
        continue
    path = Path(tree) / lines[0].split()[1]
    old = "\n".join(line[1:] for line in lines if line[0] == "-")
    new = "\n".join(line[1:] for line in lines if line[0] == "+")
    source = path.read_text(encoding="utf-8")
    if source.count(old) != 1:
        sys.exit(f"{name}: its old text stands {source.count(old)} times in {path.name}")
    path.write_text(source.replace(old, new), encoding="utf-8")
PYTHON
}

copy
if ! fuzz; then
	cat "$work/log"
	echo "not ok - the unchanged parser fails"
	exit 1
fi
found=0
missed=0
sed -n 's/^\([a-z-]*\) kernel.*/\1/p' "$here/planted.list" >"$work/names"
while read -r name; do
	copy
	plant "$name" || exit 2
	if fuzz; then
		echo "missed: $name"
		missed=$((missed + 1))
	else
		how=$(sed -n 's/.*oracle: line [0-9]*: /oracle: /p
			s/.*SUMMARY: AddressSanitizer: \([a-z-]*\).*/ASan: \1/p
			s/.*runtime error: /UBSan: /p' "$work/log" | head -n 1)
		[ -n "$how" ] || { cat "$work/log"; exit 1; }
		echo "found: $name ($how)"
		found=$((found + 1))
	fi
done <"$work/names"
echo "$found planted bugs found, $missed missed"
[ "$missed" -eq 0 ] && [ "$found" -ge 10 ]
