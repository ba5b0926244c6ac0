# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# ibv_{rc,uc,ud,srq}_pingpong with every GID that the device lists, the data checked by the tool.
# lists: check full hosts
# limit: 180
. "$SUITE/lib.sh"

pingpong() { # KIND GID-INDEX-A GID-INDEX-B ADDRESS OPTION...
	local kind=$1 ia=$2 ib=$3 address=$4 STRAY=32
	shift 4
	# It ends when its 16 QPs have had enough turns in all: some have one more message under way then.
	[ "$kind" != srq ] || STRAY=1100
	serve_balanced listens b 18515 -- "ibv_${kind}_pingpong" -c "$@" -d "$B_DEV" -g "$ib" -- \
		"ibv_${kind}_pingpong" -c "$@" -d "$A_DEV" -g "$ia" "$address" &&
		grep -q 'bytes in' "$TMP/client"
}

topo
n=50
[ "$LEVEL" = full ] && n=500
mapfile -t of_a < <(gid_indices a)
mapfile -t of_b < <(gid_indices b)
equal "GIDs of both ends" "${#of_a[@]}" "${#of_b[@]}"
at_least "GIDs" "${#of_a[@]}" 3
note "${#of_a[@]} GIDs, pingpong -c -n $n"
for i in "${!of_a[@]}"; do
	for kind in rc uc ud srq; do
		size=(-s 4096)
		[ $kind = ud ] && size=(-s 1024)
		[ "$LEVEL" = quick ] && [ "$kind" = srq ] && [ "$i" != 0 ] && continue
		part "$kind, GID ${of_a[i]} and ${of_b[i]}" \
			pingpong $kind "${of_a[i]}" "${of_b[i]}" "$B_IP4" -n $n "${size[@]}"
	done
done
part "rc, events" pingpong rc "${of_a[0]}" "${of_b[0]}" "$B_IP4" -n $n -e
part "rc, 1 MiB messages" pingpong rc "${of_a[0]}" "${of_b[0]}" "$B_IP4" -n 5 -s 1048576
part "rc, MTU 1024" pingpong rc "${of_a[0]}" "${of_b[0]}" "$B_IP4" -n $n -m 1024
finish
