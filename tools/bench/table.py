#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows icount's figures as a table, Weft beside rdma_rxe, and judges them.

usage: table.py REPORT.json BASELINE.json          exit code 1 if a figure is worse than it may be
       table.py REPORT.json BASELINE.json --write FILE.rst
                                                   make the report the baseline, and the page that shows it

A figure of a column is a ratio, rdma_rxe's instructions to Weft's in the same boot: another point release of the
kernel or of perftest moves both. It may be 3 % below the committed baseline, and Weft may never be the slower one
where nothing is switched off. One TAP line for each.
"""

import json
import sys
from pathlib import Path

SMALLER_IS_BETTER = {"us"}
TOLERANCE = 0.03
PAGE = """\
.. SPDX-License-Identifier: GPL-2.0

===========
Performance
===========

Instructions, not seconds: guest time under ``--icount`` is one nanosecond for each, so these figures repeat to a part
in a thousand on any machine. One device talks to itself over a dummy netdev, rdma_rxe and Weft in the same boot
(kernel {kernel}); a MB is 2^20 bytes; the factor is rdma_rxe's instructions to Weft's. Written by
``make bench-baseline``; CI fails when a factor falls by more than 3 %.

{table}

*icrc always* computes and checks each packet's ICRC as on a wire; *shortcut off* sends every packet through the
IP stack and ``lo`` as well.
"""


def read(path):
    """{column: {figure: (factor, value, unit, command)}}; the first column is rxe."""
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    columns = {}
    for one in report["results"]:
        columns.setdefault(one["link"], {})[one["name"]] = one
    for figures in columns.values():
        for name, one in figures.items():
            factor = one["value"] / columns["rxe"][name]["value"]
            one["factor"] = 1 / factor if one["unit"] in SMALLER_IS_BETTER else factor
    return report["kernel"], columns


def show(kernel, columns):
    print("# " + f"{'':<34}" + "".join(f"{link:>26}" for link in columns))
    for name, first in columns["rxe"].items():
        label = f"{first['command']} [{first['unit']}]"
        print("# " + f"{label:<34}" + "".join(f"{figures[name]['value']:>17.2f} {figures[name]['factor']:>7.2f}x"
                                              for figures in columns.values()))
    print(f"# Kernel {kernel}; guest time is instructions, 1 ns each. Above 1.00x Weft is the better one.")


def judge(columns, baseline):
    passed = failed = 0
    for link, figures in columns.items():
        if link == "rxe":
            continue
        for name, one in figures.items():
            least = baseline[link][name]["factor"] * (1 - TOLERANCE)
            if "off" not in link:
                least = max(least, 1)
            good = one["factor"] >= least
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok' if good else 'not ok'} {passed + failed} - {link}: {name} {one['factor']:.3f}x, "
                  f"at least {least:.3f}x")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def page(kernel, columns):
    head = ["", *columns]
    rows = [[f"``{first['command']}``, {first['unit']}",
             *(f"{figures[name]['value']:,.2f}" + (f" ({figures[name]['factor']:.2f}x)" if link != "rxe" else "")
               for link, figures in columns.items())] for name, first in columns["rxe"].items()]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *rows]]
    # An empty first cell would end the table's column.
    lines[0] = "\\" + lines[0][1:]
    return PAGE.format(kernel=kernel, table="\n".join([rule, lines[0], rule, *lines[1:], rule]))


def main():
    report, baseline = sys.argv[1:3]
    kernel, columns = read(report)
    show(kernel, columns)
    if sys.argv[3:4] == ["--write"]:
        Path(baseline).write_text(Path(report).read_text(encoding="utf-8"), encoding="utf-8")
        Path(sys.argv[4]).write_text(page(kernel, columns), encoding="utf-8")
        return 0
    return judge(columns, read(baseline)[1])


if __name__ == "__main__":
    sys.exit(main())
