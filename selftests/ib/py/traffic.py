#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checked RC traffic between the ends until SIGTERM; the number of operations so far goes to a file.

usage: traffic.py FILE    says "clean end" if everything that was begun arrived, byte for byte
"""

import os
import signal
import sys

import vx
from suite import A_DEV, A_IP4, B_DEV, B_IP4, equal

SIZE, WINDOW = 20000, 8
stopping = []


def main():
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
    a, b = vx.End(A_DEV, A_IP4), vx.End(B_DEV, B_IP4)
    vx.connect(a, b, timeout=17)
    a.fill(3)
    done = 0
    with open(sys.argv[1], "wb", buffering=0) as file:
        while not stopping:
            for slot in range(WINDOW):
                a.poke(slot * SIZE, (done + slot).to_bytes(8, "little"))
                a.post("RDMA_WRITE" if slot % 2 else "RDMA_READ", [(slot * SIZE, SIZE)], slot * SIZE)
            equal("completions", [wc["status"] for wc in a.poll(WINDOW, 30)], ["SUCCESS"] * WINDOW)
            for slot in range(WINDOW):
                equal("bytes", b.sha(slot * SIZE, SIZE), a.sha(slot * SIZE, SIZE))
            done += WINDOW
            os.pwrite(file.fileno(), b"%d\n" % done, 0)
    a.close()
    b.close()
    print("clean end", flush=True)


if __name__ == "__main__":
    main()
