#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every operation over every transport, many sizes, both address families; each byte is compared.

The ends are two of this process, or with B_HOST one of them on another machine, which may have another
driver: the same code is the interoperation test.
"""

import vx
from suite import (A_DEV, A_IP4, A_IP6, B_DEV, B_HOST, B_IP4, B_IP6, LEVEL, Failed, equal,
                   finish, note, part, run)

PORT = 7900
SIZE = 20 << 20
EDGES = sorted({1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 4097, 4098, 4099, 65536} |
               {mtu * n + d for mtu in (256, 1024, 4096) for n in (1, 2, 4) for d in (-1, 0, 1)})
EVERY = [*range(1, 4100), 65536]


def sizes(mtu=None):
    chosen = EVERY if LEVEL == "full" else EDGES
    return [size for size in chosen if mtu is None or size <= mtu]


def layout(of_sizes, gap=3):
    """Where each message lies: odd distances, so that all alignments occur."""
    offset, found = 64, []
    for size in of_sizes:
        found.append((offset, size))
        offset += size + gap
    return found


def ends(kind, family, **attributes):
    depth = len(EVERY) + 8
    options = {"size": SIZE, "depth": depth, "cqe": 2 * depth}
    a_ip, b_ip = (A_IP4, B_IP4) if family == 4 else (A_IP6, B_IP6)
    a = vx.End(A_DEV, a_ip, kind, **options)
    if B_HOST:
        b = vx.Remote(B_HOST, PORT, B_DEV, b_ip, kind, **options)
    else:
        b = vx.End(B_DEV, b_ip, kind, **options)
    vx.connect(a, b, **attributes)
    return a, b


def same(what, one, other, pieces):
    start, stop = pieces[0][0], pieces[-1][0] + pieces[-1][1]
    if one.sha(start, stop - start) == other.sha(start, stop - start):
        return
    for offset, length in pieces:
        if one.sha(offset, length) != other.sha(offset, length):
            raise Failed(f"{what}: the {length} bytes at {offset} differ")
    raise Failed(f"{what}: bytes between the messages differ")


def prepare(source, sink, pieces):
    """The sink has zeros where messages go, and between them what the source has."""
    source.fill(pieces[-1][1] + len(pieces))
    sink.fill(pieces[-1][1] + len(pieces))
    for offset, length in pieces:
        sink.poke(offset, b"\0" * length)


def do_send(a, b, opcode, pieces, imm):
    prepare(a, b, pieces)
    b.recvs(pieces)
    equal("send side", a.stream(opcode, [(o, n, 0) for o, n in pieces], imm=imm), [])
    got = b.poll(len(pieces))
    equal("receives", len(got), len(pieces))
    for wc, (_, length) in zip(got, pieces):
        equal("receive status", wc["status"], "SUCCESS")
        equal("received length", wc["len"], length)
        if imm is not None:
            equal("immediate", wc["imm"], imm)
    same(opcode, a, b, pieces)


def do_write(a, b, opcode, pieces, imm):
    prepare(a, b, pieces)
    if imm is not None:
        b.recvs([(0, 0)] * len(pieces))
    equal("write side", a.stream(opcode, [(o, n, o) for o, n in pieces], imm=imm), [])
    if imm is not None:
        got = b.poll(len(pieces))
        equal("receives", [(wc["status"], wc["len"], wc["imm"]) for wc in got],
              [("SUCCESS", length, imm) for _, length in pieces])
    elif a.kind == "UC":
        fence(a, b)
    same(opcode, a, b, pieces)


def fence(a, b):
    """UC writes are complete when they have left; a SEND behind them tells that they have arrived."""
    b.recv(0, 0)
    a.post("SEND", [])
    equal("fence", a.one(), "SUCCESS")
    equal("fence received", b.one(), "SUCCESS")


def do_read(a, b, pieces):
    prepare(b, a, pieces)
    equal("read side", a.stream("RDMA_READ", [(o, n, o) for o, n in pieces]), [])
    same("RDMA_READ", a, b, pieces)


def do_atomics(a, b):
    """FAA sums, CAS that hits and CAS that misses, checked in memory and in what came back."""
    value, where = 1000, 4096
    b.poke(where, value.to_bytes(8, "little"))
    for step in range(1, 33):
        a.post("ATOMIC_FETCH_AND_ADD", [(512, 8)], where, compare_add=step)
        equal("FAA", a.one(), "SUCCESS")
        equal("FAA's old value", int.from_bytes(bytes.fromhex(a.peek(512, 8)), "little"), value)
        value += step
    a.post("ATOMIC_CMP_AND_SWP", [(512, 8)], where, compare_add=value, swap=7)
    equal("CAS", a.one(), "SUCCESS")
    equal("CAS's old value", int.from_bytes(bytes.fromhex(a.peek(512, 8)), "little"), value)
    a.post("ATOMIC_CMP_AND_SWP", [(512, 8)], where, compare_add=value, swap=9)
    equal("CAS", a.one(), "SUCCESS")
    equal("memory after a CAS that hit and one that missed",
          int.from_bytes(bytes.fromhex(b.peek(where, 8)), "little"), 7)
    # Sum and carry over 64 bits.
    b.poke(where, (2**64 - 1).to_bytes(8, "little"))
    a.post("ATOMIC_FETCH_AND_ADD", [(512, 8)], where, compare_add=3)
    equal("FAA", a.one(), "SUCCESS")
    equal("sum modulo 2^64", int.from_bytes(bytes.fromhex(b.peek(where, 8)), "little"), 2)


def do_ud(a, b, mtu):
    pieces = layout(sizes(mtu), gap=43)
    a.fill(1)
    b.fill(2)
    landing = [(offset, length + vx.GRH) for offset, length in pieces]
    b.recvs(landing)
    # A datagram may be dropped when its receiver falls behind: one window, then the other side.
    for number, (offset, length) in enumerate(pieces):
        a.post("SEND_WITH_IMM", [(offset, length)], imm=5)
        equal("send", a.one(), "SUCCESS")
        if number % 32 == 31 or number == len(pieces) - 1:
            got = b.poll(number % 32 + 1)
            for wc, (at, size) in zip(got, pieces[number - number % 32:]):
                equal("datagram", (wc["status"], wc["len"], wc["src_qp"], wc["imm"]),
                      ("SUCCESS", size + vx.GRH, a.info()["qpn"], 5))
                equal(f"{size} bytes", b.sha(at + vx.GRH, size), a.sha(at, size))
            equal("datagrams", len(got), number % 32 + 1)


def family_parts(family):
    name = f"IPv{family}"
    for mtu in (1024, 4096) if LEVEL != "quick" else (1024,):
        a, b = ends("RC", family, mtu=mtu)
        pieces = layout(sizes())
        for opcode, imm in (("SEND", None), ("SEND_WITH_IMM", 0x01020304)):
            run(f"RC {opcode}, {name}, MTU {mtu}, {len(pieces)} sizes", do_send, a, b, opcode, pieces, imm)
        for opcode, imm in (("RDMA_WRITE", None), ("RDMA_WRITE_WITH_IMM", 0x0a0b0c0d)):
            run(f"RC {opcode}, {name}, MTU {mtu}, {len(pieces)} sizes", do_write, a, b, opcode, pieces, imm)
        run(f"RC RDMA_READ, {name}, MTU {mtu}, {len(pieces)} sizes", do_read, a, b, pieces)
        run(f"RC atomics, {name}, MTU {mtu}", do_atomics, a, b)
        a.close()
        b.close()
    a, b = ends("UC", family, mtu=1024)
    pieces = layout(sizes() if LEVEL == "full" else EDGES[::2])
    run(f"UC SEND, {name}, {len(pieces)} sizes", do_send, a, b, "SEND", pieces, None)
    run(f"UC RDMA_WRITE, {name}, {len(pieces)} sizes", do_write, a, b, "RDMA_WRITE", pieces, None)
    run(f"UC RDMA_WRITE_WITH_IMM, {name}", do_write, a, b, "RDMA_WRITE_WITH_IMM", pieces, 77)
    a.close()
    b.close()
    a, b = ends("UD", family)
    run(f"UD SEND_WITH_IMM, {name}", do_ud, a, b, 1024)
    a.close()
    b.close()


@part("IPv4")
def ipv4():
    family_parts(4)


@part("IPv6")
def ipv6():
    family_parts(6)


if __name__ == "__main__":
    note(f"{len(sizes())} sizes, 1 … 4099 and 65536")
    finish()
