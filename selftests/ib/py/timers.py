#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Timers as the codes say: the ACK timeout with all its tries, and the RNR timer.

With EXACT in the environment all codes are measured and each must be right within 5 % or 20 µs; that is
for a machine whose clock counts instructions (weft-vm run --icount). Else none may be early.
"""

import os
import socket
import struct
import time

import roce
import vx
from suite import (A_DEV, A_IP4, B_DEV, B_IP4, LEVEL, SLOW, between, check, counters, equal, finish, moved, note, part,
                   probes)

EXACT = os.environ.get("EXACT")
A_NETDEV, A_NS = os.environ["A_NETDEV"], os.environ["A_NS"]
# Not so short that a busy machine takes a living peer for dead.
ACK_CODES = range(8, 21) if EXACT else (16 if SLOW == 1 else 18,)
RNR_CODES = range(1, 32) if EXACT else (1, 8, 14, 20)
SO_TIMESTAMPNS = 35
RNR_UNITS = [65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
             3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152]


def right(what, got, wanted):
    off = got - wanted
    if EXACT:
        check(f"{what}: {got * 1e6:.1f} µs, expected {wanted * 1e6:.1f}", abs(off) <= max(wanted * 0.05, 20e-6))
    else:
        check(f"{what}: {got * 1e6:.1f} µs, expected {wanted * 1e6:.1f}", -20e-6 <= off <= wanted * 3 + 2 * SLOW)
    return off


def ends(**attributes):
    a, b = vx.End(A_DEV, A_IP4, events=True), vx.End(B_DEV, B_IP4)
    vx.connect(a, b, **attributes)
    # One at a time: each has an answer of its own, and it takes some to know a Weft device.
    for _ in range(16):
        a.post("RDMA_WRITE", [(0, 3000)], 0)
        equal("WRITE", a.one(), "SUCCESS")
    return a, b


def silence(code, retries):
    """From the last sign of life to RETRY_EXC_ERR."""
    a, b = ends(timeout=code, retry=retries)
    before = counters(A_DEV)
    b.to_state("ERR")
    a.arm()
    start = time.monotonic()
    a.post("RDMA_WRITE", [(0, 3000)], 0)
    check("an event", a.notified(120))
    spent = time.monotonic() - start
    equal("WRITE", a.one(), "RETRY_EXC_ERR")
    now = moved(before, counters(A_DEV))
    equal("timeouts", now.get("local_ack_timeout_err"), retries + 1)
    equal("retries exhausted", now.get("retry_exceeded_err"), 1)
    a.close()
    b.close()
    return spent, now


@part("a silent peer: the codes' time, as often as there are tries")
def ack_timeout():
    worst = 0
    for code in ACK_CODES:
        for retries in (0, 1, 7) if code < 17 or LEVEL == "full" else (0, 1):
            wanted = (retries + 1) * 4.096e-6 * 2 ** code
            spent, now = silence(code, retries)
            off = right(f"code {code}, {retries} retries", spent, wanted)
            worst = max(worst, off / wanted, key=abs)
            if wanted > 0.05:
                # Sent again earlier than the code says, and that cost no try.
                check("adaptive timeouts", now.get("roce_adp_retrans", 0) > 2)
    note(f"ACK timeouts: at most {worst * 100:.2f} % off")


class StampedTap(roce.Tap):
    """A tap that tells when each frame passed."""

    def __init__(self, netdev, netns):
        super().__init__(netdev, netns)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def stamped(self):
        """(seconds, packet from its IP header on, is it outgoing?)"""
        found = []
        while True:
            try:
                data, extra, _, where = self.socket.recvmsg(65536, 256)
            except BlockingIOError:
                return found
            if data[0] >> 4 != 4 or data[9] != socket.IPPROTO_UDP:
                continue
            seconds, nanoseconds = struct.unpack("qq", extra[0][2])
            found.append((seconds + nanoseconds * 1e-9, data, where[2] == socket.PACKET_OUTGOING))


def rnr_delay(code):
    """From the RNR NAK to the next packet that goes out. One retry: the second NAK ends it."""
    a, b = ends(timeout=20, min_rnr=code, rnr_retry=1)
    tap = StampedTap(A_NETDEV, A_NS)
    sender, receiver = counters(A_DEV), counters(B_DEV)
    a.post("SEND", [(0, 64)])
    equal("SEND", a.one(20), "RNR_RETRY_EXC_ERR")
    sender, receiver = moved(sender, counters(A_DEV)), moved(receiver, counters(B_DEV))
    between("RNR NAKs", receiver.get("rnr_nak_sent", 0), 2, 2 + probes(sender))
    frames = tap.stamped()
    nak = next(when for when, data, out in frames if not out and roce.parse(data)[0] == roce.RC_ACK
               and roce.parse(data)[3][0] >> 5 == 1)
    resent = next(when for when, _, out in frames if out and when > nak)
    tap.close()
    a.close()
    b.close()
    return resent - nak


@part("receiver not ready: the code's time until the next try")
def rnr_timer():
    worst = 0
    for code in RNR_CODES:
        wanted = RNR_UNITS[code] * 1e-5
        off = right(f"code {code}", rnr_delay(code), wanted)
        worst = max(worst, off, key=abs)
    note(f"RNR timers: at most {worst * 1e6:.1f} µs off")


if __name__ == "__main__":
    finish()
