# SPDX-License-Identifier: MIT
"""Finds the lines of a kernel log that mean something is wrong, and shows them with what follows."""

import re

#: Each pattern is one kind of complaint; a WARN's "cut here" line always comes with one of these.
BAD = re.compile("|".join((
    r"\bWARNING: ", r"\bBUG: ", r"kernel BUG at ", r"\bOops: ", r"general protection fault, ", r"Kernel panic",
    r"\bUBSAN: ", r"\bKASAN: ", r"\bKFENCE: ", r"\bKCSAN: ", r"blocked for more than \d+ seconds",
    r"rcu: INFO: ", r"INFO: rcu", r"INFO: trying to register non-static key", r"INFO: possible ",
    r"possible (circular|recursive|irq lock inversion|unsafe locking) ", r"refcount_t: ", r"ODEBUG: ",
    r"kmemleak: \d+ new suspected", r"unregister_netdevice: waiting for ", r"leaked reference",
    r"ref_tracker: ", r"list_(add|del) corruption", r"Bad page (state|map)", r"page allocation failure",
    r"Objects remaining in ", r"double.free", r"stack-protector: ", r"DEBUG_LOCKS_WARN_ON",
    r"sysfs: cannot create duplicate", r"soft lockup", r"hard LOCKUP", r"scheduling while atomic",
    r"Modules? .* has refcount", r"weft-vm: init failed",
)))
#: A log line as the console prints it: optional level, time, optional caller.
STAMP = re.compile(r"^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?")
END_OF_BLOCK = re.compile(r"---\[ end |=====$|^\s*$")
CONTEXT_LINES = 30


def complaints(lines, allowed=()):
    """Indices of the bad lines that no allowed pattern explains."""
    allow = [re.compile(a) for a in allowed]
    return [i for i, line in enumerate(lines) if BAD.search(line) and not any(a.search(line) for a in allow)]


def excerpt(lines, hits, limit=100):
    """The bad lines, each with the block that follows it, at most `limit` lines in all."""
    shown = []
    upto = -1
    for hit in hits:
        if hit < upto:
            continue
        upto = hit + 1
        while upto < len(lines) and upto - hit < CONTEXT_LINES \
                and not END_OF_BLOCK.search(STAMP.sub("", lines[upto])):
            upto += 1
        shown += lines[hit:upto]
        if len(shown) >= limit:
            return shown[:limit] + [f"… {len(hits)} complaints in all"]
    return shown
