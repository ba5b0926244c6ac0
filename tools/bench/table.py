#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows icount's figures as a table, Weft beside rdma_rxe. Exit code 1 if Weft is worse in one of them."""

import json
import sys
from pathlib import Path

SMALLER_IS_BETTER = {"us"}


def main():
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    links = list(dict.fromkeys(one["link"] for one in report["results"]))
    rows = {}
    for one in report["results"]:
        rows.setdefault(one["name"], {"unit": one["unit"], "command": one["command"]})[one["link"]] = one["value"]

    print(f"{'':<34}" + "".join(f"{link:>20}" for link in links) + f"{'weft : rxe':>12}")
    worse = []
    for name, row in rows.items():
        ratio = row["weft"] / row["rxe"]
        if row["unit"] in SMALLER_IS_BETTER:
            ratio = 1 / ratio
        if ratio < 1:
            worse.append(name)
        label = f"{row['command']} [{row['unit']}]"
        print(f"{label:<34}" + "".join(f"{row[link]:>20.2f}" for link in links) + f"{ratio:>11.2f}x")
    print(f"Kernel {report['kernel']}; guest time is instructions, 1 ns each. Above 1.00x Weft is the better one.")
    if worse:
        print(f"worse than rdma_rxe: {', '.join(worse)}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
