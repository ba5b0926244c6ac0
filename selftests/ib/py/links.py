# SPDX-License-Identifier: MIT
"""`weft link` for the ends, each in the namespace of its netdev."""

import os
import subprocess

from suite import A_DEV, B_DEV

NETNS = {A_DEV: os.environ["A_NS"], B_DEV: os.environ["B_NS"]}
# Between namespaces the wire is what tests are about, as topo_pair has it; cable.py is about the other way.
DEFAULTS = f"rx-usecs 0 rx-frames 1 icrc auto shortcut {'off' if NETNS[A_DEV] else 'on'} placement ordered"


def weft(dev, *words):
    inside = ["ip", "netns", "exec", NETNS[dev]] if NETNS[dev] else []
    done = subprocess.run([*inside, "weft", "link", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"weft link {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def setting(words, devices=(A_DEV, B_DEV)):
    for dev in devices:
        weft(dev, "set", dev, *words.split())
