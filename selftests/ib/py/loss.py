#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wires that lose, double, reorder and corrupt, receivers that are late or gone: what reaches memory."""

import random
import time

import vx
from suite import (A_DEV, A_IP4, B_DEV, B_IP4, LEVEL, SLOW, Failed, check, between, counters, equal, finish, moved,
                   part, probes, wait_for)
from wires import Drop, Netem

FACTOR = {"quick": 1, "check": 2, "full": 10}.get(LEVEL, 1)
READ_RESPONSE_MIDDLE, READ_RESPONSE_ONLY, ACK, ATOMIC_ACK = 0x0e, 0x10, 0x11, 0x12


def ends(kind="RC", **attributes):
    options = {"depth": 600, "cqe": 4000}
    a, b = vx.End(A_DEV, A_IP4, kind, **options), vx.End(B_DEV, B_IP4, kind, **options)
    # Seconds for eight tries: 0.5, on a slow machine 2.1.
    attributes = {"mtu": 1024, "timeout": 14 if SLOW == 1 else 16, "retry": 7, **attributes}
    vx.connect(a, b, **attributes)
    return a, b


def close(*all_ends):
    for end in all_ends:
        end.close()


def mixed(count, seed):
    """Messages of all kinds of sizes, packed into the buffer."""
    dice, offset, found = random.Random(seed), 0, []
    for _ in range(count):
        size = dice.choice((1, 64, 1000, 1024, 1025, 4096, 9000))
        found.append((offset, size))
        offset += size
    return found


def all_operations(a, b, count):
    """SENDs, WRITEs and READs; every byte is compared."""
    pieces = mixed(count, count)
    a.fill(1)
    b.fill(2)
    b.recvs(pieces)
    equal("SENDs", a.stream("SEND", [(o, n, 0) for o, n in pieces]), [])
    got = b.poll(count, 30)
    equal("receives", [(wc["status"], wc["wr_id"], wc["len"]) for wc in got],
          [("SUCCESS", i, n) for i, (_, n) in enumerate(pieces)])
    stop = pieces[-1][0] + pieces[-1][1]
    equal("bytes sent", b.sha(0, stop), a.sha(0, stop))
    a.fill(3)
    equal("WRITEs", a.stream("RDMA_WRITE", [(o, n, o) for o, n in pieces]), [])
    equal("bytes written", b.sha(0, stop), a.sha(0, stop))
    b.fill(4)
    equal("READs", a.stream("RDMA_READ", [(o, n, o) for o, n in pieces]), [])
    equal("bytes read", b.sha(0, stop), a.sha(0, stop))


def under(netem, count, moves):
    """All operations on such a wire; these counters must have moved, or the wire was not that bad."""
    a, b = ends()
    before = [counters(dev) for dev in (A_DEV, B_DEV)]
    with Netem(netem):
        all_operations(a, b, count * FACTOR)
    total = {}
    for was, dev in zip(before, (A_DEV, B_DEV)):
        for name, by in moved(was, counters(dev)).items():
            total[name] = total.get(name, 0) + by
    for name in moves:
        check(f"{name} moved: {total}", total.get(name))
    equal("retries exhausted", total.get("retry_exceeded_err", 0), 0)
    close(a, b)


@part("RC: 3 % loss both ways")
def loss():
    under("loss 3%", 60, ["retransmitted_pkts"])


@part("RC: half of all frames doubled")
def duplicates():
    under("duplicate 50%", 60, ["duplicate_request"])


@part("RC: reordered")
def reorder():
    under("delay 2ms reorder 97%", 60, ["out_of_sequence"])


@part("RC: 2 % corrupted: the ICRC finds it")
def corrupt():
    under("corrupt 2%", 60, ["rx_drop_icrc", "retransmitted_pkts"])


@part("RC: loss, doubles and reordering at once")
def everything():
    under("delay 1ms reorder 98% loss 1% duplicate 5%", 40, ["retransmitted_pkts"])


@part("atomics whose answers get lost: replayed, not executed again")
def atomics():
    a, b = ends()
    count = 60 * FACTOR
    before = counters(B_DEV)
    with Drop("a", [ATOMIC_ACK], every=3) as drop:
        for step in range(count):
            a.post("ATOMIC_FETCH_AND_ADD", [(64, 8)], 4096, compare_add=3)
            equal("FAA", a.one(20), "SUCCESS")
            equal("old value", int.from_bytes(bytes.fromhex(a.peek(64, 8)), "little"), 3 * step)
    equal("sum", int.from_bytes(bytes.fromhex(b.peek(4096, 8)), "little"), 3 * count)
    # Each answer that was dropped had to be asked for again.
    check(f"answers dropped: {drop.packets}", drop.packets >= count // 3)
    check("duplicates", moved(before, counters(B_DEV)).get("duplicate_request", 0) >= drop.packets - 1)
    close(a, b)


@part("several atomics in flight, answers lost: the sum is exact")
def atomics_in_flight():
    a, b = ends()
    count = 64 * FACTOR
    with Drop("a", [ATOMIC_ACK], every=5, numbers="random") as drop:
        for first in range(0, count, 8):
            for slot in range(8):
                a.post("ATOMIC_FETCH_AND_ADD", [(64 + slot * 8, 8)], 4096, compare_add=1, wr_id=slot)
            equal("FAAs", [wc["status"] for wc in a.poll(8, 30)], ["SUCCESS"] * 8)
            old = [int.from_bytes(bytes.fromhex(a.peek(64 + slot * 8, 8)), "little") for slot in range(8)]
            equal("old values", old, list(range(first, first + 8)))
    check("answers were dropped", drop.packets > 0)
    equal("sum", int.from_bytes(bytes.fromhex(b.peek(4096, 8)), "little"), count)
    close(a, b)


@part("READ responses get lost: asked for again, every byte right")
def reads():
    a, b = ends(mtu=256)
    b.fill(9)
    size = 100_000
    with Drop("a", [READ_RESPONSE_MIDDLE], every=37) as drop:
        for turn in range(2 * FACTOR):
            a.fill(turn)
            a.post("RDMA_READ", [(0, size)], 7)
            equal("READ", a.one(30), "SUCCESS")
            equal("bytes", a.peek(0, size), b.peek(7, size))
    check("responses were dropped", drop.packets > 5)
    close(a, b)


@part("all acknowledgements get lost for a while: WRITE and SEND happen once")
def acks():
    # Eight tries must outlast the filter, which a slow machine sets up and takes away slowly.
    a, b = ends(timeout=17 if SLOW == 1 else 19)
    b.recvs([(0, 64)] * 8)
    a.fill(5)
    with Drop("a", [ACK]) as drop:
        for _ in range(4):
            a.post("SEND", [(0, 64)])
        equal("completions without an ACK", a.poll(1, 0.05), [])
    equal("SENDs", [wc["status"] for wc in a.poll(4, 30)], ["SUCCESS"] * 4)
    equal("receives", [wc["status"] for wc in b.poll(4)], ["SUCCESS"] * 4)
    equal("receives that were too many", b.poll(1, 0.1), [])
    check("ACKs were dropped", drop.packets >= 1)
    close(a, b)


@part("a path slower than the timeout: sent again meanwhile, placed once")
def slow_path():
    a, b = ends(timeout=14)
    a.fill(31)
    # The answer comes when what was sent again waits below, and the next timeout has begun it once more.
    with Netem("delay 100ms", "a"), Netem("delay 50ms", "b"):
        before = counters(A_DEV)
        a.post("RDMA_WRITE", [(0, 1 << 20)], 0)
        equal("WRITE", a.one(60), "SUCCESS")
        check("timeouts", moved(before, counters(A_DEV)).get("local_ack_timeout_err", 0) > 0)
    equal("bytes", b.sha(0, 1 << 20), a.sha(0, 1 << 20))
    close(a, b)


@part("receiver not ready: the SEND waits, and arrives when there is a receive")
def rnr():
    a, b = ends(min_rnr=14)
    a.fill(6)
    before = [counters(dev) for dev in (A_DEV, B_DEV)]
    a.post("SEND", [(0, 5000)])
    equal("no completion yet", a.poll(1, 0.05), [])
    b.recv(0, 8192)
    equal("SEND", a.one(), "SUCCESS")
    equal("receive", [wc["len"] for wc in b.poll(1)], [5000])
    equal("bytes", b.sha(0, 5000), a.sha(0, 5000))
    a_moved, b_moved = (moved(was, counters(dev)) for was, dev in zip(before, (A_DEV, B_DEV)))
    check("RNR NAKs", b_moved["rnr_nak_sent"] >= 1)
    equal("RNR NAKs received", a_moved.get("rnr_nak_rcvd"), b_moved["rnr_nak_sent"])
    close(a, b)


@part("RNR timer: 10.24 ms between tries, no less")
def rnr_timer():
    a, b = ends(min_rnr=20)
    before, sent = counters(B_DEV), counters(A_DEV)
    start = time.monotonic()
    a.post("SEND", [(0, 64)])
    time.sleep(0.3)
    naks = moved(before, counters(B_DEV)).get("rnr_nak_sent", 0)
    spent = time.monotonic() - start
    most = int(spent / 0.01024) + 1 + probes(moved(sent, counters(A_DEV)))
    between("RNR NAKs", naks, int(0.3 / 0.01024 / (4 * SLOW)), most)
    b.recv(0, 64)
    equal("SEND", a.one(), "SUCCESS")
    close(a, b)


@part("RNR retries run out: RNR_RETRY_EXC_ERR after as many NAKs as were granted")
def rnr_exceeded():
    a, b = ends(min_rnr=20, rnr_retry=3)
    before, sent = counters(B_DEV), counters(A_DEV)
    start = time.monotonic()
    a.post("SEND", [(0, 64)])
    equal("SEND", a.one(20), "RNR_RETRY_EXC_ERR")
    spent = time.monotonic() - start
    between("RNR NAKs", moved(before, counters(B_DEV))["rnr_nak_sent"], 4, 4 + probes(moved(sent, counters(A_DEV))))
    check(f"time {spent}", spent >= 3 * 0.01024)
    a.post("SEND", [(0, 64)])
    equal("what comes after", a.one(), "WR_FLUSH_ERR")
    close(a, b)


@part("nobody answers: RETRY_EXC_ERR after as many timeouts as were granted, the rest is flushed")
def retry_exceeded():
    a, b = ends(timeout=12, retry=3)
    before = counters(A_DEV)
    with Drop("b"):
        start = time.monotonic()
        for number in range(3):
            a.post("RDMA_WRITE", [(0, 64)], 0, wr_id=number)
        got = a.poll(3, 20)
        spent = time.monotonic() - start
    equal("completions", [(wc["wr_id"], wc["status"]) for wc in got],
          [(0, "RETRY_EXC_ERR"), (1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")])
    now = moved(before, counters(A_DEV))
    equal("timeouts", now.get("local_ack_timeout_err"), 4)
    equal("retries exhausted", now.get("retry_exceeded_err"), 1)
    # Code 12: 16.8 ms, and at most four times as long.
    between("seconds", spent, 4 * 0.0167, 4 * 4 * 0.0168 + 2 * SLOW)
    close(a, b)


@part("UC: a message arrives whole or not at all, in order")
def uc():
    a, b = ends("UC")
    count, size, slots = 40 * FACTOR, 5000, 32
    b.recvs([(slot * 6000, 6000) for slot in range(slots)])
    a.fill(8)
    seen, done = [], 0
    with Netem("loss 5%", "a") as netem:
        for number in range(count):
            a.poke(0, number.to_bytes(8, "little") * (size // 8))
            a.post("SEND_WITH_IMM", [(0, size)], imm=number)
            equal("send", a.one(), "SUCCESS")
            for wc in b.poll(1, 0.02):
                done += 1
                equal("receive", (wc["status"], wc["len"]), ("SUCCESS", size))
                where = wc["wr_id"] * 6000
                equal("bytes", b.peek(where, size), (wc["imm"].to_bytes(8, "little") * (size // 8)).hex())
                seen.append(wc["imm"])
                b.recv(where, 6000, wc["wr_id"])
    equal("order", seen, sorted(set(seen)))
    check(f"some arrive ({len(seen)} of {count}), some do not ({netem.dropped} frames dropped)",
          0 < len(seen) < count and netem.dropped > 0)
    close(a, b)


@part("UD: what the wire doubles arrives twice")
def ud_doubled():
    a, b = ends("UD")
    b.recvs([(slot * 2048, 2048) for slot in range(40)])
    with Netem("duplicate 100%", "a"):
        for number in range(20):
            a.poke(0, bytes([number]) * 100)
            a.post("SEND_WITH_IMM", [(0, 100)], imm=number)
            equal("send", a.one(), "SUCCESS")
        got = b.poll(40, 10)
    equal("datagrams", sorted(wc["imm"] for wc in got), sorted(list(range(20)) * 2))
    for wc in got:
        equal("bytes", b.peek(wc["wr_id"] * 2048 + vx.GRH, 100), (bytes([wc["imm"]]) * 100).hex())
    close(a, b)


@part("RC over a wire where each frame comes twice: every request is executed once")
def rc_doubled():
    a, b = ends()
    count = 20 * FACTOR
    b.recvs([(slot * 2048, 2048) for slot in range(count + 8)])
    before, sent = counters(B_DEV), counters(A_DEV)
    with Netem("duplicate 100%"):
        for number in range(count):
            a.post("ATOMIC_FETCH_AND_ADD", [(64, 8)], 900000, compare_add=1)
            equal("FAA", a.one(), "SUCCESS")
            a.post("SEND", [(0, 1500)])
            equal("SEND", a.one(), "SUCCESS")
        got = b.poll(count)
        equal("receives", len(got), count)
        equal("receives that were too many", b.poll(1, 0.1), [])
    equal("sum", int.from_bytes(bytes.fromhex(b.peek(900000, 8)), "little"), count)
    # Three request packets in each turn: FAA, FIRST, LAST. What a slow machine's probes send again comes twice, too.
    wait_for(f"{3 * count} duplicates", lambda: moved(before, counters(B_DEV)).get("duplicate_request") ==
             3 * count + 2 * moved(sent, counters(A_DEV)).get("retransmitted_pkts", 0))
    close(a, b)


@part("a peer that dies and comes back with the same QPN is not taken for the old one")
def stale():
    a, b = ends(timeout=10, retry=2)
    a.post("RDMA_WRITE", [(0, 64)], 0)
    equal("WRITE", a.one(), "SUCCESS")
    b.to_state("ERR")
    a.post("RDMA_WRITE", [(0, 64)], 0)
    if a.one(20) not in ("RETRY_EXC_ERR", "REM_OP_ERR"):
        raise Failed("a WRITE to a QP in error")
    close(a, b)


if __name__ == "__main__":
    finish()
