#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Selective repeat: what is lost is sent again and nothing else, and only Weft peers are told so."""

import os
import time

import roce
import vx
from links import setting
from suite import (A_DEV, A_IP4, B_DEV, B_IP4, SLOW, between, check, counters, equal, finish, moved, part, probes,
                   wait_for)
from wires import A_NETDEV, A_NS, B_NETDEV, B_NS, Drop, Netem

MTU, WARM = 1024, 48
WEFT = 1  # the lowest of BTH's reserved bits


class DropPsn(Drop):
    """The first packets with a PSN that come in to an end."""

    def __init__(self, end, psn, count=1):
        super().__init__(end)
        first = f"numgen inc mod 1000000000 < {count} "
        self.rules = self.rules.replace("counter drop", f"@th,136,24 {psn & 0xffffff} {first}counter drop")


class DropPsns(Drop):
    """All packets with one of some PSNs that come in to an end."""

    def __init__(self, end, psns):
        super().__init__(end)
        these = ", ".join(str(psn & 0xffffff) for psn in psns)
        self.rules = self.rules.replace("counter drop", f"@th,136,24 {{ {these} }} counter drop")


class DropAfter(Drop):
    """All packets that come in to an end, but the first."""

    def __init__(self, end):
        super().__init__(end)
        self.rules = self.rules.replace("counter drop", "numgen inc mod 1000000000 > 0 counter drop")


def ends(**attributes):
    """Both know that the other one is a Weft device; the next PSN of a is a.psn + WARM."""
    a, b = vx.End(A_DEV, A_IP4), vx.End(B_DEV, B_IP4)
    # A timeout that would be noticed.
    vx.connect(a, b, **{"mtu": MTU, "timeout": 20, **attributes})
    # One at a time: each has an answer of its own, and it takes some to know a Weft device.
    for _ in range(WARM // 3):
        a.post("RDMA_WRITE", [(0, 3 * MTU)], 0)
        equal("WRITE", a.one(), "SUCCESS")
    a.fill(7)
    return a, b


def close(*all_ends):
    for end in all_ends:
        end.close()


def both():
    return counters(A_DEV), counters(B_DEV)


def since(before):
    return [moved(was, now) for was, now in zip(before, both())]


def write(a, b, packets, most=2.0):
    start = time.monotonic()
    a.post("RDMA_WRITE", [(0, packets * MTU)], 0)
    equal("WRITE", a.one(30), "SUCCESS")
    check("it did not take a timeout", time.monotonic() - start < most * SLOW)
    equal("bytes", b.sha(0, packets * MTU), a.sha(0, packets * MTU))


@part("one packet is lost: it alone is sent again, what came behind it waits")
def one_hole():
    a, b = ends()
    before = both()
    with DropPsn("b", a.psn + WARM + 10) as drop:
        write(a, b, 40)
    equal("dropped", drop.packets, 1)
    at_a, at_b = since(before)
    # A slow machine may have asked early, and asked for no more than that.
    between("sent again", at_a.get("retransmitted_pkts"), 1, 1 + probes(at_a))
    between("duplicates", at_b.get("duplicate_request", 0), 0, probes(at_a))
    equal("held", at_b.get("held_pkts"), 29)
    # A duplicate is out of sequence, too, if it comes before the hole is filled.
    between("out of sequence", at_b.get("out_of_sequence"), 29, 29 + at_b.get("duplicate_request", 0))
    check("extended NAKs", at_b.get("ext_nak_sent", 0) >= 1)
    equal("extended NAKs received", at_a.get("ext_nak_rcvd"), at_b.get("ext_nak_sent"))
    equal("plain NAKs", at_a.get("packet_seq_err"), None)
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


@part("the last packet is lost: a probe brings it, no timeout")
def tail():
    a, b = ends()
    before = both()
    with DropPsn("b", a.psn + WARM + 9) as drop:
        write(a, b, 10)
    equal("dropped", drop.packets, 1)
    at_a, _ = since(before)
    check("probes", at_a.get("tail_loss_probes", 0) >= 1)
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


@part("the acknowledgement is lost: a probe asks again, the duplicate is reported as such")
def ack_lost():
    a, b = ends()
    before = both()
    with Drop("a", [roce.RC_ACK], every=1000000000) as drop:
        write(a, b, 1)
    equal("dropped", drop.packets, 1)
    at_a, at_b = since(before)
    check("probes", at_a.get("tail_loss_probes", 0) >= 1)
    equal("duplicates", at_b.get("duplicate_request"), at_a.get("retransmitted_pkts"))
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    # A probe is no resend that was not needed.
    equal("spurious", at_a.get("spurious_retrans"), None)
    close(a, b)


@part("the resends are lost, too")
def twice():
    a, b = ends()
    before = both()
    with DropPsn("b", a.psn + WARM + 3, count=3) as drop:
        write(a, b, 30)
    equal("dropped", drop.packets, 3)
    at_a, _ = since(before)
    between("sent again", at_a.get("retransmitted_pkts"), 3, 3 + probes(at_a))
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


def through_loss(a, b):
    """What moved at both by WRITEs through a path that loses and reorders; every byte came."""
    before = both()
    with Netem("delay 500us reorder 90% loss 5%"):
        for turn in range(8):
            a.fill(turn)
            write(a, b, 300, 30)
    return since(before)


@part("5 % loss, reordered: every byte, and no try was used up")
def lossy():
    a, b = ends()
    at_a, _ = through_loss(a, b)
    check("sent again", at_a.get("retransmitted_pkts", 0) > 10)
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


@part("a path that only reorders: nothing is sent again once it is known")
def reordered():
    a, b = ends()
    with Netem("delay 5ms reorder 25% gap 5", "a"):
        write(a, b, 300, 10)
        before = both()
        for _ in range(4):
            write(a, b, 500, 10)
        at_a, at_b = since(before)
    check("held", at_b.get("held_pkts", 0) > 20)
    check(f"sent again: {at_a}", at_a.get("retransmitted_pkts", 0) - probes(at_a) <= 20)
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


@part("without news the oldest packet asks for them, and what else is overdue waits for the answer")
def silence():
    a, b = ends()
    before = both()
    with DropPsns("b", range(a.psn + WARM, a.psn + WARM + 5)), DropAfter("a"):
        a.post("RDMA_WRITE", [(0, 6 * MTU)], 0)
        wait_for("an adaptive timeout", lambda: since(before)[0].get("roce_adp_retrans", 0) >= 1)
        at_a, at_b = since(before)
        equal("held", at_b.get("held_pkts"), 1)
        equal("extended NAKs received", at_a.get("ext_nak_rcvd"), 1)
        between("sent again", at_a.get("retransmitted_pkts"), 1, 1 + probes(at_a))
    equal("WRITE", a.one(30), "SUCCESS")
    equal("bytes", b.sha(0, 6 * MTU), a.sha(0, 6 * MTU))
    close(a, b)


@part("receiver not ready: what follows waits there, one packet is sent again for each NAK")
def not_ready():
    a, b = ends(min_rnr=20)
    before = both()
    for number in range(8):
        a.post("SEND", [(number * MTU, MTU)], wr_id=number)
    for number in range(8):
        wait_for("an RNR NAK", lambda least=number: since(before)[0].get("rnr_nak_rcvd", 0) > least)
        b.recv(number * MTU, MTU, number)
    equal("SENDs", [wc["status"] for wc in a.poll(8, 20)], ["SUCCESS"] * 8)
    equal("receives", [wc["wr_id"] for wc in b.poll(8, 20)], list(range(8)))
    equal("bytes", b.sha(0, 8 * MTU), a.sha(0, 8 * MTU))
    at_a, at_b = since(before)
    between("sent again", at_a.get("retransmitted_pkts", 0), 1, at_a["rnr_nak_rcvd"] + probes(at_a))
    check("held", at_b.get("held_pkts", 0) >= 1)
    close(a, b)


@part("receiver not ready for what was held: sent again when the time is over, no timeout")
def not_ready_behind():
    a, b = ends(min_rnr=20)
    before = both()
    with DropPsn("b", a.psn + WARM) as drop:
        a.post("RDMA_WRITE", [(0, MTU)], 0, wr_id=1)
        a.post("SEND", [(MTU, MTU)], wr_id=2)
        wait_for("an RNR NAK", lambda: since(before)[0].get("rnr_nak_rcvd", 0) >= 1)
    equal("dropped", drop.packets, 1)
    b.recv(MTU, MTU)
    equal("requests", [(wc["wr_id"], wc["status"]) for wc in a.poll(2, 20)], [(1, "SUCCESS"), (2, "SUCCESS")])
    equal("bytes", b.sha(0, 2 * MTU), a.sha(0, 2 * MTU))
    at_a, at_b = since(before)
    check("held", at_b.get("held_pkts", 0) >= 1)
    equal("timeouts", at_a.get("local_ack_timeout_err"), None)
    close(a, b)


@part("an atomic behind a hole is executed once, and in its turn")
def atomic_behind():
    a, b = ends()
    with DropPsn("b", a.psn + WARM):
        a.poke(0, (5).to_bytes(8, "little"))
        a.post("RDMA_WRITE", [(0, 8)], 4096)
        for slot in range(3):
            a.post("ATOMIC_FETCH_AND_ADD", [(64 + 8 * slot, 8)], 4096, compare_add=10, wr_id=slot)
        equal("all", [wc["status"] for wc in a.poll(4, 20)], ["SUCCESS"] * 4)
    values = [int.from_bytes(bytes.fromhex(a.peek(64 + 8 * slot, 8)), "little") for slot in range(3)]
    equal("old values", values, [5, 15, 25])
    equal("sum", int.from_bytes(bytes.fromhex(b.peek(4096, 8)), "little"), 35)
    close(a, b)


@part("a READ request behind a hole and one that is lost")
def reads():
    a, b = ends()
    b.fill(11)
    for lost in (0, 1):
        psn = a.psn + WARM + lost * 42
        with DropPsn("b", psn + lost) as drop:
            a.post("RDMA_WRITE", [(500000, MTU)], 500000, wr_id=1)
            a.post("RDMA_READ", [(0, 40 * MTU)], 0, wr_id=2)
            a.post("RDMA_WRITE", [(500000, MTU)], 500000, wr_id=3)
            equal("all", [(wc["wr_id"], wc["status"]) for wc in a.poll(3, 20)],
                  [(1, "SUCCESS"), (2, "SUCCESS"), (3, "SUCCESS")])
        equal("dropped", drop.packets, 1)
        equal("bytes", a.sha(0, 40 * MTU), b.sha(0, 40 * MTU))
    close(a, b)


@part("a READ that was held, and whose answers are lost: asked for again, no timeout")
def read_held():
    a, b = ends()
    b.fill(12)
    before = both()
    with DropPsn("a", a.psn + WARM + 1, count=2) as answers:
        with DropPsn("b", a.psn + WARM, count=1000000):
            a.post("RDMA_WRITE", [(500000, MTU)], 500000, wr_id=1)
            a.post("RDMA_READ", [(0, MTU)], 0, wr_id=2)
            a.post("RDMA_WRITE", [(500000, MTU)], 500000, wr_id=3)
            wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 2)
        equal("all", [(wc["wr_id"], wc["status"]) for wc in a.poll(3, 30)],
              [(1, "SUCCESS"), (2, "SUCCESS"), (3, "SUCCESS")])
    equal("answers dropped", answers.packets, 2)
    equal("bytes", a.sha(0, MTU), b.sha(0, MTU))
    equal("timeouts", since(before)[0].get("local_ack_timeout_err"), None)
    close(a, b)


@part("what was held, and whose acknowledgment is lost: asked for again, no timeout")
def write_held():
    a, b = ends()
    before = both()
    with DropPsn("a", a.psn + WARM + 2) as answers:
        with DropPsn("b", a.psn + WARM, count=1000000):
            a.post("RDMA_WRITE", [(0, MTU)], 0, wr_id=1)
            a.post("RDMA_READ", [(500000, MTU)], 500000, wr_id=2)
            a.post("RDMA_WRITE", [(MTU, MTU)], MTU, wr_id=3)
            wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 2)
        equal("all", [(wc["wr_id"], wc["status"]) for wc in a.poll(3, 30)],
              [(1, "SUCCESS"), (2, "SUCCESS"), (3, "SUCCESS")])
    equal("answers dropped", answers.packets, 1)
    equal("bytes", b.sha(0, 2 * MTU), a.sha(0, 2 * MTU))
    equal("timeouts", since(before)[0].get("local_ack_timeout_err"), None)
    close(a, b)


def early_ends(**attributes):
    """Those of ends(); the QP of B places WRITEs out of order."""
    setting("placement early", [B_DEV])
    try:
        return ends(**attributes)
    finally:
        setting("placement ordered", [B_DEV])


def cells(end, first, number):
    """What is where so many packets of a WRITE go."""
    return end.peek(first * MTU, number * MTU)


def cells_of(were, first, number):
    return were[2 * first * MTU:2 * (first + number) * MTU]


@part("placement early: what is behind a hole is in memory before the hole is filled")
def placed():
    for early in (False, True):
        a, b = early_ends() if early else ends()
        was = cells(b, 0, 40)
        before = both()
        with DropPsn("b", a.psn + WARM + 10, count=1000000):
            a.post("RDMA_WRITE", [(0, 40 * MTU)], 0)
            wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 29)
            equal("before the hole", cells(b, 0, 10), cells(a, 0, 10))
            equal("the hole", cells(b, 10, 1), cells_of(was, 10, 1))
            equal("behind the hole", cells(b, 11, 29), cells(a, 11, 29) if early else cells_of(was, 11, 29))
            equal("completions", a.poll(1, 0), [])
        equal("WRITE", a.one(30), "SUCCESS")
        equal("bytes", b.sha(0, 40 * MTU), a.sha(0, 40 * MTU))
        _, at_b = since(before)
        equal("placed early", at_b.get("placed_early_pkts"), 29 if early else None)
        equal("held", at_b.get("held_pkts"), 29)
        close(a, b)


@part("placement early: without the RETH nothing is placed; with one of its own each message is")
def placed_by_reth():
    a, b = early_ends()
    was = cells(b, 0, 20)
    before = both()
    with DropPsn("b", a.psn + WARM, count=1000000):
        a.post("RDMA_WRITE", [(0, 10 * MTU)], 0, wr_id=1)
        a.post("RDMA_WRITE", [(10 * MTU, 9 * MTU)], 10 * MTU, wr_id=2)
        a.post("RDMA_WRITE", [(19 * MTU, MTU)], 19 * MTU, wr_id=3)
        wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 19)
        equal("the message without", cells(b, 0, 10), cells_of(was, 0, 10))
        equal("those with", cells(b, 10, 10), cells(a, 10, 10))
    equal("WRITEs", [wc["wr_id"] for wc in a.poll(3, 30)], [1, 2, 3])
    equal("bytes", b.sha(0, 20 * MTU), a.sha(0, 20 * MTU))
    equal("placed early", since(before)[1].get("placed_early_pkts"), 10)
    close(a, b)


@part("placement early: no key, no place; immediate data and completions stay in order")
def placed_with_right():
    a, b = early_ends()
    was = cells(b, 0, 6)
    b.recvs([(0, 0)] * 2)
    before = both()
    with DropPsn("b", a.psn + WARM, count=1000000):
        a.post("RDMA_WRITE", [(0, 8)], 500000, wr_id=1)
        a.post("RDMA_WRITE_WITH_IMM", [(0, 3 * MTU)], 0, wr_id=2, imm=77)
        a.post("RDMA_WRITE", [(3 * MTU, 3 * MTU)], 3 * MTU, wr_id=3, rkey=b.mr.rkey ^ 0x55)
        wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 6)
        equal("with the key", cells(b, 0, 3), cells(a, 0, 3))
        equal("without", cells(b, 3, 3), cells_of(was, 3, 3))
        equal("receives", b.poll(1, 0.1), [])
    equal("WRITEs", [(wc["wr_id"], wc["status"]) for wc in a.poll(3, 30)],
          [(1, "SUCCESS"), (2, "SUCCESS"), (3, "REM_ACCESS_ERR")])
    equal("immediate data", b.poll(1)[0]["imm"], 77)
    equal("without the key", cells(b, 3, 3), cells_of(was, 3, 3))
    close(a, b)


@part("placement early: behind a receiver that is not ready nothing moves")
def placed_not_ready():
    a, b = early_ends(min_rnr=20)
    was = cells(b, 0, 4)
    before = both()
    a.post("SEND", [(0, 64)], wr_id=1)
    a.post("RDMA_WRITE", [(0, 4 * MTU)], 0, wr_id=2)
    wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 4)
    equal("before the receive", cells(b, 0, 4), was)
    b.recv(500000, 64)
    equal("requests", [(wc["wr_id"], wc["status"]) for wc in a.poll(2, 20)], [(1, "SUCCESS"), (2, "SUCCESS")])
    equal("bytes", b.sha(0, 4 * MTU), a.sha(0, 4 * MTU))
    equal("placed early", since(before)[1].get("placed_early_pkts"), None)
    close(a, b)


@part("placement early: 5 % loss, reordered: every byte")
def placed_lossy():
    a, b = early_ends()
    check("placed early", through_loss(a, b)[1].get("placed_early_pkts", 0) > 50)
    close(a, b)


@part("a QP that ends with packets in its hold queue leaves nothing behind")
def ends_holding():
    for state, make in (("ERR", ends), ("RESET", early_ends), (None, early_ends)):
        a, b = make(timeout=13 if SLOW == 1 else 17, retry=1)
        before = both()
        with DropPsn("b", a.psn + WARM, count=1000000):
            a.post("RDMA_WRITE", [(0, 40 * MTU)], 0)
            wait_for("held packets", lambda: since(before)[1].get("held_pkts", 0) >= 20)
            if state:
                b.to_state(state)
            else:
                b.qp.close()
            equal("WRITE", a.one(20), "RETRY_EXC_ERR")
        close(a, b)


class Forged:
    """Requests of a peer that somebody else builds, and the answers that they get."""

    def __init__(self, reserved):
        self.a, self.b = vx.End(A_DEV, A_IP4), vx.End(B_DEV, B_IP4)
        vx.connect(self.a, self.b, mtu=MTU)
        self.b.recvs([(0, 64)] * 32)
        mac = [line.split()[1] for line in os.popen(f"ip netns exec {B_NS} ip link show {B_NETDEV}")
               if "link/ether" in line][0]
        self.tap = roce.Tap(A_NETDEV, A_NS)
        self.wire = roce.Wire(A_NETDEV, mac, A_NS)
        self.reserved = reserved

    def send(self, ahead):
        transport = roce.bth(roce.RC_SEND_ONLY, self.b.qp.qp_num, self.a.psn + ahead, ack=True,
                             reserved=self.reserved) + bytes(64)
        self.wire.send(roce.packet(A_IP4, B_IP4, transport))

    def naks(self):
        """What follows the AETH of each sequence NAK."""
        found = [roce.parse(data) for data in self.tap.frames(outgoing=False)]
        return [rest[4:] for opcode, _, _, rest in found if opcode == roce.RC_ACK and rest[0] == 0x60]

    def close(self):
        self.tap.close()
        close(self.a, self.b)


def gap_of(reserved):
    """Eight requests in order, a gap, eight more: the answers."""
    peer = Forged(reserved)
    before = counters(B_DEV)
    for number in list(range(8)) + list(range(9, 17)):
        peer.send(number)
    wait_for("a NAK", lambda: moved(before, counters(B_DEV)).get("nak_sent", 0) >= 1)
    time.sleep(0.05 * SLOW)
    now = moved(before, counters(B_DEV))
    naks = peer.naks()
    peer.send(8)
    wait_for("the missing one", lambda: moved(before, counters(B_DEV)).get("rdma_recvs", 0) >= 9)
    time.sleep(0.05 * SLOW)
    taken = moved(before, counters(B_DEV))["rdma_recvs"]
    peer.close()
    return now, naks, taken


@part("a peer without the bit never gets an extended NAK, and nothing is held for it")
def not_weft():
    for reserved in (0, 0x3e):
        now, naks, taken = gap_of(reserved)
        equal("NAKs", [rest.hex() for rest in naks], [""])
        equal("extended", now.get("ext_nak_sent"), None)
        equal("held", now.get("held_pkts"), None)
        equal("taken", taken, 9)


@part("a peer with the bit is told what is held, and gets it executed")
def is_weft():
    now, naks, taken = gap_of(WEFT)
    equal("held", now.get("held_pkts"), 8)
    check("NAKs", naks)
    # No duplicates, and the first PSNs behind the missing one.
    equal("no duplicates", naks[-1][:4], bytes(4))
    check(f"a bitmap: {naks[-1].hex()}", naks[-1][4] & 1)
    equal("taken", taken, 16 + 1)


if __name__ == "__main__":
    finish()
