#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures the RoCEv2 frames of a netdev until SIGTERM, then tells what they were.

usage: sniff.py NETDEV [NETNS]    prints lines "in|out NAME FRAMES BAD-ICRC", NAME being the operation
"""

import collections
import signal
import sys
import time

import roce

NAMES = {0x04: "SEND", 0x05: "SEND", 0x0a: "WRITE", 0x0b: "WRITE", 0x0c: "READ_REQUEST", 0x10: "READ_RESPONSE",
         0x11: "ACK", 0x12: "ATOMIC_ACK", 0x13: "CAS", 0x14: "FAA"}
NAMES.update(dict.fromkeys(range(0x00, 0x04), "SEND"))
NAMES.update(dict.fromkeys(range(0x06, 0x0a), "WRITE"))
NAMES.update(dict.fromkeys(range(0x0d, 0x10), "READ_RESPONSE"))


def main():
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
    tap = roce.Tap(*sys.argv[1:3])
    print("ready", flush=True)
    frames = {"out": [], "in": []}
    while True:
        last = bool(stopping)
        for data, out in tap.both():
            frames["out" if out else "in"].append(data)
        if last:
            break
        time.sleep(0.2)
    for way, list_ in frames.items():
        seen, bad = collections.Counter(), collections.Counter()
        for data in list_:
            opcode = roce.parse(data)[0]
            name = NAMES.get(opcode, {1: "UC", 3: "UD"}.get(opcode >> 5, "OTHER"))
            seen[name] += 1
            bad[name] += not roce.icrc_ok(data)
        for name, count in sorted(seen.items()):
            print(way, name, count, bad[name])


if __name__ == "__main__":
    main()
