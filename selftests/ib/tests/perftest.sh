# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# perftest: ib_{send,write,read,atomic}_{bw,lat} over RC, UC, UD; sizes and path MTUs by list.
# lists: check full hosts
# full-limit: 3000
# limit: 240
. "$SUITE/lib.sh"

# One pair of runs. SIZE `all` is perftest's own sweep.
run_case() { # TOOL CONN MTU SIZE COUNT
	local options=(-F -c "$2" -m "$3" -n "$5") sizes=$4
	case $1 in
	*atomic*) sizes=8 ;;
	*) if [ "$4" = all ]; then options+=(-a); else options+=(-s "$4"); fi ;;
	esac
	LEAST=0
	[ "$4" = all ] || LEAST=$((sizes * $5))
	# A sweep ends with 8 MiB messages.
	[ "$4" != all ] || local PATIENCE=300
	serve_balanced listens b 18515 -- "$1" -d "$B_DEV" -x "$IB" "${options[@]}" -- \
		"$1" -d "$A_DEV" -x "$IA" "${options[@]}" "$B_IP4" || return 1
	check_figures "$2" "$3" "$sizes"
}

# Each size has its line. Its figures are no criterion: perftest cannot gauge the clock of a busy VM.
check_figures() { # CONN MTU SIZES
	local least=2 most=$3
	if [ "$3" = all ]; then
		most=8388608
		[ "$1" = UD ] && most=$2
	else
		least=$3
	fi
	awk -v least="$least" -v most="$most" '
		/^ *[0-9]+ +[0-9]+ +([0-9.]+|inf)/ && $1 >= least { if ($2 > 0) seen[$1] = 1 }
		END { for (s = least; s <= most; s *= 2) if (!seen[s]) { print "no line for size", s; bad = 1 }; exit bad }
	' "$TMP/client" || { cat "$TMP/client"; return 1; }
}

connections() { # OP
	case $1 in
	send) echo RC UC UD ;;
	write) echo RC UC ;;
	*) echo RC ;;
	esac
}

matrix() { # COUNT "MTUS" "SIZES"
	local op kind conn mtu size
	for op in send write read atomic; do
		for kind in bw lat; do
			for conn in $(connections $op); do
				for mtu in $2; do
					for size in $3; do
						fits "$op" "$conn" "$mtu" "$size" || continue
						part "ib_${op}_$kind $conn, MTU $mtu, size $size" \
							run_case "ib_${op}_$kind" "$conn" "$mtu" "$size" "$1"
					done
				done
			done
		done
	done
}

# An atomic has one size; a datagram is no larger than the path MTU.
fits() { # OP CONN MTU SIZE
	[ "$1" != atomic ] || [ "$4" = "$first_size" ] || return 1
	[ "$2" != UD ] || [ "$4" = all ] || [ "$4" -le "$3" ]
}

run_level() {
	case $LEVEL in
	quick)
		first_size=64
		matrix 20 1024 64
		first_size=
		matrix 5 4096 65536
		;;
	check)
		first_size=2
		matrix 50 1024 "2 1024"
		first_size=
		matrix 20 4096 "4096 65536"
		;;
	full)
		first_size=all
		matrix 20 "1024 4096" all
		first_size=64
		matrix 20 "256 512 2048" "64 4096 65536"
		;;
	*) fail "no matrix for level '$LEVEL'" ;;
	esac
}

topo 4200
IA=$(gid_index a "$A_IP4") IB=$(gid_index b "$B_IP4")
run_level
finish
