#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What verbs promise beyond moving bytes: states, windows, invalidation, events, limits, errors."""

import errno

import vx
from pyverbs import enums as e
from pyverbs.mr import MR, MW
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPAttr
from pyverbs.srq import SrqAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from suite import A_DEV, A_IP4, B_DEV, B_IP4, WEFT, Skipped, check, counters, equal, finish, moved, part, wait_for


def ends(kind="RC", a_options=None, b_options=None, **attributes):
    a = vx.End(A_DEV, A_IP4, kind, **(a_options or {}))
    b = vx.End(B_DEV, B_IP4, kind, **(b_options or {}))
    vx.connect(a, b, **attributes)
    return a, b


def close(*all_ends):
    for end in all_ends:
        end.close()


def drain_events():
    for name in {A_DEV, B_DEV}:
        while vx.Device.get(name).event(0):
            pass


def statuses(end, count):
    return [wc["status"] for wc in end.poll(count)]


@part("SQD: what was sent completes, then the event comes, what is posted meanwhile waits for RTS")
def drain():
    if not WEFT:
        raise Skipped("rdma_rxe of 6.1 does not stop")
    a, b = ends(rnr_retry=7, min_rnr=10)
    drain_events()
    before = counters(A_DEV)
    a.post("SEND", [(0, 4096)], wr_id=1)
    wait_for("a SEND that meets no receive", lambda: moved(before, counters(A_DEV)).get("rnr_nak_rcvd", 0) >= 1)
    attr = QPAttr(qp_state=e.IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    a.qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    a.post("SEND", [(0, 4096)], wr_id=2)
    equal("an event while a SEND is out", vx.Device.get(A_DEV).event(0.2), None)
    b.recvs([(0, 4096)] * 8)
    check("SQ_DRAINED", vx.Device.get(A_DEV).await_event("SQ_DRAINED"))
    equal("what was before", [(wc["wr_id"], wc["status"]) for wc in a.poll(1)], [(1, "SUCCESS")])
    equal("what is posted in SQD", a.poll(1, 0.2), [])
    equal("receives so far", len(b.poll(2, 0.1)), 1)
    attr = QPAttr(qp_state=e.IBV_QPS_RTS, cur_qp_state=e.IBV_QPS_SQD)
    a.qp.modify(attr, e.IBV_QP_STATE)
    equal("after RTS", [(wc["wr_id"], wc["status"]) for wc in a.poll(1)], [(2, "SUCCESS")])
    equal("receives after RTS", statuses(b, 1), ["SUCCESS"])
    close(a, b)


@part("ERR: everything that was posted is flushed, in order; RESET and back again works")
def flush():
    a, b = ends(rnr_retry=7)
    b.recvs([(0, 64)] * 5)
    b.to_state("ERR")
    equal("receives", [(wc["wr_id"], wc["status"]) for wc in b.poll(5)], [(n, "WR_FLUSH_ERR") for n in range(5)])
    a.to_state("ERR")
    for number in range(5):
        a.post("SEND", [(0, 64)], wr_id=number)
    equal("sends", [(wc["wr_id"], wc["status"]) for wc in a.poll(5)], [(n, "WR_FLUSH_ERR") for n in range(5)])
    for end in (a, b):
        end.to_state("RESET")
    vx.connect(a, b)
    b.recv(0, 64)
    a.post("SEND", [(0, 64)])
    equal("after RESET", (a.one(), b.one()), ("SUCCESS", "SUCCESS"))
    close(a, b)


def bind(end, mw, offset, length, access, kind=2):
    status, rkey = end.bind(mw, offset, length, access, kind)
    equal("bind", status, "SUCCESS")
    return rkey


WINDOWED = vx.ALL | e.IBV_ACCESS_MW_BIND


def remote(a, b, opcode, offset, length, rkey):
    a.post(opcode, [(0, length)], offset, rkey=rkey)
    return a.one()


@part("memory window type 1: bound, used within its bounds and rights, bound anew, dead afterwards")
def window1():
    a, b = ends(b_options={"access": WINDOWED})
    mw = MW(b.dev.pd, e.IBV_MW_TYPE_1)
    bind(b, mw, 4096, 4096, e.IBV_ACCESS_REMOTE_WRITE, 1)
    first = mw.rkey
    a.fill(1)
    equal("WRITE in the window", remote(a, b, "RDMA_WRITE", 4096, 4096, first), "SUCCESS")
    equal("bytes", b.sha(4096, 4096), a.sha(0, 4096))
    bind(b, mw, 8192, 64, e.IBV_ACCESS_REMOTE_WRITE, 1)
    check("the rkey is another", mw.rkey != first)
    equal("WRITE by the new rkey", remote(a, b, "RDMA_WRITE", 8192, 64, mw.rkey), "SUCCESS")
    before = b.sha(0, 16384)
    equal("WRITE by the old rkey", remote(a, b, "RDMA_WRITE", 4096, 64, first), "REM_ACCESS_ERR")
    equal("memory", b.sha(0, 16384), before)
    mw.close()
    close(a, b)


@part("memory window type 2B: bounds, rights, its own QP only, SEND_WITH_INV ends it")
def window2():
    def fresh():
        one, other = ends(b_options={"access": WINDOWED})
        mw = MW(other.dev.pd, e.IBV_MW_TYPE_2)
        return one, other, mw, bind(other, mw, 4096, 4096, e.IBV_ACCESS_REMOTE_WRITE)

    for what, opcode, offset, length in (("beyond its end", "RDMA_WRITE", 4097, 4096),
                                         ("before its start", "RDMA_WRITE", 4095, 1),
                                         ("READ from a window for WRITE", "RDMA_READ", 4096, 8)):
        a, b, mw, rkey = fresh()
        equal("WRITE of all of it", remote(a, b, "RDMA_WRITE", 4096, 4096, rkey), "SUCCESS")
        equal(what, remote(a, b, opcode, offset, length, rkey), "REM_ACCESS_ERR")
        mw.close()
        close(a, b)
    a, b, mw, rkey = fresh()
    stranger = ends(b_options={"access": WINDOWED})
    stranger[0].peer["addr"] = b.addr
    equal("by another QP", remote(stranger[0], b, "RDMA_WRITE", 4096, 8, rkey), "REM_ACCESS_ERR")
    b.recv(0, 64)
    wr = SendWR(opcode=e.IBV_WR_SEND_WITH_INV, num_sge=1, sg=a.sg([(0, 8)]), send_flags=e.IBV_SEND_SIGNALED,
                imm_data=rkey)
    a.qp.post_send(wr)
    equal("SEND_WITH_INV", a.one(), "SUCCESS")
    got = b.poll(1)[0]
    equal("receive", (got["status"], bool(got["flags"] & e.IBV_WC_WITH_INV)), ("SUCCESS", True))
    equal("after the invalidation", remote(a, b, "RDMA_WRITE", 4096, 8, rkey), "REM_ACCESS_ERR")
    mw.close()
    close(a, b, *stranger)


@part("LOCAL_INV of a window by its owner")
def local_inv():
    a, b = ends(b_options={"access": WINDOWED})
    mw = MW(b.dev.pd, e.IBV_MW_TYPE_2)
    rkey = bind(b, mw, 0, 4096, e.IBV_ACCESS_REMOTE_WRITE)
    equal("before", remote(a, b, "RDMA_WRITE", 0, 8, rkey), "SUCCESS")
    # imm_data is a union with the rkey to invalidate.
    wr = SendWR(opcode=e.IBV_WR_LOCAL_INV, send_flags=e.IBV_SEND_SIGNALED, imm_data=rkey)
    b.qp.post_send(wr)
    equal("LOCAL_INV", b.one(), "SUCCESS")
    equal("after", remote(a, b, "RDMA_WRITE", 0, 8, rkey), "REM_ACCESS_ERR")
    mw.close()
    close(a, b)


@part("SRQ: shared by two QPs, limit event once, LAST_WQE_REACHED, modify")
def srq():
    a, b = ends(b_options={"srq": 64})
    drain_events()
    b.recvs([(slot * 64, 64) for slot in range(16)])
    b.srq.modify(SrqAttr(srq_limit=10), e.IBV_SRQ_LIMIT)
    equal("limit", b.srq.query().srq_limit, 10)
    for number in range(5):
        a.poke(0, bytes([number + 1]) * 64)
        a.post("SEND", [(0, 64)])
        equal("SEND", a.one(), "SUCCESS")
    check("no event yet", vx.Device.get(B_DEV).event(0.1) in (None, "COMM_EST"))
    for _ in range(5):
        a.post("SEND", [(0, 64)])
        equal("SEND", a.one(), "SUCCESS")
    check("SRQ_LIMIT_REACHED", vx.Device.get(B_DEV).await_event("SRQ_LIMIT_REACHED"))
    equal("receives", len(b.poll(10)), 10)
    equal("bytes", b.peek(64, 64), "02" * 64)
    equal("the limit is disarmed", b.srq.query().srq_limit, 0)
    b.to_state("ERR")
    check("LAST_WQE_REACHED", vx.Device.get(B_DEV).await_event("QP_LAST_WQE_REACHED"))
    equal("receives of an SRQ are not flushed", b.poll(1, 0.1), [])
    close(a, b)


@part("CQ overflow: the event comes, nothing else breaks")
def overflow():
    a, b = ends(a_options={"cqe": 7, "depth": 64})
    drain_events()
    before = counters(A_DEV)
    room = a.cq.cqe
    for _ in range(min(room + 8, 60)):
        a.post("RDMA_WRITE", [(0, 8)], 0)
    check("CQ_ERR", vx.Device.get(A_DEV).await_event("CQ_ERR"))
    if WEFT:
        check("cq_overflow is counted", moved(before, counters(A_DEV)).get("cq_overflow", 0) >= 1)
    close(a, b)
    again = ends()
    again[0].post("RDMA_WRITE", [(0, 8)], 0)
    equal("another QP", again[0].one(), "SUCCESS")
    close(*again)


@part("CQ resize: what is in it stays, in order; smaller than that is refused")
def resize():
    a, b = ends(b_options={"cqe": 100, "depth": 200})
    b.recvs([(0, 8)] * 150)

    def sends(count):
        for _ in range(count):
            a.post("SEND", [(0, 8)])
            equal("SEND", a.one(), "SUCCESS")

    sends(50)
    equal("the first", [wc["wr_id"] for wc in b.poll(10)], list(range(10)))
    b.cq.resize(1000)
    check(f"cqe {b.cq.cqe}", b.cq.cqe >= 1000)
    sends(100)
    # 140 are in it: what a SEND's completion says.
    try:
        b.cq.resize(20)
        check("resize below what is in it", False)
    except PyverbsRDMAError as refusal:
        equal("errno", refusal.error_code, errno.EINVAL)
    equal("the rest", [wc["wr_id"] for wc in b.poll(140)], list(range(10, 150)))
    b.cq.resize(20)
    b.recv(0, 8, 7)
    sends(1)
    equal("in the small one", [wc["wr_id"] for wc in b.poll(1)], [7])
    close(a, b)


@part("CQ events: only when armed, once; solicited only if asked for")
def events():
    a, b = ends(b_options={"events": True})
    b.recvs([(0, 64)] * 8)
    a.post("SEND", [(0, 8)])
    equal("SEND", a.one(), "SUCCESS")
    check("no event without arming", not b.notified(0.1))
    b.poll(1)
    b.arm()
    a.post("SEND", [(0, 8)])
    check("event", b.notified())
    a.post("SEND", [(0, 8)])
    check("one only", not b.notified(0.1))
    equal("receives", len(b.poll(2)), 2)
    b.arm(solicited=True)
    a.post("SEND", [(0, 8)])
    check("not solicited", not b.notified(0.1))
    a.post("SEND", [(0, 8)], flags=e.IBV_SEND_SIGNALED | e.IBV_SEND_SOLICITED)
    check("solicited", b.notified())
    equal("receives", len(b.poll(2)), 2)
    close(a, b)


@part("gather and scatter, zero bytes, inline, unsignaled")
def shapes():
    a, b = ends(a_options={"inline": 128, "depth": 64})
    a.fill(5)
    gather = [(1, 1000), (5000, 1), (70000, 3001), (9, 94)]
    whole = b"".join(bytes(a.memory[o:o + n]) for o, n in gather)
    scatter = [(11, 7), (3000, 4000), (20000, 89)]
    b.post_recv(RecvWR(wr_id=5, num_sge=3, sg=b.sg(scatter)))
    a.post("SEND", gather)
    equal("SEND", a.one(), "SUCCESS")
    equal("receive", [(wc["status"], wc["len"]) for wc in b.poll(1)], [("SUCCESS", len(whole))])
    equal("bytes", b"".join(bytes(b.memory[o:o + n]) for o, n in scatter), whole)
    a.post("RDMA_WRITE", gather, 500000)
    equal("WRITE", a.one(), "SUCCESS")
    equal("bytes", b.peek(500000, len(whole)), whole.hex())
    a.post("RDMA_READ", [(200000, 96), (300000, 4000)], 500000)
    equal("READ", a.one(), "SUCCESS")
    equal("bytes", a.peek(200000, 96) + a.peek(300000, 4000), whole.hex())
    b.recv(0, 0)
    a.post("SEND", [])
    equal("zero bytes", (a.one(), b.poll(1)[0]["len"]), ("SUCCESS", 0))
    for opcode in ("RDMA_WRITE", "RDMA_READ"):
        a.post(opcode, [], 0, rkey=0)
        equal(f"{opcode} of zero bytes, with no rkey", a.one(), "SUCCESS")
    a.poke(0, b"inline" * 20)
    a.post("RDMA_WRITE", [(0, 120)], 600000, flags=e.IBV_SEND_INLINE | e.IBV_SEND_SIGNALED)
    a.poke(0, b"\0" * 120)
    equal("inline", a.one(), "SUCCESS")
    equal("bytes", b.peek(600000, 120), (b"inline" * 20).hex())
    for number in range(10):
        a.post("RDMA_WRITE", [(0, 8)], 0, wr_id=number, flags=e.IBV_SEND_SIGNALED if number == 9 else 0)
    equal("the signaled one alone", [wc["wr_id"] for wc in a.poll(2, 0.3)], [9])
    close(a, b)


@part("fence: a SEND behind a READ sees what the READ brought")
def fence():
    a, b = ends()
    for turn in range(20):
        b.poke(0, bytes([turn + 1]) * 60000)
        b.recv(200000, 60000)
        a.post("RDMA_READ", [(0, 60000)], 0)
        a.post("SEND", [(0, 60000)], flags=e.IBV_SEND_FENCE | e.IBV_SEND_SIGNALED)
        equal("READ and SEND", statuses(a, 2), ["SUCCESS"] * 2)
        equal("receive", b.one(), "SUCCESS")
        equal("bytes", b.peek(200000, 60000), bytes([turn + 1]).hex() * 60000)
    close(a, b)


@part("one READ at a time is allowed: sixteen are done in order")
def rd_atomic():
    a, b = ends(rd_atomic=1)
    b.fill(4)
    for number in range(16):
        a.post("RDMA_READ", [(number * 9000, 9000)], number * 9000, wr_id=number)
    equal("READs", [(wc["wr_id"], wc["status"]) for wc in a.poll(16)], [(n, "SUCCESS") for n in range(16)])
    equal("bytes", a.sha(0, 144000), b.sha(0, 144000))
    close(a, b)


@part("errors: lkey, receive too small, rkey, rights of MR and QP")
def errors():
    a, b = ends()
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(a.addr, 8, a.mr.lkey ^ 0x1234)],
                          send_flags=e.IBV_SEND_SIGNALED))
    equal("bad lkey", a.one(), "LOC_PROT_ERR")
    close(a, b)
    a, b = ends()
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(a.addr + a.size - 4, 8, a.mr.lkey)],
                          send_flags=e.IBV_SEND_SIGNALED))
    equal("beyond the MR", a.one(), "LOC_PROT_ERR")
    close(a, b)
    a, b = ends()
    b.recv(0, 50)
    a.post("SEND", [(0, 51)])
    equal("receive too small", (a.one(), b.one()), ("REM_INV_REQ_ERR", "LOC_LEN_ERR"))
    close(a, b)
    local = e.IBV_ACCESS_LOCAL_WRITE
    for what, access, opcode, options in (
            ("WRITE without right", local | e.IBV_ACCESS_REMOTE_READ, "RDMA_WRITE", {}),
            ("READ without right", local | e.IBV_ACCESS_REMOTE_WRITE, "RDMA_READ", {}),
            ("FAA without right", local | e.IBV_ACCESS_REMOTE_WRITE, "ATOMIC_FETCH_AND_ADD", {"compare_add": 1})):
        a, b = ends()
        limited = MR(b.dev.pd, b.size, access, address=b.addr)
        before = b.sha(0, 4096)
        a.post(opcode, [(0, 8)], 0, rkey=limited.rkey, **options)
        equal(what, a.one(), "REM_ACCESS_ERR")
        equal("memory", b.sha(0, 4096), before)
        close(a, b)
        limited.close()
    a, b = ends(b_options={"access": local})
    check("a QP without rights", remote(a, b, "RDMA_WRITE", 0, 8, None) in ("REM_INV_REQ_ERR", "REM_ACCESS_ERR"))
    close(a, b)


@part("limits are refused with an errno, not taken and broken later")
def limits():
    device = vx.Device.get(A_DEV).ctx.query_device()
    for what, options in (("send depth", {"depth": device.max_qp_wr + 1}), ("SGEs", {"sge": device.max_sge + 1}),
                          ("CQEs", {"cqe": device.max_cqe + 1})):
        try:
            vx.End(A_DEV, A_IP4, **options).close()
            check(f"{what} beyond the limit", False)
        except PyverbsRDMAError as refusal:
            check(f"{what}: errno {refusal.error_code}", refusal.error_code in (errno.EINVAL, errno.ENOMEM))
    one = vx.End(A_DEV, A_IP4)
    try:
        one.to_state("RTS")
        check("INIT to RTS", False)
    except PyverbsRDMAError as refusal:
        equal("errno", refusal.error_code, errno.EINVAL)
    one.close()


if __name__ == "__main__":
    finish()
