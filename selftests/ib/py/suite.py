# SPDX-License-Identifier: MIT
"""How a Python part of the VM suite reports, and where its topology and counters are."""

import os
import sys
import time
import traceback

SLOW = int(os.environ.get("SLOW", "1"))
LEVEL = os.environ.get("LEVEL", "check")
WEFT = os.environ.get("LINK_TYPE", "weft") == "weft"
A_DEV, A_IP4, A_IP6 = (os.environ.get(f"A_{what}", "") for what in ("DEV", "IP4", "IP6"))
B_DEV, B_IP4, B_IP6 = (os.environ.get(f"B_{what}", "") for what in ("DEV", "IP4", "IP6"))
B_HOST = os.environ.get("B_HOST")

parts = []
failed = []


class Failed(Exception):
    """A test found something wrong."""


class Skipped(Exception):
    """A part does not apply here."""


def part(name):
    """Decorator: the function is one part of the test. `finish` runs them in order."""
    def add(function):
        parts.append((name, function))
        return function
    return add


def run(name, function, *arguments):
    try:
        function(*arguments)
        print(f"    ok - {name}", flush=True)
    except Skipped as why:
        print(f"    ok - {name} # SKIP {why}", flush=True)
    except Exception as error:  # pylint: disable=broad-except
        failed.append(name)
        print(f"    not ok - {name}", flush=True)
        if isinstance(error, Failed):
            print(f"        {error}", flush=True)
        else:
            print("        " + traceback.format_exc().replace("\n", "\n        "), flush=True)


def finish():
    """Run what `part` collected; all of it, or what the command line names."""
    wanted = sys.argv[1:]
    for name, function in parts:
        if not wanted or any(word in name for word in wanted):
            run(name, function)
    sys.exit(1 if failed else 0)


def note(text):
    print(f"# {text}", flush=True)


def equal(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: {got!r}, expected {wanted!r}")


def check(what, condition):
    if not condition:
        raise Failed(what)


def between(what, got, least, most):
    if not least <= got <= most:
        raise Failed(f"{what}: {got}, expected {least} to {most}")


def wait_for(what, condition, seconds=5):
    end = time.monotonic() + seconds * SLOW
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"not within {seconds * SLOW} s: {what}")
        time.sleep(0.01)


def probes(moved_by):
    """Requests that were sent again early, of what moved at a sender: a late answer has them, and each has another."""
    return moved_by.get("tail_loss_probes", 0) + moved_by.get("roce_adp_retrans", 0)


def counters(dev):
    """All hardware counters, as they are now: sysfs repeats what it read within the same jiffy."""
    time.sleep(0.02)
    where = f"/sys/class/infiniband/{dev}/ports/1/hw_counters"
    found = {}
    for name in os.listdir(where):
        with open(f"{where}/{name}", encoding="ascii") as file:
            found[name] = int(file.read())
    return found


def moved(before, after):
    return {name: after[name] - before[name] for name in after if after[name] != before.get(name, 0)}
