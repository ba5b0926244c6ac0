# SPDX-License-Identifier: MIT
"""A run: boots the machines, serves their ports, judges the result.

The judgement, in this order: the time limit (124), COMMAND's own code of the first host that
failed, then a machine that never gave its token (122), a complaint in a kernel log (120),
a leak (121). Success needs the token, a silent log and no leak on every host.
"""

import os
import pathlib
import secrets
import selectors
import shlex
import shutil
import sys
import tempfile
import time

from . import barrier, chroot, hub, initramfs, kernels, logscan, machine, qemu, util

LOG_COMPLAINT = 120
LEAK = 121
NO_TOKEN = 122
TIMEOUT = 124
LAST_LINES = 40
DRAIN_SECONDS = 5
#: How long the other hosts may go on after one has failed, and after one is gone.
GRACE_FAILED_SECONDS = 60
GRACE_LOST_SECONDS = 5
#: Modules that must be there; whatever else the directory holds is loaded too.
REQUIRED_MODULES = ("weft_core", "weft_ib")
HIDDEN_BY_TMPFS = ("/tmp", "/run", "/dev/shm", "/var/run")


def modules_dir(options, kernel):
    return pathlib.Path(options.modules or util.CHECKOUT / "build" / "modules" / kernel.release).resolve()


def module_plan(options, kernel):
    """(files in loading order, names of the kernel's modules they need)."""
    if options.no_weft:
        return [], []
    where = modules_dir(options, kernel)
    files = {initramfs.module_name(p): p for p in sorted(where.glob("*.ko"))}
    missing = [name for name in REQUIRED_MODULES if name not in files]
    if missing:
        raise util.VmError(
            f"{', '.join(m + '.ko' for m in missing)} not built for {kernel.release} (looked in {where}): run `make "
            f"modules KDIR=$(tools/weft-vm kernel kdir {kernel.kind.name})`, or give --no-weft")
    modinfo = util.need_program("modinfo", "kmod")
    needs = {name: [initramfs.module_name(d) for d in
                    util.output_of([modinfo, "-F", "depends", path]).strip().split(",") if d]
             for name, path in files.items()}
    order = []

    def add(name):
        if name in order:
            return
        for need in needs[name]:
            if need in files:
                add(need)
        order.append(name)

    for name in files:
        add(name)
    stock = sorted({need for deps in needs.values() for need in deps if need not in files})
    return [str(files[name]) for name in order], stock


def hidden(path):
    """Whether a fresh tmpfs of the guest hides this path."""
    return any(path.startswith(h + "/") for h in HIDDEN_BY_TMPFS)


def binds(options, kernel, cwd):
    """Places that must be bound into the guest's root at their own path.

    Words of COMMAND that name something there count too, so that a script in /tmp just runs.
    """
    wanted = [str(util.CHECKOUT), cwd, str(kernel.modules)]
    if options.modules:
        wanted.append(str(modules_dir(options, kernel)))
    wanted += [os.path.abspath(p) for p in options.bind]
    wanted += [os.path.abspath(w) for w in options.command if "/" in w and os.path.exists(w)
               and hidden(os.path.abspath(w))]
    if not kernel.kind.chroot:
        wanted = [p for p in wanted if hidden(p)]
    chosen = []
    for path in sorted(set(wanted)):
        if path != "/" and not any(path.startswith(c + "/") for c in chosen):
            chosen.append(path)
    return chosen


def prepare_job(options, kernel, job, nonce):
    """Write what the guests read: one config per host, one command per host, the binds."""
    cwd = os.getcwd()
    weft, stock = module_plan(options, kernel)
    (job / "binds").write_text("".join(p + "\n" for p in binds(options, kernel, cwd)), encoding="utf-8")
    size = shutil.get_terminal_size()
    for host in range(options.hosts):
        place = job / f"h{host}"
        place.mkdir()
        shutil.copyfile(job / "binds", place / "binds")
        values = {"nonce": nonce, "host": host, "hosts": options.hosts, "mtu": options.mtu,
                  "moddir": kernel.modules, "needs": " ".join(stock), "weft": " ".join(weft),
                  "unload": "1" if options.unload else "", "shell": "1" if options.shell else "",
                  "size": f"rows {size.lines} columns {size.columns}", "udev": "1" if options.udev else ""}
        (place / "config").write_text("".join(f"{k}={shlex.quote(str(v))}\n" for k, v in values.items()),
                                      encoding="utf-8")
        env = machine.environment(options, kernel, host, modules_dir(options, kernel))
        (place / f"command.{host}").write_text(machine.command_script(options, env, cwd), encoding="utf-8")


class Run:
    def __init__(self, options):
        self.options = options
        self.kernel = kernels.get(options.kernel)
        self.initrd = initramfs.build(self.kernel)
        self.accel = qemu.choose_accel(options.accel, self.kernel, self.initrd)
        self.root = chroot.get() if self.kernel.kind.chroot else None
        self.nonce = secrets.token_hex(8)
        self.machines = []
        self.hub = None
        self.selector = selectors.DefaultSelector()
        self.barriers = None
        self.first_failure = None
        self.deadline = None
        self.cut_off = float("inf")

    def execute(self):
        """Boot, serve until the end, judge; the exit code."""
        with tempfile.TemporaryDirectory(prefix="weft-vm.") as temp:
            job = pathlib.Path(temp)
            out = pathlib.Path(self.options.out).resolve() if self.options.out else job / "out"
            out.mkdir(parents=True, exist_ok=True)
            prepare_job(self.options, self.kernel, job, self.nonce)
            with util.machine_slot():
                try:
                    self._boot(job, out)
                    late = not self._serve()
                finally:
                    self._stop()
            code = self._judge(late)
            for each in self.machines:
                each.close()
        return code

    def _boot(self, job, out):
        count = self.options.hosts
        if count > 1:
            self.hub = hub.Hub(count, self.options.pcap)
        self.deadline = time.monotonic() + self.options.timeout
        for host in range(count):
            spec = machine.Spec(host, self.kernel, self.initrd, self.accel, self.options, job / f"h{host}",
                                out, self.root)
            net = self.hub.qemu_ends[host] if self.hub else None
            each = machine.Machine(spec, self.nonce, net)
            self.machines.append(each)
            for port in machine.PORTS:
                self.selector.register(each.sockets[port], selectors.EVENT_READ, (each, port))
        self.barriers = barrier.Barriers(self.machines)
        if self.hub:
            self.hub.start()

    def _serve(self):
        """Serve the ports until every guest has ended or is cut off by another's failure; False when time is over."""
        while any(m.open and not m.finished() for m in self.machines):
            now = time.monotonic()
            if now >= self.cut_off:
                return True
            left = self.deadline - now
            if left <= 0:
                return False
            for key, _ in self.selector.select(min(left, 0.5)):
                self._serve_port(*key.data)
            self.barriers.tick()
            self._note_failures()
        return True

    def _serve_port(self, each, port):
        data = each.receive(port)
        if data is False:
            self.selector.unregister(each.sockets[port])
        elif port == "barrier" and data is not True:
            self.barriers.feed(each, data)

    def _note_failures(self):
        for each in self.machines:
            lost = "console" not in each.open and each.code is None
            if not (lost or each.failures or each.code):
                continue
            if self.first_failure is None:
                self.first_failure = each
                self.cut_off = time.monotonic() + GRACE_FAILED_SECONDS
            if lost:
                self.cut_off = min(self.cut_off, time.monotonic() + GRACE_LOST_SECONDS)

    def _stop(self):
        """Take what the ports still hold, then end everything."""
        end = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < end:
            events = self.selector.select(0.05)
            if not events:
                break
            for key, _ in events:
                self._serve_port(*key.data)
        self._note_failures()
        for each in self.machines:
            each.stop()
        if self.hub:
            self.hub.stop()

    def _judge(self, late):
        sys.stdout.flush()
        verdicts = [self._judge_one(m) for m in self.machines]
        if late:
            for each in self.machines:
                if each.finished():
                    continue
                util.say(f"{each.name}: time limit of {self.options.timeout:g} s; last lines of the kernel log:")
                self._show(each.lines()[-LAST_LINES:] or ["(nothing)"] + each.qemu_errors())
            return TIMEOUT
        if self.first_failure is not None and self.first_failure.code:
            return self.first_failure.code
        return next((code for code in verdicts if code), 0)

    def _judge_one(self, each):
        """Say what is wrong with one machine; its exit code."""
        lines = each.lines()
        hits = logscan.complaints(lines, self.options.allow_log)
        if hits:
            util.say(f"{each.name}: {len(hits)} complaint(s) in the kernel log:")
            self._show(logscan.excerpt(lines, hits))
        leaks = each.spec.job / f"leaks.{each.host}"
        leaked = leaks.exists()
        if leaked:
            util.say(f"{each.name}: kmemleak found:")
            self._show(leaks.read_text(encoding="utf-8", errors="replace").splitlines()[:LAST_LINES])
        for text in each.failures:
            util.say(f"{each.name}: {text}; last lines of the kernel log:")
            self._show(lines[-10:])
        if each.code:
            return each.code
        if each.code is None or each.failures:
            if not each.failures and each.finished() and "console" not in each.open:
                util.say(f"{each.name}: the machine ended without its token; last lines of the kernel log:")
                self._show(lines[-LAST_LINES:] + each.qemu_errors())
            if not each.finished() and self.first_failure not in (None, each):
                util.say(f"{each.name}: stopped, since {self.first_failure.name} failed")
            return NO_TOKEN
        return LOG_COMPLAINT if hits else LEAK if leaked else 0

    @staticmethod
    def _show(lines):
        for line in lines:
            print(f"  {line}", file=sys.stderr)
        sys.stderr.flush()

