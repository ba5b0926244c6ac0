#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The netdev goes away or elsewhere under two processes' worth of QPs.

usage: netgone.py gone COMMAND...    after COMMAND both devices are gone
       netgone.py moved NETNS        a's netdev moves there, by this program
"""

import os
import subprocess
import sys
import threading

import vx
from suite import A_DEV, A_IP4, B_DEV, B_IP4, WEFT, Failed, check, equal, run, wait_for

A_NS, A_NETDEV = os.environ["A_NS"], os.environ["A_NETDEV"]
RECEIVES = 16


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def pair(**attributes):
    a, b = vx.End(A_DEV, A_IP4), vx.End(B_DEV, B_IP4)
    vx.connect(a, b, **{"timeout": 17, **attributes})
    return a, b


class Flood(threading.Thread):
    """WRITEs without end, until something fails."""

    def __init__(self):
        super().__init__(daemon=True)
        self.a, self.b = pair()
        self.done = 0
        self.last = "SUCCESS"

    def run(self):
        try:
            while self.last == "SUCCESS":
                for _ in range(8):
                    self.a.post("RDMA_WRITE", [(0, 65536)], 0)
                for _ in range(8):
                    self.last = self.a.one(30)
                    if self.last != "SUCCESS":
                        return
                    self.done += 1
        except Exception as error:  # pylint: disable=broad-except
            self.last = f"refused: {error}"


def close_quietly(*ends):
    """The device is gone: objects are freed by the kernel, verbs on them may be refused."""
    for end in ends:
        try:
            end.close()
        except Exception:  # pylint: disable=broad-except
            pass


def gone(command):
    flood = Flood()
    idle = pair()
    waiting = pair(rnr_retry=7)
    idle[1].recvs([(0, 64)] * RECEIVES)
    waiting[0].post("SEND", [(0, 64)])
    equal("a SEND without a receive", waiting[0].poll(1, 0.05), [])
    flood.start()
    wait_for("traffic", lambda: flood.done > 16)

    sh(*command)
    for dev in {A_DEV, B_DEV}:
        check(f"{dev}: DEVICE_FATAL", vx.Device.get(dev).await_event("DEVICE_FATAL", 20))
    wait_for("the devices are gone", lambda: A_DEV not in sh("rdma", "dev") and B_DEV not in sh("rdma", "dev"), 20)
    if WEFT:
        equal("the SEND that waited", waiting[0].one(), "WR_FLUSH_ERR")
        equal("receives", [wc["status"] for wc in idle[1].poll(RECEIVES)], ["WR_FLUSH_ERR"] * RECEIVES)
        flood.join(60)
        check("the flood has ended", not flood.is_alive())
        check(f"its last WRITE: {flood.last}", flood.last in ("WR_FLUSH_ERR", "RETRY_EXC_ERR")
              or flood.last.startswith("refused"))
    close_quietly(flood.a, flood.b, *idle, *waiting)


def followed(netns):
    """The link goes with its netdev: same device, same hooks, over there."""
    old = pair(timeout=14, retry=3)
    old[0].post("RDMA_WRITE", [(0, 64)], 0)
    equal("a WRITE before", old[0].one(), "SUCCESS")
    flood = Flood()
    flood.start()
    wait_for("traffic", lambda: flood.done > 16)

    sh("ip", "netns", "exec", A_NS, "ip", "link", "set", A_NETDEV, "netns", netns)
    inside = ["ip", "netns", "exec", netns]
    check("the device is still there", A_DEV in sh("rdma", "dev"))
    wait_for("its addresses are gone", lambda: vx.gid_index(A_DEV, A_IP4) is None)
    flood.join(60)
    check("the flood has ended", not flood.is_alive())
    equal("its last WRITE", flood.last, "RETRY_EXC_ERR")

    sh(*inside, "ip", "link", "set", A_NETDEV, "up")
    sh(*inside, "ip", "addr", "add", f"{A_IP4}/24", "dev", A_NETDEV)
    wait_for("the GID", lambda: vx.gid_index(A_DEV, A_IP4) is not None)
    shown = sh(*inside, "rdma", "link", "show", f"{A_DEV}/1")
    check(f"the link's netdev in its new namespace: {shown}", f"netdev {A_NETDEV}" in shown)
    new = pair()
    new[0].fill(1)
    for opcode in ("RDMA_WRITE", "RDMA_READ"):
        new[0].post(opcode, [(0, 100000)], 0)
        equal(opcode, new[0].one(), "SUCCESS")
    equal("bytes", new[1].sha(0, 100000), new[0].sha(0, 100000))
    new[1].post("RDMA_WRITE", [(0, 100000)], 200000)
    equal("the other way", new[1].one(), "SUCCESS")
    for end in (*new, *old, flood.a, flood.b):
        end.close()


if __name__ == "__main__":
    if sys.argv[1] == "gone":
        run(" ".join(sys.argv[2:]), gone, sys.argv[2:])
    elif sys.argv[1] == "moved":
        run("the netdev moves to another namespace", followed, sys.argv[2])
    else:
        raise Failed("usage")
    from suite import failed
    sys.exit(1 if failed else 0)
