#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frames that must be dropped: the counter of their fault moves by exactly one, memory by nothing.

After each of them a good frame of the same kind is sent: it must arrive, so that what the fault alone
made of it is shown. All frames are built by roce.py, which shares no code with Weft.
"""

import os
import subprocess

import roce
import vx
from suite import (A_DEV, A_IP4, A_IP6, B_DEV, B_IP4, B_IP6, Failed, Skipped, counters, equal, finish, moved, part,
                   wait_for)

A_NS, B_NS = os.environ["A_NS"], os.environ["B_NS"]
A_NETDEV, B_NETDEV = os.environ["A_NETDEV"], os.environ["B_NETDEV"]
IDLE = {"rcvd_pkts", "rcvd_bytes"}


def mac_of(netdev, netns):
    shown = subprocess.run(["ip", "netns", "exec", netns, "cat", f"/sys/class/net/{netdev}/address"],
                           capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def no_ports(family):
    """UDP datagrams that found no socket in b's namespace."""
    file = "snmp" if family == 4 else "snmp6"
    text = subprocess.run(["ip", "netns", "exec", B_NS, "cat", f"/proc/net/{file}"], capture_output=True,
                          text=True, check=True).stdout
    if family == 6:
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Udp6NoPorts"))
    return int([line for line in text.splitlines() if line.startswith("Udp:")][1].split()[2])


class Target:
    """b is connected to a QP of a that stays silent: this program speaks in its name."""

    def __init__(self, kind="RC", family=4):
        self.src, self.dst = (A_IP4, B_IP4) if family == 4 else (A_IP6, B_IP6)
        self.family = family
        self.a, self.b = vx.End(A_DEV, self.src, kind), vx.End(B_DEV, self.dst, kind)
        vx.connect(self.a, self.b, mtu=1024)
        self.info = self.b.info()
        self.psn = self.a.info()["psn"]
        self.kind = kind
        self.good = 0
        self.wire = roce.Wire(A_NETDEV, mac_of(B_NETDEV, B_NS), A_NS)
        for slot in range(64):
            self.b.recv(slot * 2048, 1024 + vx.GRH, slot)

    def write(self, data, where=300000, length=None, opcode=None, **options):
        opcode = opcode or (roce.RC_WRITE_ONLY if self.kind == "RC" else roce.UC_WRITE_ONLY)
        pad = -len(data) % 4
        head = roce.bth(opcode, self.info["qpn"], self.psn, **{"pad": pad, "ack": self.kind == "RC", **options})
        return head + roce.reth(self.info["addr"] + where, self.info["rkey"],
                                len(data) if length is None else length) + data + b"\0" * pad

    def datagram(self, data, qkey=vx.QKEY, **options):
        pad = -len(data) % 4
        return roce.bth(roce.UD_SEND_ONLY, self.info["qpn"], self.psn, **{"pad": pad, **options}) + \
            roce.deth(qkey, self.a.info()["qpn"]) + data + b"\0" * pad

    def whole(self, transport, **options):
        return roce.packet(self.src, self.dst, transport, **options)

    def send_good(self, **options):
        """It arrives, byte for byte."""
        self.good += 1
        data = f"good frame {self.good}".encode().ljust(37, b".")
        if self.kind == "UD":
            self.wire.send(self.whole(self.datagram(data), **options))
            got = self.b.poll(1, 5)
            equal("a good datagram", [(wc["status"], wc["len"]) for wc in got],
                  [("SUCCESS", len(data) + vx.GRH)])
            slot = got[0]["wr_id"] * 2048
            equal("its bytes", self.b.peek(slot + vx.GRH, len(data)), data.hex())
            self.b.recv(slot, 1024 + vx.GRH, got[0]["wr_id"])
        else:
            self.wire.send(self.whole(self.write(data), **options))
            wait_for("a good WRITE arrives", lambda: self.b.peek(300000, len(data)) == data.hex())
        self.psn = (self.psn + 1) & 0xffffff

    def expect(self, what, whole, **wanted):
        """Send it; of all counters only these move, by these amounts, and no memory changes."""
        sha, before = self.b.sha(0, self.b.size), counters(B_DEV)
        self.wire.send(whole)
        self.settle(what, before, wanted)
        equal(f"{what}: memory", self.b.sha(0, self.b.size), sha)

    def settle(self, what, before, wanted):
        def difference():
            return {name: by for name, by in moved(before, counters(B_DEV)).items() if name not in IDLE}
        try:
            wait_for(what, lambda: difference() == wanted, 3)
        except Failed:
            raise Failed(f"{what}: counters moved by {difference()}, expected {wanted}") from None

    def close(self):
        self.a.close()
        self.b.close()


def faults_of(target):
    """(what, frame, counter) for faults that any connected QP's frames can have."""
    data = bytes(range(60))
    wrong = "UC" if target.kind == "RC" else "RC"
    other = roce.UC_WRITE_ONLY if wrong == "UC" else roce.RC_WRITE_ONLY
    yield "ICRC", target.whole(target.write(data), good=False), "rx_drop_icrc"
    yield "version", target.whole(target.write(data, version=1)), "rx_drop_version"
    yield "version 15", target.whole(target.write(data, version=15)), "rx_drop_version"
    yield "P_Key", target.whole(target.write(data, pkey=0x8001)), "rx_drop_pkey"
    yield f"{wrong} opcode", target.whole(target.write(data, opcode=other)), "rx_drop_qp_type"
    yield "UD opcode", target.whole(roce.bth(roce.UD_SEND_ONLY, target.info["qpn"], 0) +
                                    roce.deth(1, 1) + data), "rx_drop_qp_type"
    for opcode in (0x1f, 0x3e, 0x40, 0xff):
        yield f"opcode {opcode:#x}", target.whole(target.write(data, opcode=opcode)), "rx_drop_opcode"
    yield "61 bytes without pad", target.whole(target.write(data, pad=0, length=61) + b"x"), "rx_drop_length"
    yield "pad count for no pad", target.whole(target.write(data, pad=3) + b"x"), "rx_drop_length"
    yield "ACK with a payload", target.whole(roce.bth(roce.RC_ACK, target.info["qpn"], 0) +
                                             bytes(4) + data), "rx_drop_length"
    strange = target.src[:-1] + "9"
    yield "address of nobody", roce.packet(strange, target.dst, target.write(data)), "rx_drop_address"
    bad = bytearray(target.whole(target.write(data)))
    if target.family == 4:
        bad[10] ^= 0x55
        yield "IP checksum", bytes(bad), "rx_drop_ip"
        bad[10] ^= 0x55
    yield "UDP checksum", target.whole(target.write(data), udp_checksum=False), "rx_drop_ip"
    at = 24 if target.family == 4 else 44
    bad[at + 1] += 4
    yield "UDP length", bytes(bad), "rx_drop_ip"


def connected(kind, family):
    target = Target(kind, family)
    target.send_good()
    target.send_good(udp_checksum=True)
    for what, frame, counter in faults_of(target):
        target.expect(what, frame, **{counter: 1})
        target.send_good()
    target.close()


@part("RC, IPv4: each fault drops the frame and counts one")
def rc4():
    connected("RC", 4)


@part("RC, IPv6")
def rc6():
    connected("RC", 6)


@part("UC, IPv4")
def uc4():
    connected("UC", 4)


@part("UD: Q_Key, P_Key, no receive")
def ud():
    target = Target("UD")
    data = bytes(40)
    target.send_good()
    target.expect("Q_Key", target.whole(target.datagram(data, qkey=5)), rx_drop_qkey=1)
    target.send_good()
    target.expect("P_Key", target.whole(target.datagram(data, pkey=0x7ffe)), rx_drop_pkey=1)
    target.send_good()
    target.expect("RC opcode", target.whole(target.write(data, opcode=roce.RC_WRITE_ONLY)), rx_drop_qp_type=1)
    target.send_good()
    target.close()
    alone = Target("UD")
    alone.b.close()
    alone.b = vx.End(B_DEV, B_IP4, "UD")
    alone.info = alone.b.info()
    alone.expect("no receive", alone.whole(alone.datagram(data)), rx_drop_no_recv_wqe=1)
    alone.close()


@part("a QPN that nobody has: the frame goes on to the stack, which finds no port")
def stray():
    for family in (4, 6):
        target = Target(family=family)
        before = no_ports(family)
        free = target.info["qpn"] ^ 0x1000
        # IPv6 takes no UDP checksum of 0.
        frame = target.whole(roce.bth(roce.RC_WRITE_ONLY, free, 5) + roce.reth(0, 0, 4) + bytes(4),
                             udp_checksum=True)
        target.expect("stray QPN", frame, rx_drop_qpn=1)
        equal(f"datagrams without a port, IPv{family}", no_ports(family) - before, 1)
        target.send_good()
        target.close()


@part("a QP that is not yet ready to receive")
def not_ready():
    target = Target()
    fresh = vx.End(B_DEV, B_IP4)
    target.info = fresh.info()
    frame = target.whole(target.write(bytes(8)))
    target.expect("a QP in INIT", frame, rx_drop_qp_state=1)
    fresh.close()
    target.close()


@part("truncated at every byte, the lengths of IP and UDP telling so: one drop each")
def truncated():
    for family in (4, 6):
        target = Target(family=family)
        target.send_good()
        body = target.write(bytes(range(45)))
        full = target.whole(body)[-(len(body) + 4):]
        for length in range(len(full)):
            frame = roce.ip_udp(target.src, target.dst, length) + full[:length]
            drop_one(target, f"{length} bytes", frame)
        # The same with an ICRC that is right for what is left.
        for length in range(12, 28):
            frame = target.whole(body[:length])
            drop_one(target, f"{length} bytes and an ICRC", frame, "rx_drop_truncated")
        target.send_good()
        target.close()


def drop_one(target, what, frame, counter=None):
    sha, before = target.b.sha(300000, 4096), counters(B_DEV)

    def drops():
        return {name: by for name, by in moved(before, counters(B_DEV)).items() if name.startswith("rx_drop")}
    target.wire.send(frame)
    wait_for(f"{what}: a drop", drops, 3)
    equal(f"{what}: drops {drops()}", sum(drops().values()), 1)
    if counter:
        equal(f"{what}: drops", drops(), {counter: 1})
    equal(f"{what}: memory", target.b.sha(300000, 4096), sha)


@part("truncated by the wire: IP says more than there is")
def short_frame():
    target = Target()
    target.send_good()
    full = target.whole(target.write(bytes(45)))
    for length in range(28 + 8, len(full)):
        sha, before = target.b.sha(300000, 4096), counters(B_DEV)
        target.wire.send(full[:length])
        after = lambda: {n: by for n, by in moved(before, counters(B_DEV)).items() if n not in IDLE}
        wait_for(f"{length} bytes: a drop", after, 3)
        equal(f"{length} bytes", after(), {"rx_drop_ip": 1})
        equal("memory", target.b.sha(300000, 4096), sha)
    target.send_good()
    target.close()


@part("requests that make no sense: NAK, and the QP is in error")
def nonsense():
    big = bytes(1028)
    cases = (("longer than its RETH says", lambda t: t.write(bytes(64), length=60)),
             ("shorter than its RETH says", lambda t: t.write(bytes(60), length=64)),
             ("larger than the path MTU", lambda t: t.write(big)),
             ("misaligned atomic", lambda t: roce.bth(roce.RC_FETCH_ADD, t.info["qpn"], t.psn, ack=True) +
              roce.reth(t.info["addr"] + 300004, t.info["rkey"], 0)[:12] + bytes(7) + b"\1" + bytes(8)),
             ("MIDDLE without FIRST", lambda t: roce.bth(roce.RC_WRITE_MIDDLE, t.info["qpn"], t.psn) + bytes(1024)),
             ("FIRST that is not a whole MTU", lambda t: t.write(bytes(64), opcode=roce.RC_WRITE_FIRST, length=2000)))
    for what, make in cases:
        target = Target()
        target.send_good()
        sha, before = target.b.sha(300000, 4096), counters(B_DEV)
        target.wire.send(target.whole(make(target)))
        wait_for(f"{what}: NAK", lambda: moved(before, counters(B_DEV)).get("nak_sent") == 1)
        equal(f"{what}: memory", target.b.sha(300000, 4096), sha)
        equal(f"{what}: receives are flushed", target.b.one(), "WR_FLUSH_ERR")
        target.close()
    for what, wrong in (("bad rkey", {"rkey": 1}), ("outside of the MR", {"where": 1 << 40})):
        target = Target()
        if "rkey" in wrong:
            target.info["rkey"] ^= 0x55
        before = counters(B_DEV)
        target.wire.send(target.whole(target.write(bytes(64), where=wrong.get("where", 300000))))
        wait_for(f"{what}: access error",
                 lambda: moved(before, counters(B_DEV)).get("resp_remote_access_errors") == 1)
        equal(f"{what}: NAK", moved(before, counters(B_DEV)).get("nak_sent"), 1)
        target.close()


@part("bounds of an MR: the last byte is writable, the next one not, nor what overflows")
def bounds():
    for where, length, fine in ((-1, 1, True), (-1, 2, False), (0, 1, False), (-4, 4, True), (-4, 5, False)):
        target = Target()
        at = target.b.size + where
        target.wire.send(target.whole(target.write(bytes([7]) * length, where=at)))
        if fine:
            wait_for("the bytes", lambda: target.b.peek(at, length) == "07" * length)
        else:
            before = target.b.sha(0, target.b.size)
            wait_for("flush", lambda: target.b.one(1) == "WR_FLUSH_ERR")
            equal("memory", target.b.sha(0, target.b.size), before)
        target.close()
    for addr, length in ((2**64 - 4, 8), (2**64 - 1, 1), (0, 2**31)):
        target = Target()
        before = counters(B_DEV)
        head = roce.bth(roce.RC_READ_REQUEST, target.info["qpn"], target.psn, ack=True)
        target.wire.send(target.whole(head + roce.reth(addr, target.info["rkey"], length)))
        wait_for(f"READ of {length} bytes at {addr:#x}: access error",
                 lambda: moved(before, counters(B_DEV)).get("resp_remote_access_errors") == 1)
        target.close()


@part("a thousand bad frames: counted, and nothing in the kernel log")
def silence():
    target = Target()
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    before = counters(B_DEV)
    bad = [target.whole(target.write(bytes(32)), good=False),
           target.whole(target.write(bytes(32), opcode=0x1f)),
           target.whole(target.write(bytes(32), pkey=3)),
           target.whole(target.write(bytes(32), version=7))]
    for number in range(1000):
        target.wire.send(bad[number % 4])
    names = ("rx_drop_icrc", "rx_drop_opcode", "rx_drop_pkey", "rx_drop_version")
    wait_for("all are counted", lambda: [moved(before, counters(B_DEV)).get(n) for n in names] == [250] * 4, 20)
    target.send_good()
    now = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    equal("lines in the kernel log", now[len(log):], "")
    target.close()


if __name__ == "__main__":
    if os.environ["TOPO"] != "pair":
        raise Skipped("needs two namespaces")
    finish()
