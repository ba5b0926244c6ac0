# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# rdma-core's own tests as python3-pyverbs ships them: no failure, no error, and no more skips than known.
# lists: check full
# full-limit: 300
# limit: 150
. "$SUITE/lib.sh"

from=/usr/share/doc/rdma-core/tests
[ -d $from ] || skip "python3-pyverbs is not installed"
topo_self 9000
ip route add 224.0.0.0/4 dev "$A_NETDEV"
mkdir -p "$TMP/tests"
cp $from/*.py $from/*.py.gz "$TMP/tests"
gunzip "$TMP"/tests/*.gz
# Tests of other vendors' devices.
rm -f "$TMP"/tests/test_mlx5* "$TMP"/tests/test_efa* "$TMP"/tests/test_cuda*

cd "$TMP/tests" || fail "no tests"
/usr/bin/python3 run_tests.py --dev "$A_DEV" -v >"$TMP/stdout" 2>"$TMP/log"
rc=$?

# "test_a (tests.test_b.C) ... ok": a test's own output may stand between the name and the word.
awk '
	match($0, /^test_[A-Za-z0-9_]+ \([A-Za-z0-9_.]+\)/) { name = substr($0, 1, RLENGTH) }
	name != "" && match($0, /(ok|FAIL|ERROR|skipped .*|expected failure)$/) {
		print substr($0, RSTART) "\t" name
		name = ""
	}
' "$TMP/log" >"$TMP/table"
if [ "${WEFT_OUT-}" ] && [ -d "${WEFT_OUT-}" ]; then
	sort -k2 -t "	" "$TMP/table" >"$WEFT_OUT/rdma-core-$(uname -r).tsv"
fi
ok=$(grep -c '^ok' "$TMP/table")
skipped=$(grep -c '^skipped' "$TMP/table")
run=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$TMP/log")
note "rdma-core: ${run:-0} run, $ok ok, $skipped skipped"
sed -n "s/^skipped '\(.*\)'\t.*/\1/p; s/^skipped \"\(.*\)\"\t.*/\1/p" "$TMP/table" | sort | uniq -c | sort -rn |
	sed 's/^/#   skipped /'
if [ $rc != 0 ]; then
	grep -E '^(FAIL|ERROR)' "$TMP/table"
	sed -n '/^=====/,$p' "$TMP/log"
	fail "rdma-core's tests end with $rc"
fi
equal "tests that ended" "$((ok + skipped))" "$run"
# What the stock provider of rdma-core 44 can be asked.
[ "$LINK_TYPE" = rxe ] || at_least "tests that are ok" "$ok" 96
finish
