#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows icount's figures as a table, Weft beside rdma_rxe, and judges them.

usage: table.py REPORT.json BASELINE.json          exit code 1 if a figure is worse than it may be
       table.py REPORT.json BASELINE.json --write  make the report the baseline, and the page of it (page.py)

A figure of a column is a ratio, rdma_rxe's instructions to Weft's in the same boot: another point release of the
kernel or of perftest moves both. It may be 3 % below the committed baseline, and Weft may never be the slower one
where nothing is switched off. One TAP line for each.
"""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True   # the checkout stays clean

import page  # noqa: E402  after that

SMALLER_IS_BETTER = {"us"}
TOLERANCE = 0.03


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


def main():
    report, baseline = sys.argv[1:3]
    kernel, columns = read(report)
    show(kernel, columns)
    if sys.argv[3:4] == ["--write"]:
        Path(baseline).write_text(Path(report).read_text(encoding="utf-8"), encoding="utf-8")
        page.write()
        return 0
    return judge(columns, read(baseline)[1])


if __name__ == "__main__":
    sys.exit(main())
