# SPDX-License-Identifier: MIT
"""Queue pairs for the VM suite: an End is a QP with a buffer and a CQ, in this process or another.

Every method takes and gives plain values, so that a test reads the same whether the other end is in
this process (connect) or behind TCP on another machine (Remote, `python3 vx.py serve`).
"""

import ctypes
import fcntl
import hashlib
import json
import mmap
import os
import random
import select
import socket
import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute, GID
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SLOW = int(os.environ.get("SLOW", "1"))
KINDS = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
QKEY = 0x11223344
GRH = 40
ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
       | e.IBV_ACCESS_REMOTE_ATOMIC)
STATUS = {value: name[7:] for name, value in vars(e).items() if name.startswith("IBV_WC_") and
          name[7:] in ("SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR",
                       "WR_FLUSH_ERR", "MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR",
                       "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
                       "RNR_RETRY_EXC_ERR", "FATAL_ERR", "GENERAL_ERR")}
EVENTS = {value: name[10:] for name, value in vars(e).items() if name.startswith("IBV_EVENT_")}


def event_fds():
    """The event files that this process has open."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "infinibandevent" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(int(fd))
        except OSError:
            pass
    return found


def gid_index(dev, address):
    """Index of the RoCEv2 GID of an IP address, among the first of the table; None if there is none."""
    packed = (socket.inet_pton(socket.AF_INET6, address) if ":" in address
              else b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address))
    want = ":".join(packed[i:i + 2].hex() for i in range(0, 16, 2))
    port = f"/sys/class/infiniband/{dev}/ports/1"
    for index in range(32):
        with open(f"{port}/gids/{index}", encoding="ascii") as file:
            if file.read().strip() != want:
                continue
        try:
            with open(f"{port}/gid_attrs/types/{index}", encoding="ascii") as file:
                if file.read().strip() == "RoCE v2":
                    return index
        except OSError:
            continue
    return None


class Device:
    """An open device with a protection domain; shared by the Ends that are on it."""

    opened = {}

    def __init__(self, name):
        before = event_fds()
        self.name = name
        self.ctx = Context(name=name)
        self.async_fd = (event_fds() - before).pop()
        flags = fcntl.fcntl(self.async_fd, fcntl.F_GETFL)
        fcntl.fcntl(self.async_fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        self.pd = PD(self.ctx)

    @classmethod
    def get(cls, name):
        if name not in cls.opened:
            cls.opened[name] = cls(name)
        return cls.opened[name]

    def event(self, seconds):
        """Name of the next asynchronous event, or None."""
        if not select.select([self.async_fd], [], [], seconds * SLOW)[0]:
            return None
        event = self.ctx.get_async_event()
        name = EVENTS.get(event.event_type, str(event.event_type))
        event.ack()
        return name

    def await_event(self, name, seconds=10):
        """True once the event has come; others before it are passed over."""
        end = time.monotonic() + seconds * SLOW
        while (left := end - time.monotonic()) > 0:
            if self.event(left / SLOW) == name:
                return True
        return False


class End:
    def __init__(self, dev, ip, kind="RC", size=1 << 20, depth=128, cqe=1024, sge=4, inline=0, access=ALL,
                 events=False, srq=0, sig_all=False):
        self.dev = Device.get(dev)
        self.kind, self.ip, self.size, self.access = kind, ip, size, access
        self.gid_idx = gid_index(dev, ip)
        if self.gid_idx is None:
            raise LookupError(f"{dev} has no GID for {ip}")
        ctx, pd = self.dev.ctx, self.dev.pd
        # Not from malloc: a page of its own is what a scribbler or a bounds check can be judged by.
        self.memory = mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.mr = MR(pd, size, access, address=self.addr)
        before = event_fds()
        self.channel = CompChannel(ctx) if events else None
        self.channel_fd = (event_fds() - before).pop() if events else -1
        self.cq = CQ(ctx, cqe, None, self.channel, 0)
        self.srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=srq, max_sge=sge))) if srq else None
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=sge, max_recv_sge=sge,
                    max_inline_data=inline)
        init = QPInitAttr(qp_type=KINDS[kind], scq=self.cq, rcq=self.cq, srq=self.srq, cap=cap,
                          sq_sig_all=int(sig_all))
        self.qp = QP(pd, init, self.init_attr())
        self.psn = random.getrandbits(24)
        self.peer = None
        self.ah = None

    def init_attr(self):
        attr = QPAttr(port_num=1)
        if self.kind == "UD":
            attr.qkey = QKEY
        else:
            attr.qp_access_flags = self.access
        return attr

    def info(self):
        """What the other end must know."""
        return {"ip": self.ip, "qpn": self.qp.qp_num, "psn": self.psn, "addr": self.addr,
                "rkey": self.mr.rkey, "size": self.size}

    def join(self, peer, mtu=1024, timeout=17, retry=7, rnr_retry=7, min_rnr=12, rd_atomic=8):
        """To RTS, towards the other end's info()."""
        self.peer = peer
        attr = self.init_attr()
        mapped = peer["ip"] if ":" in peer["ip"] else "::ffff:" + peer["ip"]
        route = GlobalRoute(dgid=GID(socket_gid(mapped)), sgid_index=self.gid_idx, hop_limit=64)
        path = AHAttr(port_num=1, is_global=1, gr=route)
        if self.kind == "UD":
            # pyverbs has brought it to RTS when it made it.
            self.ah = AH(self.dev.pd, attr=path)
            return
        attr.path_mtu = MTUS[mtu]
        attr.ah_attr = path
        attr.dest_qp_num = peer["qpn"]
        attr.rq_psn, attr.sq_psn = peer["psn"], self.psn
        attr.max_rd_atomic = attr.max_dest_rd_atomic = rd_atomic
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = timeout, retry, rnr_retry, min_rnr
        self.qp.to_rts(attr)

    # ---- memory

    def poke(self, offset, data):
        if isinstance(data, str):
            data = bytes.fromhex(data)
        self.memory[offset:offset + len(data)] = data

    def peek(self, offset, length):
        return self.memory[offset:offset + length].hex()

    def fill(self, seed, offset=0, length=None):
        """Bytes that depend on the seed and repeat only after a prime number of them."""
        length = self.size - offset if length is None else length
        block = random.Random(seed).randbytes(4099)
        self.poke(offset, (block * (length // 4099 + 1))[:length])

    def sha(self, offset, length):
        return hashlib.sha256(self.memory[offset:offset + length]).hexdigest()

    # ---- work

    def sg(self, pieces):
        # pyverbs wants one piece at least, also where the operation has no bytes.
        pieces = pieces or [(0, 0)]
        return [SGE(self.addr + offset, length, self.mr.lkey) for offset, length in pieces]

    def recv(self, offset=0, length=None, wr_id=0):
        length = self.size - offset if length is None else length
        sge = self.sg([(offset, length)])
        self.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=sge))

    def post_recv(self, wr):
        if self.srq:
            self.srq.post_recv(wr)
        else:
            self.qp.post_recv(wr)

    def post(self, opcode, pieces, remote=0, rkey=None, imm=None, flags=e.IBV_SEND_SIGNALED, wr_id=0,
             compare_add=0, swap=0, qkey=QKEY):
        """opcode: SEND, RDMA_WRITE_WITH_IMM, …; pieces: (offset, length) of the buffer."""
        code = getattr(e, "IBV_WR_" + opcode)
        wr = SendWR(wr_id=wr_id, opcode=code, num_sge=max(1, len(pieces)), sg=self.sg(pieces), send_flags=flags,
                    **({} if imm is None else {"imm_data": imm}))
        if opcode.startswith("ATOMIC_") and opcode != "ATOMIC_WRITE":
            wr.set_wr_atomic(self.peer["rkey"] if rkey is None else rkey, self.peer["addr"] + remote,
                             compare_add, swap)
        elif opcode.startswith(("RDMA_", "ATOMIC_WRITE")):
            wr.set_wr_rdma(self.peer["rkey"] if rkey is None else rkey, self.peer["addr"] + remote)
        if self.kind == "UD":
            wr.set_wr_ud(self.ah, self.peer["qpn"], qkey)
        self.qp.post_send(wr)

    def bind(self, mw, offset, length, access, kind=2):
        """Bind a window of the type: the completion's status, and the rkey that names it now."""
        info = MWBindInfo(self.mr, self.addr + offset, length, access)
        if kind == 1:
            self.qp.bind_mw(mw, MWBind(info, e.IBV_SEND_SIGNALED))
            return self.one(), mw.rkey
        wr = SendWR(opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
        wr.set_bind_wr(mw, info)
        self.qp.post_send(wr)
        # The owner chooses the last byte of the key; pyverbs takes the next one.
        return self.one(), wr.rkey

    def recvs(self, pieces):
        for number, (offset, length) in enumerate(pieces):
            self.recv(offset, length, number)

    def stream(self, opcode, pieces, imm=None, seconds=60):
        """One work request per (offset, length, remote offset), a window of them at a time; what went wrong."""
        window, waiting, bad = 32, 0, []
        for number, (offset, length, remote) in enumerate(pieces):
            self.post(opcode, [(offset, length)], remote, imm=imm, wr_id=number)
            waiting += 1
            if waiting == window or number == len(pieces) - 1:
                got = self.poll(waiting, seconds)
                bad += [[wc["wr_id"], wc["status"]] for wc in got if wc["status"] != "SUCCESS"]
                if len(got) < waiting:
                    bad.append([number, f"{waiting - len(got)} completions are missing"])
                if bad:
                    return bad
                waiting = 0
        return bad

    def poll(self, count=1, seconds=10):
        """Completions as dicts: as many as asked for, or fewer when the time is over."""
        end = time.monotonic() + seconds * SLOW
        found = []
        while len(found) < count:
            number, list_ = self.cq.poll(count - len(found))
            for wc in list_[:number]:
                found.append({"wr_id": wc.wr_id, "status": STATUS.get(wc.status, str(wc.status)),
                              "opcode": wc.opcode, "len": wc.byte_len, "flags": wc.wc_flags,
                              "imm": wc.imm_data, "src_qp": wc.src_qp, "qp": wc.qp_num})
            if not number:
                if time.monotonic() > end:
                    break
                time.sleep(0.0005)
        return found

    def one(self, seconds=10):
        """The status of the next completion, or 'NONE'."""
        found = self.poll(1, seconds)
        return found[0]["status"] if found else "NONE"

    def notified(self, seconds=10):
        """Wait for a completion event; False if none came."""
        if not select.select([self.channel_fd], [], [], seconds * SLOW)[0]:
            return False
        self.channel.get_cq_event(self.cq)
        self.cq.ack_events(1)
        return True

    def arm(self, solicited=False):
        self.cq.req_notify(solicited)

    def state(self):
        return self.qp.query(e.IBV_QP_STATE)[0].qp_state

    def to_state(self, state, mask=0):
        self.qp.modify(QPAttr(qp_state=getattr(e, "IBV_QPS_" + state)), e.IBV_QP_STATE | mask)

    def close(self):
        for thing in (self.qp, self.ah, self.srq, self.cq, self.channel, self.mr):
            if thing is not None:
                thing.close()


def socket_gid(address):
    """A GID as pyverbs writes it."""
    packed = socket.inet_pton(socket.AF_INET6, address)
    return ":".join(packed[i:i + 2].hex() for i in range(0, 16, 2))


def connect(one, other, **attributes):
    """Two Ends to RTS, each towards the other."""
    one_info, other_info = one.info(), other.info()
    other.join(one_info, **attributes)
    one.join(other_info, **attributes)


class Remote:
    """An End on another machine. Its methods are the End's own."""

    def __init__(self, host, port, *arguments, **keywords):
        self.link = socket.create_connection((host, port), timeout=60 * SLOW)
        self.file = self.link.makefile("rw", encoding="utf-8")
        self.call("open", arguments, keywords)

    def call(self, method, arguments, keywords):
        self.file.write(json.dumps([method, arguments, keywords]) + "\n")
        self.file.flush()
        answer = json.loads(self.file.readline())
        if "error" in answer:
            raise RuntimeError(f"{method} at the other end: {answer['error']}")
        return answer["result"]

    def __getattr__(self, method):
        return lambda *arguments, **keywords: self.call(method, arguments, keywords)

    def poke(self, offset, data):
        return self.call("poke", [offset, data.hex() if isinstance(data, bytes) else data], {})

    def close(self):
        self.call("close", [], {})
        self.file.close()
        self.link.close()


def serve(port):
    """One End per connection, until the process is ended."""
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        while True:
            link, _ = listener.accept()
            with link, link.makefile("rw", encoding="utf-8") as file:
                end = None
                for line in file:
                    method, arguments, keywords = json.loads(line)
                    try:
                        if method == "open":
                            end, result = End(*arguments, **keywords), None
                        else:
                            result = getattr(end, method)(*arguments, **keywords)
                        answer = {"result": result}
                    except Exception as error:  # pylint: disable=broad-except
                        answer = {"error": f"{type(error).__name__}: {error}"}
                    file.write(json.dumps(answer) + "\n")
                    file.flush()


if __name__ == "__main__" and sys.argv[1:2] == ["serve"]:
    serve(int(sys.argv[2]))
