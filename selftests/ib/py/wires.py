# SPDX-License-Identifier: MIT
"""Wires between the two namespaces of a pair that lose, delay, double and reorder what passes."""

import os
import subprocess

A_NS, B_NS = os.environ["A_NS"], os.environ["B_NS"]
A_NETDEV, B_NETDEV = os.environ["A_NETDEV"], os.environ["B_NETDEV"]


def sh(command, netns, text=None):
    done = subprocess.run(["ip", "netns", "exec", netns, *command.split()], input=text, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
    return done.stdout


class Netem:
    """Both directions; what the qdiscs dropped is in .dropped afterwards."""

    def __init__(self, what, ends="ab"):
        self.ends = [((A_NETDEV, A_NS), (B_NETDEV, B_NS))["ab".index(end)] for end in ends]
        self.what = what
        self.dropped = 0

    def __enter__(self):
        for netdev, netns in self.ends:
            sh(f"tc qdisc add dev {netdev} root netem limit 20000 {self.what}", netns)
        return self

    def __exit__(self, *_):
        for netdev, netns in self.ends:
            shown = sh(f"tc -s qdisc show dev {netdev}", netns)
            self.dropped += int(shown.split("(dropped ")[1].split(",")[0])
            sh(f"tc qdisc del dev {netdev} root", netns)


class Drop:
    """Frames that come in to an end with these opcodes: every nth of them or at random one in n, is dropped."""

    def __init__(self, end, opcodes=(), every=1, numbers="inc"):
        self.netdev, self.netns = ((A_NETDEV, A_NS), (B_NETDEV, B_NS))["ab".index(end)]
        match = f"@th,64,8 {{ {', '.join(map(str, opcodes))} }} " if opcodes else ""
        count = f"numgen {numbers} mod {every} == 0 " if every > 1 else ""
        self.rules = ("table netdev weft {\nchain c {\n"
                      f"type filter hook ingress device \"{self.netdev}\" priority 0; policy accept;\n"
                      f"udp dport 4791 {match}{count}counter drop\n}}\n}}\n")
        self.packets = 0

    def __enter__(self):
        sh("nft -f -", self.netns, self.rules)
        return self

    def __exit__(self, *_):
        shown = sh("nft list table netdev weft", self.netns)
        self.packets = int(shown.split("counter packets ")[1].split()[0])
        sh("nft delete table netdev weft", self.netns)
