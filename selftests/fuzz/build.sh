#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds the parser's fuzzer: build.sh ROOT OUTPUT [FLAG...]; ROOT is a tree with kernel/ in it.
set -eu
root=$1
output=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
exec "${CC:-clang}" -std=gnu11 -O1 -g -Wall -Wextra -fno-omit-frame-pointer \
	-fsanitize=fuzzer "$@" -I"$root/kernel/include" -o "$output" \
	"$here/parse_fuzz.c" "$root/kernel/wire/headers.c" "$root/kernel/transport/opcode.c"
