# SPDX-License-Identifier: MIT
"""Documentation/performance.rst: the committed figures (baseline.json, latest.json), and how they are taken."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "Documentation" / "performance.rst"

TEXT = """\
.. SPDX-License-Identifier: GPL-2.0

===========
Performance
===========

Instructions, not seconds: guest time under ``--icount`` is one nanosecond for each, so most figures repeat to a part
in a thousand on any machine, however busy it is. ``make bench`` takes the first table in half a minute and judges it
by the baseline, ``make bench-full`` takes all of the second one in about an hour. Both write JSON (``build/bench``);
this page is written by ``make bench-baseline`` and ``make bench-latest``.

Beside rdma_rxe
===============

One device talks to itself over a dummy netdev, rdma_rxe and Weft in the same boot (kernel {kernel}); a MB is 2^20
bytes; the factor is rdma_rxe's instructions to Weft's. CI fails when a factor falls by more than 3 %.

{icount}

*icrc always* computes and checks each packet's ICRC as on a wire; *shortcut off* sends every packet through the
IP stack and ``lo`` as well. A latency has two values, 1.3 us apart, as the scheduler likes it: either both processes
sleep once per round trip, or a wake-up preempts the one that caused it, which then finds its event and need not sleep
(16.7 us). The slower one is shown, and kept to.

What must hold
==============

{rows}

How each is taken
=================

A part of ``tools/bench/full`` is one boot, or one pair of boots: ``tools/bench/full PART...`` takes those parts alone,
``tools/bench/rows.py build/bench`` judges what is there.

*figures* (6.1, icount)
  the first table: perftest, one device to itself.
*namespaces* (7.3, icount)
  ``ib_write_bw -s 65536 -n 200`` between two network namespaces joined by a veth, RDMA namespaces exclusive, for
  rdma_rxe has no other way to be in two of them. The server sleeps: only the client polls.
*hosts* (6.1, two machines of one CPU, wall clock)
  ``ib_write_bw -s 65536`` over Weft and rdma_rxe and ``iperf3`` over TCP take turns, nine times, in the same two boots
  on the runner's virtio Ethernet. The figure is the median of the rounds' quotients.
*scale* (6.1, icount)
  ``weft_bench_stream``: one CQ, 64 requests in flight in all, posted to 1 or 1024 QPs in turn. Memory of a QP is what
  ``/proc/meminfo`` says of slab, vmalloc, per-CPU memory, page tables and stacks before and after 2048 QPs were made
  and connected; their CQs, MRs and the process's own memory are not in it.
*locks* (debug kernel with LOCK_STAT, ``-smp 2``)
  ``weft_bench_stream`` with four threads of four QPs each, a million 64 B WRITEs. Contentions of each lock class over
  its acquisitions. A class is Weft's if the address of its key is in a module of Weft's (``no_hash_pointers``); the
  most contended ones of others are named, and those whose name, as lock_stat cuts it, fits Weft's and the kernel's.
*tail* (6.1, icount)
  ``ib_send_lat -e -s 64 -n 20000`` beside a process that never sleeps and has the same priority; perftest's own
  percentile. ``weft_bench_pipe`` does the same through pipes, with no RDMA in between: that process's share of the CPU
  comes in slices of milliseconds, and a message that meets one waits for its end whatever driver carries it.
*loss*, *loss_rxe* (6.1; 7.3 beside rdma_rxe; icount)
  ``weft_bench_stream --events``: 1 MiB WRITEs, 16 in flight, over a veth with netem on both ends: 50 us of delay, and
  loss both ways. Segmentation is switched off on both netdevs, so that netem sees packets: its own count of drops is
  compared with what the receiver misses. A run ends after 2,000 messages or 40 seconds of guest time; goodput is
  compared with the same wire without loss; of several runs the worst one counts. 6.1's netem has no seed, so its runs
  differ by chance. Packets sent again are counted by the sender (``retransmitted_pkts``), those lost are netem's
  drops in the data's direction.
*timers* (6.1, icount)
  ``weft_bench_timers``. RNR: a receiver without receives; time stamps of a tap on the sender's netdev, from the NAK to
  the SEND that follows, three times for each code, the worst one counts. ACK timeout: the peer's QP is reset after one
  message; from posting the next one to its completion in error, which should be (retries + 1) times 4.096 us times
  2^code. What is shown is the largest deviation as a part of 5 % or 20 us, whichever is more.
"""


def rst_table(head, rows):
    """A simple table; an empty first cell would end its column."""
    rows = [[cell or "\\" if i == 0 else cell for i, cell in enumerate(row)] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def icount_table(columns):
    rows = [[f"``{first['command']}``, {first['unit']}",
             *(f"{figures[name]['value']:,.2f}" + (f" ({figures[name]['factor']:.2f}x)" if link != "rxe" else "")
               for link, figures in columns.items())] for name, first in columns["rxe"].items()]
    return rst_table(["", *columns], rows)


def rows_table(results):
    def text(number):
        return "" if number is None else f"{number:g}"
    sign = {"more": "≥ ", "less": "≤ "}
    return rst_table(["figure", "measured", "unit", "must", "aim", "holds"], [[
        one["what"], "not yet" if one["value"] is None else f"{one['value']:.4g}", one["unit"],
        sign[one["better"]] + text(one["must"]) if one["must"] is not None else "-",
        text(one["aim"]) or "-", "-" if None in (one["must"], one["value"]) else "yes" if one["pass"] else "no"]
        for one in results])


def write():
    # They write the page, too.
    import rows     # pylint: disable=import-outside-toplevel
    import table    # pylint: disable=import-outside-toplevel
    kernel, columns = table.read(HERE / "baseline.json")
    latest = HERE / "latest.json"
    if latest.exists():
        results = json.loads(latest.read_text(encoding="utf-8"))["results"]
    else:
        results = rows.judge(rows.Records(HERE))
    PAGE.write_text(TEXT.format(kernel=kernel, icount=icount_table(columns), rows=rows_table(results)),
                    encoding="utf-8")
