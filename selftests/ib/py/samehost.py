#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two links of one namespace: with the shortcut, through the stack and lo, and under the eyes of a tap."""

import subprocess

import roce
import vx
from links import DEFAULTS, setting
from suite import A_DEV, A_IP6, B_DEV, B_IP6, check, counters, equal, finish, moved, part, wait_for


def operations():
    """Everything that leaves an image in memory, and the image."""
    a, b = vx.End(A_DEV, A_IP6, size=1 << 18), vx.End(B_DEV, B_IP6, size=1 << 18)
    vx.connect(a, b, mtu=1024, timeout=19)
    a.fill(21)
    b.recv(0, 5000)
    a.post("SEND_WITH_IMM", [(100, 4999)], imm=9)
    a.post("RDMA_WRITE", [(7, 70001)], 10000)
    a.post("RDMA_READ", [(100000, 30000)], 20000)
    a.post("ATOMIC_FETCH_AND_ADD", [(0, 8)], 90000, compare_add=5)
    got = [(wc["status"], wc["opcode"], wc["len"]) for wc in a.poll(4)]
    got += [(wc["status"], wc["opcode"], wc["len"], wc["imm"], wc["flags"]) for wc in b.poll(1)]
    image = got, a.sha(0, a.size), b.sha(0, b.size)
    a.close()
    b.close()
    return image


def unhurried(work):
    """
    The result, and what the counters moved by, when nothing was asked for twice. On a slow kernel answers
    may take longer than the adaptive timeout: it has more than one try.
    """
    for _ in range(5 if vx.SLOW > 1 else 1):
        result, total = movement(work)
        if not total.get("duplicate_request"):
            break
    return result, total


def movement(work):
    before = [counters(dev) for dev in (A_DEV, B_DEV)]
    result = work()
    total = {}
    for was, dev in zip(before, (A_DEV, B_DEV)):
        for name, by in moved(was, counters(dev)).items():
            total[name] = total.get(name, 0) + by
    return result, total


@part("shortcut on and off, ICRC auto and always: the same results, the same counters but their own")
def modes():
    own = ("tx_shortcut_pkts", "tx_icrc_offloaded", "rx_icrc_offloaded", "ack_sent", "ack_rcvd", "sent_pkts",
           "rcvd_pkts", "sent_bytes", "rcvd_bytes", "rx_inline")
    images = {}
    for words in ("shortcut on icrc auto", "shortcut off icrc auto", "shortcut on icrc always",
                  "shortcut off icrc always"):
        setting(words)
        image, total = unhurried(operations)
        images[words] = image, {name: by for name, by in total.items() if name not in own}
        equal(f"{words}: packets by the shortcut", total.get("tx_shortcut_pkts", 0) > 0, "shortcut on" in words)
        if "always" in words:
            equal(f"{words}: ICRC left out", total.get("tx_icrc_offloaded", 0), 0)
            equal(f"{words}: ICRC not checked", total.get("rx_icrc_offloaded", 0), 0)
        equal(f"{words}: lost", total.get("sent_bytes"), total.get("rcvd_bytes"))
    setting(DEFAULTS)
    first = images.pop("shortcut on icrc auto")
    check("something was received", first[1]["rdma_recvs"] == 1)
    for words, image in images.items():
        equal(words, image, first)


PIECES = [(1, 4999), (6001, 1), (10000, 30000), (50003, 20001), (80000, 777), (90001, 40000)]


@part("messages of more packets and more pieces than a burst has")
def pieces():
    size = sum(length for _, length in PIECES)
    for words in ("shortcut on icrc auto", "shortcut on icrc always", "shortcut off icrc auto"):
        setting(words)
        for mtu in (256, 1024, 4096):
            a, b = vx.End(A_DEV, A_IP6, sge=8), vx.End(B_DEV, B_IP6, sge=8)
            vx.connect(a, b, mtu=mtu, timeout=19)
            a.fill(mtu)
            wanted = "".join(a.peek(at, length) for at, length in PIECES)
            packets = -(-size // mtu)
            _, total = unhurried(lambda: (a.post("RDMA_WRITE", PIECES, 200001), equal("WRITE", a.one(), "SUCCESS")))
            check(f"{words}: WRITE at MTU {mtu}", b.peek(200001, size) == wanted)
            equal(f"{words}: packets of a WRITE at MTU {mtu}", total["sent_pkts"] - total["ack_sent"], packets)
            b.recvs([(400001, size)])
            a.post("SEND_WITH_IMM", PIECES, imm=7)
            equal("SEND", (a.one(), b.one()), ("SUCCESS", "SUCCESS"))
            check(f"{words}: SEND at MTU {mtu}", b.peek(400001, size) == wanted)
            b.fill(mtu + 1)
            _, total = unhurried(lambda: (a.post("RDMA_READ", PIECES, 100003), equal("READ", a.one(), "SUCCESS")))
            check(f"{words}: READ at MTU {mtu}",
                  "".join(a.peek(at, length) for at, length in PIECES) == b.peek(100003, size))
            equal(f"{words}: packets of a READ at MTU {mtu}", total["sent_pkts"], packets + 1)
            a.close()
            b.close()
    setting(DEFAULTS)


@part("bytes that change under way: the packet that has them is dropped by its ICRC, no other, and comes again")
def changed():
    setting(DEFAULTS)
    setting("icrc always")
    setting("rx-usecs 100000 rx-frames 4096", [B_DEV])
    for packet, size in ((0, 20), (1, 1024), (2, 1023), (3, 1)):
        a, b = vx.End(A_DEV, A_IP6), vx.End(B_DEV, B_IP6)
        vx.connect(a, b, mtu=1024, timeout=19)
        a.fill(packet)

        def change():
            a.post("RDMA_WRITE", [(0, 3073)], 7)
            a.memory[packet * 1024 + size - 1] ^= 1
            equal("WRITE", a.one(), "SUCCESS")

        _, total = movement(change)
        equal(f"packets with a wrong ICRC, change in packet {packet}", total.get("rx_drop_icrc", 0), 1)
        check(f"the bytes that changed in packet {packet}", b.peek(7, 3073) == a.peek(0, 3073))
        a.close()
        b.close()
    setting(DEFAULTS)


@part("a batch for a QP that is gone: each of its packets counts as one that nobody takes")
def stray():
    setting("shortcut off")
    a, b = vx.End(A_DEV, A_IP6), vx.End(B_DEV, B_IP6)
    vx.connect(a, b, mtu=1024, timeout=16, retry=0)
    b.close()
    _, total = movement(lambda: (a.post("RDMA_WRITE", [(0, 12000)], 0), equal("WRITE", a.one(), "RETRY_EXC_ERR")))
    equal("packets", (total["sent_pkts"], total.get("rx_drop_qpn", 0), total.get("rcvd_pkts", 0)), (12, 12, 0))
    a.close()
    setting(DEFAULTS)


@part("an address that goes takes its packets along, one that comes back gets them again")
def address():
    setting(DEFAULTS)
    a, b = vx.End(A_DEV, "192.0.2.1"), vx.End(B_DEV, "192.0.2.2")
    vx.connect(a, b, timeout=14, retry=1)
    a.fill(4)
    a.post("RDMA_WRITE", [(0, 3000)], 0)
    equal("WRITE to an address of this host", a.one(), "SUCCESS")
    subprocess.run(["ip", "addr", "del", "192.0.2.2/24", "dev", "wd1"], check=True)
    wait_for("no GID of the address", lambda: vx.gid_index(B_DEV, "192.0.2.2") is None)
    a.post("RDMA_WRITE", [(0, 3000)], 5000)
    equal("WRITE to nobody", a.one(), "RETRY_EXC_ERR")
    check("nothing was written", b.peek(5000, 3000) == 3000 * "00")
    a.close()
    b.close()
    subprocess.run(["ip", "addr", "add", "192.0.2.2/24", "dev", "wd1"], check=True)
    wait_for("the GID of the address", lambda: vx.gid_index(B_DEV, "192.0.2.2") is not None)
    a, b = vx.End(A_DEV, "192.0.2.1"), vx.End(B_DEV, "192.0.2.2")
    vx.connect(a, b, timeout=14)
    a.post("RDMA_WRITE", [(0, 3000)], 0)
    equal("WRITE to the address once more", a.one(), "SUCCESS")
    a.close()
    b.close()


@part("a tap on lo sees every frame with a right ICRC; one on lo or on a link's netdev turns the shortcut off")
def tap():
    setting(DEFAULTS)
    capture = roce.Tap("lo")
    _, total = movement(operations)
    equal("packets by the shortcut", total.get("tx_shortcut_pkts", 0), 0)
    frames = capture.frames(True)
    capture.close()
    equal("frames on lo", len(frames), total["sent_pkts"])
    equal("frames with a wrong ICRC", sum(not roce.icrc_ok(data) for data in frames), 0)
    opcodes = {roce.parse(data)[0] for data in frames}
    check(f"opcodes {opcodes}", {roce.RC_WRITE_FIRST, roce.RC_WRITE_MIDDLE, roce.RC_WRITE_LAST, roce.RC_READ_REQUEST,
                                 roce.RC_FETCH_ADD, roce.RC_READ_MIDDLE, roce.RC_ATOMIC_ACK} <= opcodes)
    for netdev in ("wd0", "wd1"):
        capture = roce.Tap(netdev)
        _, total = movement(operations)
        capture.close()
        check(f"a tap on {netdev} slows down only what leaves there: {total}", total.get("tx_shortcut_pkts", 0)
              < total["sent_pkts"])
    _, total = movement(operations)
    equal("packets by the shortcut, without a tap", total.get("tx_shortcut_pkts"), total["sent_pkts"])


@part("through the stack, IPv4 too")
def stack():
    setting("shortcut off")
    a, b = vx.End(A_DEV, "192.0.2.1"), vx.End(B_DEV, "192.0.2.2")
    vx.connect(a, b, timeout=19)
    a.fill(3)
    _, total = movement(lambda: (a.post("RDMA_WRITE", [(0, 100000)], 5), equal("WRITE", a.one(), "SUCCESS")))
    equal("bytes", b.peek(5, 100000), a.peek(0, 100000))
    equal("packets by the shortcut", total.get("tx_shortcut_pkts", 0), 0)
    a.close()
    b.close()
    setting(DEFAULTS)


if __name__ == "__main__":
    finish()
