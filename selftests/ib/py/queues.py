#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Receive queues and moderation: each setting's effect, not its echo. And a second judge of the ICRC."""

import json
import os
import time

import roce
import vx
from links import DEFAULTS, setting, weft
from suite import A_DEV, A_IP4, B_DEV, B_IP4, SLOW, Skipped, check, counters, equal, finish, moved, part

A_NS, A_NETDEV = os.environ["A_NS"], os.environ["A_NETDEV"]


def queues(dev):
    return json.loads(weft(dev, "show", "-s", "-j", dev))[0]["queues"]


def pairs(count, **attributes):
    made = []
    for _ in range(count):
        a, b = vx.End(A_DEV, A_IP4, size=1 << 17), vx.End(B_DEV, B_IP4, size=1 << 17)
        vx.connect(a, b, **attributes)
        made.append((a, b))
    return made


def close(made):
    for a, b in made:
        a.close()
        b.close()


def writes(made, turns=4, size=4000):
    for _ in range(turns):
        for a, _ in made:
            a.post("RDMA_WRITE", [(0, size)], 0)
        for a, _ in made:
            equal("WRITE", a.one(), "SUCCESS")


def spread(dev, work):
    """What each queue of dev took meanwhile."""
    before = {queue["index"]: queue["packets"] for queue in queues(dev)}
    work()
    return {queue["index"]: queue["packets"] - before.get(queue["index"], 0) for queue in queues(dev)}


@part("receive queues: flows are spread, all packets are accounted for, each queue has its CPU")
def rss():
    setting("rx-queues 2")
    made = pairs(24)
    before = counters(B_DEV)
    took = spread(B_DEV, lambda: writes(made))
    received = moved(before, counters(B_DEV))["rcvd_pkts"]
    equal("packets of all queues", sum(took.values()), received)
    check(f"both queues took a share: {took}", all(by > received // 10 for by in took.values()))
    if os.cpu_count() > 1:
        check("CPUs differ", len({queue["cpu"] for queue in queues(B_DEV)}) == 2)
    setting("rx-queues 1")
    took = spread(B_DEV, lambda: writes(made))
    equal("one queue takes it all", list(took), [0])
    close(made)
    setting("rx-queues 2")


@part("one flow keeps to one queue")
def one_flow():
    setting("rx-queues 4")
    made = pairs(1)
    took = spread(B_DEV, lambda: writes(made, 30))
    equal(f"queues in use: {took}", sum(by > 0 for by in took.values()), 1)
    close(made)
    setting("rx-queues 2")


@part("the CPU of a queue is where its packets are received")
def cpu():
    if os.cpu_count() < 2:
        raise Skipped("one CPU")
    setting("rx-queues 1")
    where = queues(B_DEV)[0]["cpu"]
    os.sched_setaffinity(0, {1 - where})
    made = pairs(1)
    polls, before = queues(B_DEV)[0]["polls"], softirqs(where)
    writes(made, 200, 100)
    check("polled", queues(B_DEV)[0]["polls"] - polls > 20)
    check(f"NET_RX on CPU {where}", softirqs(where) - before > 20)
    os.sched_setaffinity(0, set(range(os.cpu_count())))
    close(made)
    setting("rx-queues 2")


def softirqs(cpu_number):
    with open("/proc/softirqs", encoding="ascii") as file:
        line = next(line for line in file if line.strip().startswith("NET_RX"))
    return int(line.split()[1 + cpu_number])


@part("more queues and fewer under traffic: nothing is lost")
def resize():
    made = pairs(4, timeout=17)
    for number in (1, 3, 8, 2, 64, 2):
        for a, _ in made:
            for _ in range(8):
                a.post("RDMA_WRITE", [(0, 30000)], 0)
        setting(f"rx-queues {number}")
        equal("queues", len(queues(B_DEV)), number)
        for a, _ in made:
            equal("WRITEs", [wc["status"] for wc in a.poll(8, 20)], ["SUCCESS"] * 8)
    close(made)


def seconds_for(made, count):
    start = time.monotonic()
    for _ in range(count):
        writes(made, 1, 8)
    return time.monotonic() - start


def seconds_of_each(made, count, pause):
    """Of WRITEs that come one by one to a queue that nobody polls, a pause after the one before."""
    taken = []
    for _ in range(count):
        time.sleep(pause)
        taken.append(seconds_for(made, 1))
    return taken


@part("rx-usecs: a lone packet waits that long; rx-frames: as many end the wait at once")
def moderation():
    made = pairs(1, timeout=19)
    count, usecs = 10, 40000
    plain = seconds_for(made, count)
    setting(f"rx-usecs {usecs} rx-frames 64", [B_DEV])
    before = counters(B_DEV)
    # A poll that is still under way takes what comes; a wait that a late probe has begun takes it along.
    slow = seconds_of_each(made, count, 1.5 * usecs / 1e6 * SLOW)
    check(f"{count} WRITEs, one by one: {slow} s each, without moderation {plain} s for all",
          min(slow) >= usecs / 1e6)
    check("rx_moderated", moved(before, counters(B_DEV)).get("rx_moderated", 0) >= count)

    a, b = made[0]
    b.recvs([(0, 64)] * 64)
    polls = queues(B_DEV)
    for _ in range(64):
        a.post("SEND", [(0, 8)])
    equal("64 SENDs", len(a.poll(64, 20)), 64)
    # A queue without packets polls to serve its QPs, which is not what is moderated.
    spent = sum(now["polls"] - was["polls"] for was, now in zip(polls, queues(B_DEV))
                if now["packets"] != was["packets"])
    check(f"64 packets in at most 16 polls: {polls}, then {queues(B_DEV)}", 1 <= spent <= 16)
    equal("64 receives", len(b.poll(64)), 64)

    setting("rx-usecs 100000 rx-frames 4", [B_DEV])
    start = time.monotonic()
    for turn in range(5):
        for _ in range(4):
            a.post("RDMA_WRITE", [(0, 8)], 0)
        equal("4 WRITEs", len(a.poll(4, 20)), 4)
    spent = time.monotonic() - start
    check(f"five times four WRITEs waited for the clock: {spent} s", spent < 5 * 0.1 * 0.8 * SLOW)
    setting(DEFAULTS, [B_DEV])
    check("without moderation again", seconds_for(made, count) < sum(slow))
    close(made)


@part("another judge of the ICRC: scapy agrees with the frames of the wire")
def scapy():
    from scapy.contrib.roce import BTH  # pylint: disable=import-outside-toplevel
    from scapy.layers.inet import IP  # pylint: disable=import-outside-toplevel
    capture = roce.Tap(A_NETDEV, A_NS)
    made = pairs(1)
    writes(made, 2, 1000)
    frames = capture.frames(True)
    capture.close()
    close(made)
    check("frames", len(frames) >= 2)
    for data in frames[:4]:
        layer = IP(data)
        word = layer[BTH].compute_icrc(data[28:-4])
        equal("ICRC", data[-4:].hex(), word.hex())


if __name__ == "__main__":
    setting(DEFAULTS)
    finish()
