#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Of /proc/lock_stat: how often each lock was waited for, and whose it is.

usage: locks.py DIRECTORY      with lock_stat, lockdep and module_addresses (locks.sh); one record per line

A class is a module's when the address of its key lies there, else the kernel's. lock_stat shows one digit of the
number that tells classes of one name apart (&x->wait#1 may be the 10th to the 19th): of such a name both are said.
"""

import json
import re
import sys
from pathlib import Path

# The name may hold blanks; then contention bounces, contentions, four waiting times, acquisition bounces,
# acquisitions, four holding times.
STAT = re.compile(r"^\s*(\S.*?):((?:\s+[\d.]+){12})\s*$")
# Address of the key, numbers, how the lock is used, the name.
CLASS = re.compile(r"^([0-9a-f]{16})\s(?:\s*[A-Z]+:\s*\d+)+\s+\S+:\s(\S.*?)\s*$")
WIDTH = 38                              # of a name in lock_stat


def shortened(name):
    """A name of lockdep as lock_stat cuts it, which keeps the version (#2) and the subclass (/1)."""
    plain, version, subclass = re.match(r"^(.*?)(#\d)?\d*(/\d)?$", name).groups("")
    return plain[:WIDTH - 1 - len(version) - len(subclass)] + version + subclass


def owners(directory):
    """{class name as lock_stat has it: module, or modules}."""
    modules = []
    for line in (directory / "module_addresses").read_text(encoding="ascii").splitlines():
        name, size, address = line.split()
        modules.append((int(address, 16), int(address, 16) + int(size), name))
    found = {}
    for line in (directory / "lockdep").read_text(encoding="ascii", errors="replace").splitlines():
        match = CLASS.match(line)
        if match:
            key = int(match[1], 16)
            found.setdefault(shortened(match[2]), set()).add(
                next((name for start, end, name in modules if start <= key < end), "kernel"))
    return {name: " or ".join(sorted(of)) for name, of in found.items()}


def base(name):
    """A class without the suffix of lock_stat: reader or writer side."""
    return re.sub(r"-[RW]$", "", name)


def main():
    directory = Path(sys.argv[1])
    owner = owners(directory)
    if "weft_ib" not in owner.values():
        sys.exit("locks.py: no class is weft_ib's: was the kernel booted with no_hash_pointers?")
    rows = []
    for line in (directory / "lock_stat").read_text(encoding="ascii", errors="replace").splitlines():
        match = STAT.match(line)
        if not match:
            continue
        numbers = [float(x) for x in match[2].split()]
        contentions, acquisitions = int(numbers[1]), int(numbers[7])
        module = owner.get(base(match[1]), "kernel")
        if acquisitions and (contentions or module.startswith("weft_")):
            rows.append((module, match[1], contentions, acquisitions))
    for module, name, contentions, acquisitions in sorted(rows, key=lambda r: (-r[0].startswith("weft_"), -r[2])):
        print(json.dumps({"row": "locks", "figure": "contended", "link": module, "lock": name, "unit": "%",
                          "value": round(100 * contentions / acquisitions, 4), "contentions": contentions,
                          "acquisitions": acquisitions}))


if __name__ == "__main__":
    sys.exit(main())
