#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On one host, requests that want no completion share an acknowledgment, and nobody waits for one in vain."""

import time

from pyverbs import enums as e
from pyverbs.mr import MR, MW
from pyverbs.qp import QPAttr
from pyverbs.wr import SGE, SendWR

import vx
from links import DEFAULTS, setting
from suite import A_DEV, A_IP6, B_DEV, B_IP6, SLOW, check, counters, equal, finish, moved, part, wait_for

INTERVAL = 32  # packets, one of which asks
NEVER = 0      # ACK timeout


def ends(timeout=NEVER, retry=7, **options):
    """Two Ends; the PSNs begin behind one that asks."""
    setting(DEFAULTS)
    a, b = vx.End(A_DEV, A_IP6, **options), vx.End(B_DEV, B_IP6)
    a.psn = 0x1001
    vx.connect(a, b, timeout=timeout, retry=retry)
    a.fill(8)
    return a, b


def close(*ends_):
    for end in ends_:
        end.close()


def movement(work):
    """What the work moves at A and at B."""
    before = [counters(dev) for dev in (A_DEV, B_DEV)]
    work()
    return [moved(was, counters(dev)) for was, dev in zip(before, (A_DEV, B_DEV))]


def writes(a, count, first=0):
    for number in range(first, first + count):
        a.post("RDMA_WRITE", [(number * 64, 64)], number * 64, flags=0)


def drained(a):
    attr = QPAttr(qp_state=e.IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    a.qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    check("SQ_DRAINED", vx.Device.get(A_DEV).await_event("SQ_DRAINED"))


def arrived(a, b, count):
    check(f"bytes of {count} WRITEs", b.peek(0, count * 64) == a.peek(0, count * 64))


@part("an acknowledgment each 32 packets, and one for who wants to know")
def interval():
    a, b = ends()
    at_a, at_b = movement(lambda: writes(a, 100))
    arrived(a, b, 100)
    asked = sum(psn % INTERVAL == 0 for psn in range(a.psn, a.psn + 100))
    equal("acknowledgments", (at_b.get("ack_sent"), at_a.get("ack_rcvd")), (asked, asked))
    equal("sent again", at_a.get("retransmitted_pkts", 0), 0)

    def known():
        a.post("RDMA_WRITE", [(0, 64)], 0)
        equal("WRITE", a.one(), "SUCCESS")

    at_a, _ = movement(known)
    equal("acknowledgments of a WRITE that wants a completion", at_a.get("ack_rcvd"), 1)
    equal("sent again", at_a.get("retransmitted_pkts", 0), 0)
    close(a, b)


@part("a send queue shorter than that never stays full")
def short_queue():
    a, b = ends(depth=4)
    at_a, _ = movement(lambda: writes(a, 200))
    arrived(a, b, 200)
    check(f"acknowledgments: {at_a}", at_a.get("ack_rcvd", 0) >= 200 // 8)
    close(a, b)


@part("through the stack each message asks")
def stack():
    a, b = ends()
    setting("shortcut off")
    before = counters(A_DEV)
    writes(a, 20)
    wait_for("an acknowledgment", lambda: moved(before, counters(A_DEV)).get("ack_rcvd", 0))
    arrived(a, b, 20)
    setting(DEFAULTS)
    close(a, b)


@part("nothing more comes: the timeout asks, and costs no try")
def timeout():
    a, b = ends(timeout=17 if SLOW == 1 else 20)
    before = counters(A_DEV)
    at_a, at_b = movement(lambda: (
        writes(a, 3),
        wait_for("the acknowledgment", lambda: moved(before, counters(A_DEV)).get("ack_rcvd", 0) == 1, 10)))
    arrived(a, b, 3)
    equal("sent again", at_a.get("retransmitted_pkts", 0), 0)
    equal("questions", (at_a.get("tail_loss_probes"), at_b.get("duplicate_request")), (1, 1))
    equal("timeouts", at_a.get("local_ack_timeout_err", 0), 0)
    close(a, b)


@part("the answer to a late question has all of its time, without a try to spare")
def late_question():
    code = 15 if SLOW == 1 else 17
    a, b = ends(timeout=code, retry=0)
    setting("rx-usecs 80000 rx-frames 64", [B_DEV])

    def ask_late():
        writes(a, 3)
        time.sleep(4.096e-6 * 2 ** code - 0.04)
        a.post("RDMA_WRITE", [(0, 64)], 0)
        equal("WRITE", a.one(), "SUCCESS")

    at_a, _ = movement(ask_late)
    equal("timeouts", at_a.get("local_ack_timeout_err", 0), 0)
    setting(DEFAULTS)
    close(a, b)


@part("SQD drains")
def drain():
    a, b = ends()
    writes(a, 5)
    wait_for("the bytes of 5 WRITEs", lambda: b.peek(0, 5 * 64) == a.peek(0, 5 * 64))
    drained(a)
    close(a, b)


def windowed():
    """Two Ends, and a window of the first one that is not bound yet."""
    a, b = ends(access=vx.ALL | e.IBV_ACCESS_MW_BIND)
    return a, b, MW(a.dev.pd, e.IBV_MW_TYPE_2)


def bind(end, window):
    status, rkey = end.bind(window, 0, 4096, e.IBV_ACCESS_REMOTE_WRITE)
    equal("bind", status, "SUCCESS")
    return rkey


@part("LOCAL_INV, which waits for what is before it, gets its turn")
def invalidate():
    a, b, window = windowed()
    rkey = bind(a, window)
    writes(a, 5)
    a.qp.post_send(SendWR(opcode=e.IBV_WR_LOCAL_INV, send_flags=e.IBV_SEND_SIGNALED, imm_data=rkey))
    equal("LOCAL_INV", a.one(), "SUCCESS")
    arrived(a, b, 5)
    window.close()
    close(a, b)


@part("a request that fails, and completes behind what is before it, does")
def failure():
    a, b = ends()
    writes(a, 5)
    wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(a.addr, 8, a.mr.lkey ^ 0xff)],
                send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_rdma(b.mr.rkey, b.addr)
    a.qp.post_send(wr)
    equal("WRITE with a wrong lkey", a.one(), "LOC_PROT_ERR")
    arrived(a, b, 5)
    close(a, b)


@part("a completion behind them, of what was done here, gets its turn")
def local():
    a, b, window = windowed()
    writes(a, 5)
    bind(a, window)
    arrived(a, b, 5)
    window.close()
    close(a, b)


@part("memory that is gone when somebody asks is not missed")
def memory_gone():
    a, b = ends()
    writes(a, 5)
    region = MR(a.dev.pd, a.size, vx.ALL, address=a.addr)
    wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(a.addr + 320, 64, region.lkey)], send_flags=0)
    wr.set_wr_rdma(b.mr.rkey, b.addr + 320)
    a.qp.post_send(wr)
    arrived(a, b, 6)
    region.close()
    drained(a)
    equal("completions", a.poll(1, 0.1), [])
    close(a, b)


@part("the way there becomes a wire meanwhile, the way back does not")
def half_a_wire():
    a, b = ends()
    setting("shortcut off", [A_DEV])
    for _ in range(16):
        a.post("RDMA_WRITE", [(0, 64)], 0)
        equal("WRITE by wire", a.one(), "SUCCESS")
    setting("shortcut on", [A_DEV])
    writes(a, 5)
    arrived(a, b, 5)
    setting("shortcut off", [A_DEV])
    drained(a)
    setting(DEFAULTS)
    close(a, b)


if __name__ == "__main__":
    finish()
