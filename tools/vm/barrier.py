# SPDX-License-Identifier: MIT
"""Barriers between the hosts of a run: `weft-barrier NAME` in the guests, counted here.

Guest and runner speak lines over a virtio-serial port: "NAME SECONDS" one way, "ok" or a
reason the other. A host whose COMMAND has ended can never arrive, so its absence fails
the barrier at once instead of at the time limit.
"""

import time


class Barriers:
    def __init__(self, machines):
        self.machines = machines
        self.rest = {m.host: b"" for m in machines}
        self.waiting = {}       #: name -> {host: deadline}

    def feed(self, machine, data):
        *lines, self.rest[machine.host] = (self.rest[machine.host] + data).split(b"\n")
        for line in lines:
            name, _, seconds = line.decode("utf-8", "replace").rpartition(" ")
            try:
                limit = float(seconds)
            except ValueError:
                self._answer(machine.host, f"bad time limit '{seconds}'")
                continue
            hosts = self.waiting.setdefault(name, {})
            hosts[machine.host] = time.monotonic() + limit
            if len(hosts) == len(self.machines):
                for host in hosts:
                    self._answer(host, "ok")
                del self.waiting[name]

    def tick(self):
        """Fail what can no longer be met: a host ended, or the time is over."""
        now = time.monotonic()
        gone = [m for m in self.machines if m.command_done or not m.open]
        for name, hosts in list(self.waiting.items()):
            missing = [m.name for m in gone if m.host not in hosts]
            late = any(now > deadline for deadline in hosts.values())
            if not missing and not late:
                continue
            why = f"{', '.join(missing)} has ended" if missing else "time is over"
            for host in hosts:
                self._answer(host, why)
            del self.waiting[name]

    def _answer(self, host, text):
        machine = next(m for m in self.machines if m.host == host)
        try:
            machine.sockets["barrier"].send(text.encode() + b"\n")
        except OSError:
            pass
