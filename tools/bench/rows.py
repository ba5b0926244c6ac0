#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The whole table: what each figure is, what it must be, and what was measured.

usage: rows.py DIRECTORY [--write]     with the records of `full`; exit code 1 if a figure is not what it must be
       --write makes them the latest ones (latest.json) and shows them in Documentation/performance.rst

bench.json in DIRECTORY has one object for each figure: value, must, aim, pass. A figure that was not measured has
no value and has not passed.
"""

import json
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True   # the checkout stays clean

import page  # noqa: E402  after that
import table  # noqa: E402

HERE = Path(__file__).resolve().parent
ALLOWED_PART, ALLOWED_US = 0.05, 20     # of a timer


class Missing(Exception):
    """A record that a figure needs is not there."""


class Records:
    """What the guests wrote: lines of JSON, a file for each part."""

    def __init__(self, directory):
        self.all = []
        for file in sorted(Path(directory).glob("*.jsonl")):
            self.all += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        self.columns = {}
        report = Path(directory) / "icount.json"
        if report.exists():
            self.columns = table.read(report)[1]

    def get(self, row, figure, link=None, **members):
        """All records of that kind; there must be one."""
        found = [r for r in self.all if r["row"] == row and r["figure"] == figure
                 and (link is None or r["link"] == link) and all(r.get(k) == v for k, v in members.items())]
        if not found:
            raise Missing(f"no {row} {figure} {link or ''} {members or ''}".strip())
        return found

    def value(self, *args, **members):
        return self.get(*args, **members)[-1]["value"]


# ---- how a figure comes out of the records: (value, what else is to be said) -----------------------------------

def icount(link, *figures):
    def worst(records):
        if link not in records.columns:
            raise Missing("no icount.json")
        found = {name: records.columns[link][name]["factor"] for name in figures}
        return min(found.values()), ", ".join(f"{name} {factor:.2f}x" for name, factor in found.items())
    return worst


def ratio(row, figure):
    """Weft's value to rdma_rxe's."""
    def of(records):
        weft, rxe = records.get(row, figure, "weft")[-1], records.get(row, figure, "rxe")[-1]
        value = weft["value"] / rxe["value"]
        return value, f"{weft['value']:g} {weft['unit']}, rxe {rxe['value']:g}"
    return of


def tail(records):
    value, text = ratio("tail", "send_lat_64_p999")(records)
    pipe = records.get("tail", "pipe_p999")[-1]
    return value, f"{text}; two processes and a pipe {pipe['value']:g}, typically {pipe['typical']:g}"


def rounds(other):
    """Median over the rounds of Weft's rate to the other's."""
    def of(records):
        rates = {kind: {r["round"]: r["value"] for r in records.get("hosts", "write_64k", kind)}
                 for kind in ("weft", other)}
        both = sorted(set(rates["weft"]) & set(rates[other]))
        quotients = [rates["weft"][n] / rates[other][n] for n in both]
        medians = {kind: statistics.median(rates[kind].values()) for kind in rates}
        return (statistics.median(quotients),
                f"medians {medians['weft']:g} and {medians[other]:g} MB/s, {len(both)} rounds, "
                f"{min(quotients):.2f} to {max(quotients):.2f}")
    return of


def more(qps, threads):
    """What a message costs with so many, against one QP of one thread."""
    def of(records):
        one = records.value("scale", "write_64", "weft", qps=1, threads=1)
        many = records.value("scale", "write_64", "weft", qps=qps, threads=threads)
        return many / one, f"{one:g} and {many:g} instructions"
    return of


def qp_memory(records):
    rxe = records.value("scale", "qp_memory", "rxe")
    return records.value("scale", "qp_memory", "weft"), f"depth 1 and 1, 1 SGE each; rxe {rxe}"


def locks(records):
    found = records.get("locks", "contended")
    ours = [r for r in found if r["link"].startswith("weft_")]
    if not ours:
        raise Missing("no lock of weft_* in lock_stat")
    worst = max(ours, key=lambda r: r["value"])
    rest = sorted((r for r in found if r not in ours), key=lambda r: -r["contentions"])[:6]
    return worst["value"], (f"{worst['lock']} {worst['contentions']} of {worst['acquisitions']}; others: "
                            + ", ".join(f"{r['lock']} {r['value']:g} %" for r in rest))


def goodput(loss):
    """The worst run against the same wire without loss."""
    def of(records):
        clean = records.value("loss", "goodput", "weft", loss=0)
        runs = records.get("loss", "goodput", "weft", loss=loss)
        return (100 * min(r["value"] for r in runs) / clean,
                f"{', '.join(format(r['value'], 'g') for r in runs)} of {clean:g} MB/s" + statuses(runs))
    return of


def statuses(runs):
    bad = sorted({r["status"] for r in runs} - {"success"})
    return f"; {', '.join(bad)}" if bad else ""


def resent(records):
    runs = [r for r in records.get("loss", "goodput", "weft") if r["loss"] and r["dropped"]]
    if not runs:
        raise Missing("netem dropped nothing")
    by_loss = {}
    for r in runs:
        by_loss.setdefault(r["loss"], []).append(r["retransmitted"] / r["dropped"])
    return (max(max(v) for v in by_loss.values()),
            ", ".join(f"{loss} %: {max(v):.2f}" for loss, v in sorted(by_loss.items())))


def single_packets(records):
    """netem's count of what it dropped against what went missing: differs when it dropped batches."""
    runs = [r for r in records.get("loss", "goodput", "weft") if r["loss"]]
    lost = sum(r["missing"] for r in runs)
    dropped = sum(r["dropped"] for r in runs)
    if not dropped:
        raise Missing("netem dropped nothing")
    return 100 * abs(lost - dropped) / dropped, f"{dropped} dropped, {lost} missing"


def beside_rxe(records):
    weft, rxe = (records.get("loss_rxe", "goodput", link, loss=1) for link in ("weft", "rxe"))
    value = min(r["value"] for r in weft) / max(max(r["value"] for r in rxe), 1e-9)
    return value, (f"{min(r['value'] for r in weft):g} and {max(r['value'] for r in rxe):g} MB/s"
                   + statuses(weft) + statuses(rxe))


def reorder(records):
    plain, mixed = (records.get("loss", "reorder", "weft", reorder=n)[-1] for n in (0, 25))
    each = [r["sent_bytes"] / r["messages"] for r in (plain, mixed)]
    return (max(100 * (each[1] / each[0] - 1), 0),
            f"{mixed['retransmitted']} of {mixed['sent']} packets resent, {mixed['value']:g} of {plain['value']:g} MB/s"
            + statuses([mixed]))


def timer(which):
    """The largest deviation, as a part of what is allowed."""
    def of(records):
        worst, text, failed = 0, "", 0
        found = records.get("timers", which, "weft")
        for r in found:
            if r["value"] is None:
                failed += 1
                continue
            off = r["value"] - r["expected"]
            part = abs(off) / max(ALLOWED_PART * r["expected"], ALLOWED_US)
            if part >= worst:
                worst, text = part, f"code {r['code']}, {r['count']}: {off:+.1f} of {r['expected']:.1f} us"
        if failed:
            raise Missing(f"{failed} of {len(found)} went another way")
        return worst, f"{len(found)} timers; worst {text}"
    return of


# ---- the table: id, what, how, unit, better, must, aim ------------------------------------------------------------

MORE, LESS = "more", "less"
ROWS = [
    ("self_offloaded", "64 KiB WRITE and READ, one device to itself", icount("weft", "write_64k", "read_64k"),
     "x rxe", MORE, 6, 10),
    ("self_icrc", "the same, ICRC always", icount("weft, icrc always", "write_64k", "read_64k"),
     "x rxe", MORE, 2.5, 3.5),
    ("self_small", "64 B WRITE, per message", icount("weft", "write_64"), "x rxe", MORE, 3, 5),
    ("self_latency", "64 B SEND latency, events", icount("weft", "send_lat_64_events"), "x rxe", MORE, 2, 3),
    ("namespaces", "64 KiB WRITE between two namespaces, veth, 7.3", ratio("namespaces", "write_64k"),
     "x rxe", MORE, 4, 8),
    ("hosts", "64 KiB WRITE between two VMs, wall clock", rounds("rxe"), "x rxe", MORE, 2, None),
    ("hosts_tcp", "the same against iperf3's TCP", rounds("tcp"), "x TCP", MORE, None, 1),
    ("qps_1024", "64 B WRITE: 1024 QPs in turn against 1 QP", more(1024, 1), "x cost", LESS, 1.3, 1.1),
    ("threads_8", "64 B WRITE: 8 threads of 4 QPs against 1 QP", more(4, 8), "x cost", LESS, None, None),
    ("qp_memory", "kernel memory of an RC QP", qp_memory, "bytes", LESS, None, None),
    ("locks", "most contended lock of weft_*, 4 QPs per thread", locks, "% of acquisitions", LESS, 0.1, None),
    ("tail", "p99.9 of 64 B SEND latency beside a CPU burner", tail, "of rxe's", LESS, 0.7, 0.4),
    ("loss_0.1", "1 MiB WRITE, 0.1 % loss, 100 us round trip", goodput(0.1), "% of goodput", MORE, 90, 97),
    ("loss_1", "the same, 1 % loss", goodput(1), "% of goodput", MORE, 70, 90),
    ("loss_5", "the same, 5 % loss", goodput(5), "% of goodput", MORE, 35, 60),
    ("resent", "packets sent again for each one lost", resent, "packets", LESS, 1.5, 1.1),
    ("single_packets", "netem's drops against what went missing", single_packets, "% apart", LESS, 2, None),
    ("loss_rxe", "1 % loss against rdma_rxe under the same", beside_rxe, "x rxe", MORE, 10, None),
    ("reorder", "bytes sent again, delay 1 ms reorder 25 % gap 5", reorder, "% of bytes", LESS, 1, 0),
    ("rnr", "RNR codes 1 to 31: off, of 5 % or 20 us", timer("rnr"), "of allowed", LESS, 1, None),
    ("ack_timeout", "ACK timeout codes 8 to 20: off, of 5 % or 20 us", timer("timeout"), "of allowed", LESS, 1, None),
]


def reaches(value, bound, better):
    return bound is None or (value >= bound if better == MORE else value <= bound)


def judge(records):
    results = []
    for name, what, how, unit, better, must, aim in ROWS:
        one = {"figure": name, "what": what, "value": None, "unit": unit, "better": better, "must": must, "aim": aim}
        try:
            value, detail = how(records)
            one |= {"value": round(value, 4), "detail": detail, "pass": reaches(value, must, better),
                    "aim_reached": aim is not None and reaches(value, aim, better)}
        except Missing as why:
            one |= {"detail": f"not measured: {why}", "pass": False, "aim_reached": False}
        results.append(one)
    return results


def show(results):
    def text(number):
        return "" if number is None else f"{number:g}"
    for number, one in enumerate(results, 1):
        value = "-" if one["value"] is None else f"{one['value']:.3f}"
        print(f"{'ok' if one['pass'] else 'not ok'} {number} - {one['what']:<52} {value:>10} {one['unit']:<18}"
              f" must {text(one['must']):<4} aim {text(one['aim']):<4} | {one['detail']}")
    passed = sum(one["pass"] for one in results)
    print(f"{passed} passed, {len(results) - passed} failed, 0 skipped")


def main():
    directory = Path(sys.argv[1])
    results = judge(Records(directory))
    text = json.dumps({"results": results}, indent=1) + "\n"
    (directory / "bench.json").write_text(text, encoding="utf-8")
    show(results)
    if "--write" in sys.argv[2:]:
        (HERE / "latest.json").write_text(text, encoding="utf-8")
        page.write()
    return 0 if all(one["pass"] for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
