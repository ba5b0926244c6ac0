#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 64 KiB WRITE between two namespaces over veth: rdma_rxe, then Weft, in one boot of 7.1 or later.
set -u
ROW=${ROW:-namespaces}
# shellcheck source=tools/bench/lib.sh
. "$(dirname "$0")/lib.sh"

prepare
modprobe rdma_rxe && rdma system set netns exclusive || exit 1
for kind in rxe weft; do
	veth_pair "$kind" 9000
	value=$(perftest 4 ib_write_bw -s 65536 -n 200) || exit 1
	record write_64k "$kind" "$value" MB/s
	veth_gone
done
