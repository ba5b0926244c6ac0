#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Between two namespaces: when the veth pair is passed by, and what travels on it when it is not."""

import json

import roce
import vx
from links import setting
from suite import A_DEV, A_IP4, A_IP6, B_DEV, B_IP4, B_IP6, check, counters, equal, finish, moved, part, probes
from wires import A_NETDEV, A_NS, B_NETDEV, B_NS, sh

SIZE = 40_001
MTU = 1024
PACKETS = -(-SIZE // MTU)


def frames(netns, netdev):
    """What the netdev has received, in frames as the netdev counts them."""
    return json.loads(sh(f"ip -j -s link show {netdev}", netns))[0]["stats64"]["rx"]["packets"]


def transfer(a_ip, b_ip):
    """A WRITE, a SEND and a READ of SIZE bytes; all bytes are compared. {counter: moved, of both ends}"""
    a, b = vx.End(A_DEV, a_ip), vx.End(B_DEV, b_ip)
    vx.connect(a, b, mtu=MTU, timeout=19)
    before = [counters(dev) for dev in (A_DEV, B_DEV)]
    a.fill(1)
    b.fill(2)
    a.post("RDMA_WRITE", [(3, SIZE)], 100_001)
    equal("WRITE", a.one(), "SUCCESS")
    equal("bytes written", b.sha(100_001, SIZE), a.sha(3, SIZE))
    b.recv(200_003, SIZE)
    a.post("SEND_WITH_IMM", [(5, SIZE)], imm=7)
    equal("SEND", (a.one(), b.one()), ("SUCCESS", "SUCCESS"))
    equal("bytes sent", b.sha(200_003, SIZE), a.sha(5, SIZE))
    a.post("RDMA_READ", [(300_001, SIZE)], 9)
    equal("READ", a.one(), "SUCCESS")
    equal("bytes read", a.sha(300_001, SIZE), b.sha(9, SIZE))
    total = {}
    for was, dev in zip(before, (A_DEV, B_DEV)):
        for name, by in moved(was, counters(dev)).items():
            total[name] = total.get(name, 0) + by
    a.close()
    b.close()
    return total


def whole(total, what):
    """Three messages and a READ request, each packet once; nothing lost, nothing wrong."""
    equal(f"{what}: received", total["rcvd_pkts"], total["sent_pkts"])
    equal(f"{what}: bytes", total["rcvd_bytes"], total["sent_bytes"])
    equal(f"{what}: drops", {name: by for name, by in total.items() if name.startswith("rx_drop")}, {})
    if probes(total):
        return  # nothing was lost, but on a machine so slow that the peer seemed gone some packets came twice
    equal(f"{what}: packets but acknowledgments", total["sent_pkts"] - total["ack_sent"], 3 * PACKETS + 1)
    equal(f"{what}: resends", total.get("retransmitted_pkts", 0), 0)


def by_shortcut(total, what):
    equal(f"{what}: packets by the shortcut", total.get("tx_shortcut_pkts", 0), total["sent_pkts"])


def by_wire(total, what):
    whole(total, what)
    equal(f"{what}: packets by the shortcut", total.get("tx_shortcut_pkts", 0), 0)


@part("a quiet veth pair is passed by, over IPv4 and IPv6")
def quiet():
    setting("shortcut on")
    for a_ip, b_ip in ((A_IP4, B_IP4), (A_IP6, B_IP6)):
        transfer(a_ip, b_ip)
        before = frames(B_NS, B_NETDEV)
        total = transfer(a_ip, b_ip)
        whole(total, "quiet")
        by_shortcut(total, "quiet")
        check("no frame of it was on the wire", frames(B_NS, B_NETDEV) - before < 10)


WATCHERS = [
    ("a qdisc at the sender's end", A_NS, f"tc qdisc add dev {A_NETDEV} root pfifo", f"tc qdisc del dev {A_NETDEV} root"),
    ("a tc filter", A_NS, f"tc filter add dev {A_NETDEV} egress matchall action ok",
     f"tc filter del dev {A_NETDEV} egress"),
    ("a tc filter at the far end", B_NS, f"tc filter add dev {B_NETDEV} ingress matchall action ok",
     f"tc filter del dev {B_NETDEV} ingress"),
    ("a route by a gateway", A_NS, f"ip route add 192.0.2.2/32 via 192.0.2.9 dev {A_NETDEV}",
     "ip route del 192.0.2.2/32"),
]


@part("each of a qdisc, tc, nftables and a gateway on the way has frames travel again, and its end ends that")
def watched():
    setting("shortcut on")
    mac = json.loads(sh(f"ip -j link show {B_NETDEV}", B_NS))[0]["address"]
    for netns, netdev in ((A_NS, A_NETDEV), (B_NS, B_NETDEV)):
        sh(f"tc qdisc add dev {netdev} clsact", netns)
    sh(f"ip neigh replace 192.0.2.9 lladdr {mac} dev {A_NETDEV}", A_NS)
    for what, netns, begin, end in WATCHERS:
        sh(begin, netns)
        try:
            total = transfer(A_IP4, B_IP4)
        finally:
            sh(end, netns)
        # B's answers go the other way, which need not be watched.
        check(f"{what}: {total}", total.get("tx_shortcut_pkts", 0) < total["sent_pkts"] - 2 * PACKETS)
        whole(total, what)
        by_shortcut(transfer(A_IP4, B_IP4), f"without {what}")
    for hook, netns, netdev in (("egress", A_NS, A_NETDEV), ("ingress", B_NS, B_NETDEV)):
        sh("nft -f -", netns, f"table netdev t {{\nchain c {{\ntype filter hook {hook} device \"{netdev}\" "
                              "priority 0; policy accept;\n}\n}\n")
        total = transfer(A_IP4, B_IP4)
        sh("nft delete table netdev t", netns)
        check(f"nftables at {hook}: {total}", total.get("tx_shortcut_pkts", 0) < total["sent_pkts"] - 2 * PACKETS)
        by_shortcut(transfer(A_IP4, B_IP4), f"without nftables at {hook}")


@part("a tap at either end sees each packet by itself, with a right ICRC")
def taps():
    setting("shortcut on")
    for netns, netdev in ((A_NS, A_NETDEV), (B_NS, B_NETDEV)):
        capture = roce.Tap(netdev, netns)
        total = transfer(A_IP4, B_IP4)
        seen = capture.frames()
        capture.close()
        by_wire(total, f"a tap on {netdev}")
        equal(f"frames on {netdev}", len(seen), total["sent_pkts"])
        equal(f"frames on {netdev} with a wrong ICRC", sum(not roce.icrc_ok(data) for data in seen), 0)
    by_shortcut(transfer(A_IP4, B_IP4), "without a tap")


@part("without the shortcut many packets are one for the stack, and with gso off each is one")
def batches():
    setting("shortcut off")
    for a_ip, b_ip in ((A_IP4, B_IP4), (A_IP6, B_IP6)):
        total = transfer(a_ip, b_ip)
        by_wire(total, "batches")
        for netns, netdev in ((A_NS, A_NETDEV), (B_NS, B_NETDEV)):
            sh(f"ethtool -K {netdev} gso off", netns)
        before = frames(A_NS, A_NETDEV) + frames(B_NS, B_NETDEV)
        single = transfer(a_ip, b_ip)
        by_wire(single, "gso off")
        travelled = frames(A_NS, A_NETDEV) + frames(B_NS, B_NETDEV) - before
        check(f"gso off: {travelled} frames", single["sent_pkts"] <= travelled < single["sent_pkts"] + 10)
        # What the far end cannot take as a list, the stack makes packets of: with the same identifications and ICRCs.
        for netns, netdev in ((A_NS, A_NETDEV), (B_NS, B_NETDEV)):
            sh(f"ethtool -K {netdev} gso on tx-gso-list off tx-udp-segmentation off", netns)
        by_wire(transfer(a_ip, b_ip), "segmented on the way out")
        for netns, netdev in ((A_NS, A_NETDEV), (B_NS, B_NETDEV)):
            sh(f"ethtool -K {netdev} tx-gso-list on tx-udp-segmentation on", netns)


class Egress:
    """Counts the skbs that leave by A's netdev: a list is one."""

    def __enter__(self):
        sh("nft -f -", A_NS, f"table netdev t {{\nchain c {{\ntype filter hook egress device \"{A_NETDEV}\" "
                             "priority 0; policy accept;\ncounter\n}\n}\n")
        return self

    def skbs(self):
        found = json.loads(sh("nft -j list table netdev t", A_NS))["nftables"]
        return next(entry["rule"]["expr"][0]["counter"]["packets"] for entry in found if "rule" in entry)

    def __exit__(self, *_):
        sh("nft delete table netdev t", A_NS)


@part("a netdev without scatter-gather gets lists as well, unless its owner wants none")
def no_fragments():
    setting("shortcut off")
    sh(f"ethtool -K {A_NETDEV} sg off", A_NS)
    for a_ip, b_ip in ((A_IP4, B_IP4), (A_IP6, B_IP6)):
        with Egress() as lists:
            by_wire(transfer(a_ip, b_ip), "sg off")
            check(f"sg off: {lists.skbs()} skbs", 4 <= lists.skbs() < PACKETS)
    sh(f"ethtool -K {A_NETDEV} gso off", A_NS)
    with Egress() as single:
        by_wire(transfer(A_IP4, B_IP4), "sg off gso off")
        check(f"sg off gso off: {single.skbs()} skbs", single.skbs() >= 2 * PACKETS)
    sh(f"ethtool -K {A_NETDEV} sg on gso on", A_NS)


@part("an end that is down takes nothing by the shortcut either")
def down():
    setting("shortcut on")
    a, b = vx.End(A_DEV, A_IP4), vx.End(B_DEV, B_IP4)
    vx.connect(a, b, timeout=14, retry=1)
    a.fill(4)
    sh(f"ip link set {B_NETDEV} down", B_NS)
    before = counters(B_DEV)
    a.post("RDMA_WRITE", [(0, 3000)], 0)
    equal("WRITE to a netdev that is down", a.one(), "RETRY_EXC_ERR")
    check("nothing was written", b.peek(0, 3000) == 3000 * "00")
    equal("packets received", moved(before, counters(B_DEV)).get("rcvd_pkts", 0), 0)
    sh(f"ip link set {B_NETDEV} up", B_NS)
    a.close()
    b.close()


finish()
