#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What happens to the netdev under two connected QPs while they carry checked traffic."""

import ipaddress
import json
import os
import subprocess
import threading
import time

import vx
from pyverbs import enums as e
from suite import (A_DEV, A_IP4, B_DEV, B_IP4, SLOW, WEFT, Skipped, check, equal, finish, part, wait_for)

A_NS, B_NS = os.environ["A_NS"], os.environ["B_NS"]
A_NETDEV, B_NETDEV = os.environ["A_NETDEV"], os.environ["B_NETDEV"]
PAIR = os.environ["TOPO"] == "pair"
CHUNK = 16384


def sh(command, netns=""):
    words = (["ip", "netns", "exec", netns] if netns else []) + command.split()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
    return done.stdout


def gid_present(dev, address):
    return vx.gid_index(dev, address) is not None


class Traffic:
    """RC WRITEs of a to b, some always in flight, each one's bytes compared after its completion."""

    def __init__(self, mtu=1024, timeout=17, **options):
        self.a = vx.End(A_DEV, A_IP4, **options)
        self.b = vx.End(B_DEV, B_IP4, **options)
        vx.connect(self.a, self.b, mtu=mtu, timeout=timeout, retry=7)
        self.a.fill(11)
        self.turn = 0
        self.done = 0
        self.flying = []
        self.stop = threading.Event()
        self.error = None
        self.thread = None

    def post(self):
        slot = self.turn % 16
        self.turn += 1
        offset = slot * CHUNK
        self.a.poke(offset, self.turn.to_bytes(8, "little"))
        self.a.post("RDMA_WRITE", [(offset, CHUNK)], offset, wr_id=slot)
        self.flying.append(slot)

    def reap(self, seconds):
        got = self.a.poll(1, seconds)
        for wc in got:
            equal("completion", wc["status"], "SUCCESS")
            slot = self.flying.pop(0)
            equal("order", wc["wr_id"], slot)
            equal("bytes of a write", self.b.sha(slot * CHUNK, CHUNK), self.a.sha(slot * CHUNK, CHUNK))
            self.done += 1
        return len(got)

    def round(self, count=16, seconds=20):
        """That many writes, start to end."""
        for _ in range(count):
            self.post()
        while self.flying:
            check("a write completes", self.reap(seconds))

    def run(self):
        try:
            while not self.stop.is_set():
                while len(self.flying) < 8:
                    self.post()
                check("a write completes", self.reap(30))
            while self.flying:
                check("a write completes", self.reap(30))
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def start(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.progress(8)

    def progress(self, count=16, seconds=20):
        """The thread gets that much further from here."""
        goal = self.done + count
        wait_for(f"{count} more writes ({self.error})", lambda: self.done >= goal or self.error, seconds)
        if self.error:
            raise self.error

    def finish(self):
        self.stop.set()
        self.thread.join(60 * SLOW)
        check("the traffic thread ends", not self.thread.is_alive())
        if self.error:
            raise self.error

    def close(self):
        self.a.close()
        self.b.close()


def fresh_events():
    for name in (A_DEV, B_DEV):
        while vx.Device.get(name).event(0):
            pass


def only_pair():
    if not PAIR:
        raise Skipped("needs two netdevs")


def port_down(dev):
    return vx.Device.get(dev).ctx.query_port(1).state != e.IBV_PORT_ACTIVE


@part("down and up: nothing arrives meanwhile, everything after; events of the port")
def down_up():
    only_pair()
    traffic = Traffic(timeout=18)
    traffic.start()
    fresh_events()
    sh(f"ip link set {B_NETDEV} down", B_NS)
    check("PORT_ERR", vx.Device.get(B_DEV).await_event("PORT_ERR"))
    check("the port is down", port_down(B_DEV))
    time.sleep(0.05)  # what was between the netdev and memory
    before = traffic.done
    time.sleep(0.3)
    equal("writes while the link is down", traffic.done, before)
    sh(f"ip link set {B_NETDEV} up", B_NS)
    check("PORT_ACTIVE", vx.Device.get(B_DEV).await_event("PORT_ACTIVE"))
    traffic.progress(32)
    traffic.finish()
    traffic.close()


@part("down, up again and again under traffic")
def flap():
    only_pair()
    traffic = Traffic(timeout=18)
    traffic.start()
    for turn in range(5):
        netdev, netns = ((A_NETDEV, A_NS), (B_NETDEV, B_NS))[turn % 2]
        sh(f"ip link set {netdev} down", netns)
        sh(f"ip link set {netdev} up", netns)
        traffic.progress(4)
    traffic.finish()
    traffic.close()


@part("rename: traffic goes on, parent and rdma follow")
def rename():
    traffic = Traffic(timeout=18)
    traffic.start()
    old, new = A_NETDEV, "wnew0"
    for one, other in ((old, new), (new, old)):
        sh(f"ip link set {one} down", A_NS)
        sh(f"ip link set {one} name {other}", A_NS)
        sh(f"ip link set {other} up", A_NS)
        traffic.progress(16)
        if WEFT:
            equal("net/ of the parent", os.listdir(f"/sys/class/infiniband/{A_DEV}/device/net"), [other])
            link = json.loads(sh(f"rdma -j link show {A_DEV}/1", A_NS))[0]
            equal("netdev of the link", link.get("netdev"), other)
    traffic.finish()
    traffic.close()


@part("MTU: active_mtu follows, a QP with a larger path MTU is told, one with a smaller goes on")
def mtu():
    small, large = Traffic(mtu=1024), Traffic(mtu=4096)
    small.start()
    large.round()
    fresh_events()
    port = lambda: vx.Device.get(A_DEV).ctx.query_port(1).active_mtu
    equal("active_mtu before", port(), e.IBV_MTU_4096)
    for value, active in ((2200, e.IBV_MTU_2048), (1500, e.IBV_MTU_1024)):
        sh(f"ip link set {A_NETDEV} mtu {value}", A_NS)
        equal(f"active_mtu with {value}", port(), active)
        if WEFT:
            check("PATH_MIG_ERR", vx.Device.get(A_DEV).await_event("PATH_MIG_ERR"))
        small.progress(16)
    sh(f"ip link set {A_NETDEV} mtu 4200", A_NS)
    equal("active_mtu again", port(), e.IBV_MTU_4096)
    large.round()
    small.finish()
    small.close()
    large.close()


@part("addresses come and go: the GID table follows, QPs of another GID do not notice")
def addresses():
    traffic = Traffic()
    traffic.start()
    for turn in range(4):
        for address, width in ((f"198.51.100.{turn + 1}", 24), (f"2001:db8:7::{turn + 1}", 64)):
            nodad = " nodad" if ":" in address else ""
            sh(f"ip addr add {address}/{width} dev {A_NETDEV}{nodad}", A_NS)
            wait_for(f"GID of {address}", lambda: gid_present(A_DEV, address))
            sh(f"ip addr del {address}/{width} dev {A_NETDEV}", A_NS)
            wait_for(f"no GID of {address}", lambda: not gid_present(A_DEV, address))
        traffic.progress(4)
    traffic.finish()
    traffic.close()


@part("a GID is an assigned address: a tentative one is none until it is certain")
def tentative():
    if not WEFT or not PAIR:
        raise Skipped("rdma_rxe takes it at once")
    address = "2001:db8:9::1"
    sh(f"sysctl -qw net.ipv6.conf.{A_NETDEV}.accept_dad=1 net.ipv6.conf.{A_NETDEV}.dad_transmits=3", A_NS)
    try:
        sh(f"ip addr add {address}/64 dev {A_NETDEV}", A_NS)
        shown = sh(f"ip -6 addr show dev {A_NETDEV} tentative", A_NS)
        check("the address is tentative", address in shown)
        present = gid_present(A_DEV, address)
        if address in sh(f"ip -6 addr show dev {A_NETDEV} tentative", A_NS):
            check("no GID while it is tentative", not present)
        wait_for("GID once it is certain", lambda: gid_present(A_DEV, address), 15)
        check("certain by now", address not in sh(f"ip -6 addr show dev {A_NETDEV} tentative", A_NS))
    finally:
        sh(f"ip addr flush dev {A_NETDEV} to {ipaddress.ip_address(address)}", A_NS)


@part("own address removed: the QP fails within its budget, and only that QP")
def own_address():
    only_pair()
    traffic = Traffic(timeout=12)
    traffic.round()
    sh(f"ip addr add 192.0.2.77/24 dev {A_NETDEV}", A_NS)
    wait_for("GID", lambda: gid_present(A_DEV, "192.0.2.77"))
    other = vx.End(A_DEV, "192.0.2.77"), vx.End(B_DEV, B_IP4)
    vx.connect(*other, timeout=12, retry=2)
    other[0].post("RDMA_WRITE", [(0, 64)], 0)
    equal("a write", other[0].one(), "SUCCESS")
    sh(f"ip addr del 192.0.2.77/24 dev {A_NETDEV}", A_NS)
    other[0].post("RDMA_WRITE", [(0, 64)], 0)
    equal("a write from an address that is gone", other[0].one(30), "RETRY_EXC_ERR")
    traffic.round()
    for end in other:
        end.close()
    traffic.close()
    wait_for("no GID of it", lambda: not gid_present(A_DEV, "192.0.2.77"))


@part("rdma dev set name: traffic goes on, the new name is shown")
def rename_device():
    traffic = Traffic()
    traffic.start()
    sh(f"rdma dev set {A_DEV} name rxe_w9")
    traffic.progress(16)
    check("new name", "rxe_w9:" in sh("rdma dev show"))
    check("directory", os.path.isdir("/sys/class/infiniband/rxe_w9/ports/1"))
    sh(f"rdma dev set rxe_w9 name {A_DEV}")
    traffic.progress(16)
    traffic.finish()
    traffic.close()


@part("shared mode refuses `rdma dev set netns`, and the traffic does not notice")
def set_netns():
    traffic = Traffic()
    traffic.start()
    target = B_NS or "wt_x"
    if not B_NS:
        sh("ip netns add wt_x")
    try:
        sh(f"rdma dev set {A_DEV} netns {target}")
        check("refused", False)
    except RuntimeError as refusal:
        check(f"EOPNOTSUPP, not {refusal}", "not supported" in str(refusal))
    traffic.progress(16)
    traffic.finish()
    traffic.close()


@part("a QP goes while a qdisc holds its packets")
def qdisc():
    only_pair()
    if WEFT:
        sh(f"weft link set {A_DEV} shortcut off", A_NS)
    # Long enough to be seen by a slow machine.
    sh(f"tc qdisc add dev {A_NETDEV} root netem delay {1500 * SLOW}ms limit 1000", A_NS)
    try:
        for kind in ("RC", "UC", "UD") * 2:
            a, b = vx.End(A_DEV, A_IP4, kind), vx.End(B_DEV, B_IP4, kind)
            vx.connect(a, b)
            a.fill(5)
            for slot in range(16):
                a.post("SEND", [(slot * 1000, 1000)])
            held = lambda: int(sh(f"tc -s qdisc show dev {A_NETDEV}", A_NS).split("backlog ")[1].split()[1][:-1])
            wait_for("the qdisc holds packets", lambda: held() > 0)
            a.close()
            b.close()
            wait_for("the qdisc has let go", lambda: held() == 0)
    finally:
        sh(f"tc qdisc del dev {A_NETDEV} root", A_NS)
        if WEFT:
            sh(f"weft link set {A_DEV} shortcut on", A_NS)
    traffic = Traffic()
    traffic.round()
    traffic.close()


@part("kill -9 of a process in full flight frees everything")
def kill():
    code = ("import sys, vx\n"
            f"a, b = vx.End('{A_DEV}', '{A_IP4}', depth=512), vx.End('{B_DEV}', '{B_IP4}', depth=512)\n"
            "vx.connect(a, b)\n"
            "print('ready', flush=True)\n"
            "while True: a.stream('RDMA_WRITE', [(0, 65536, 0)] * 64)\n")
    for _ in range(3):
        with subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, text=True,
                              env={**os.environ}) as child:
            equal("child", child.stdout.readline(), "ready\n")
            time.sleep(0.05)
            child.kill()
            child.wait()
        mine = f"pid {child.pid} "
        wait_for("no object of it is left", lambda: mine not in sh("rdma resource show qp")
                 + sh("rdma resource show mr") + sh("rdma resource show cq"))


if __name__ == "__main__":
    finish()
