# SPDX-License-Identifier: MIT
"""One virtual machine: its QEMU process, the sockets to its ports, its console log."""

import ctypes
import dataclasses
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys

from . import qemu, util

PORTS = ("console", "control", "stdout", "stderr", "barrier")
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass
class Spec:
    """What makes one machine of a run."""
    host: int
    kernel: object
    initrd: pathlib.Path
    accel: str
    options: object
    job: pathlib.Path
    out: pathlib.Path
    chroot: object = None


def _die_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(options, kernel, host, modules_dir):
    """Variables of COMMAND: the caller's WEFT_*, what the run says of itself, then --env."""
    env = {k: v for k, v in os.environ.items() if k.startswith("WEFT_")}
    env.update({
        "HOME": "/run/weft/home", "USER": "root", "LOGNAME": "root", "LANG": "C.UTF-8",
        "TERM": os.environ.get("TERM", "dumb"), "WEFT_HOST": str(host), "WEFT_HOSTS": str(options.hosts),
        "WEFT_OUT": "/run/weft/out", "WEFT_KERNEL": kernel.kind.name, "WEFT_CHECKOUT": str(util.CHECKOUT),
        "WEFT_MODULES": str(modules_dir),
    })
    for item in options.env:
        key, sep, value = item.partition("=")
        if not sep:
            raise util.VmError(f"--env {item}: expected NAME=VALUE")
        env[key] = value
    return env


def command_script(options, env, cwd):
    lines = ["# the command of this host"]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in sorted(env.items())]
    lines.append(f"cd {shlex.quote(cwd)} || exit 126")
    lines.append("exec " + " ".join(shlex.quote(word) for word in options.command))
    return "\n".join(lines) + "\n"


class Output:
    """Copies a guest's stream to one of ours; with several hosts line by line behind a prefix."""

    def __init__(self, stream, prefix):
        self.stream = stream
        self.prefix = prefix.encode()
        self.rest = b""

    def write(self, data):
        if not self.prefix:
            self._put(data)
            return
        *lines, self.rest = (self.rest + data).split(b"\n")
        if lines:
            self._put(b"".join(self.prefix + line + b"\n" for line in lines))

    def close(self):
        if self.rest:
            self._put(self.prefix + self.rest + b"\n")
            self.rest = b""

    def _put(self, data):
        self.stream.buffer.write(data)
        self.stream.buffer.flush()


class Machine:
    def __init__(self, spec, nonce, net=None):
        self.spec = spec
        self.host = spec.host
        self.nonce = nonce
        self.name = f"h{spec.host}"
        self.log = bytearray()
        self.sinks = [open(path, "wb", buffering=0) for path in self._log_files()]
        self.control_rest = b""
        self.ready = False
        self.code = None            #: COMMAND's exit code, from the token
        self.command_done = False   #: COMMAND has ended; the guest may still unload and scan
        self.last_word = False      #: the guest reports nothing more
        self.failures = []
        self.open = set()
        self.sockets = {}
        self.process = None
        prefix = f"{self.name}| " if spec.options.hosts > 1 else ""
        self.outputs = {"stdout": Output(sys.stdout, prefix), "stderr": Output(sys.stderr, prefix)}
        self._start(net)

    def _log_files(self):
        """Where the kernel log goes as it comes: beside the artefacts, and where --log says."""
        options = self.spec.options
        suffix = f".{self.name}" if options.hosts > 1 else ""
        return ([self.spec.out / f"{self.name}-console.log"] if options.out else []) \
            + ([options.log + suffix] if options.log else [])

    def _start(self, net):
        theirs = {}
        for name in PORTS:
            self.sockets[name], theirs[name] = socket.socketpair()
            self.sockets[name].setblocking(False)
        if net is not None:
            theirs["net"] = net
        fds = {name: sock.fileno() for name, sock in theirs.items()}
        argv = qemu.command(self.spec, fds)
        if self.spec.options.verbose:
            util.say(shlex.join(argv))
        shell = self.spec.options.shell
        errors = self.spec.job / f"qemu.{self.host}"
        with open(errors, "wb") as sink:
            self.process = subprocess.Popen(argv, pass_fds=list(fds.values()), stderr=sink,
                                            stdin=None if shell else subprocess.DEVNULL,
                                            stdout=None if shell else sink, preexec_fn=_die_with_parent)
        for sock in theirs.values():
            sock.close()
        self.open = set(PORTS)

    def receive(self, port):
        """Take what a port holds; False once it has ended."""
        try:
            data = self.sockets[port].recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self.open.discard(port)
            return False
        if port == "console":
            data = data.replace(b"\r", b"")
            self.log += data
            for sink in self.sinks:
                sink.write(data)
            if self.spec.options.verbose:
                sys.stderr.buffer.write(data)
                sys.stderr.flush()
        elif port == "control":
            self._control(data)
        elif port in self.outputs:
            self.outputs[port].write(data)
        return data

    def _control(self, data):
        *lines, self.control_rest = (self.control_rest + data).split(b"\n")
        for raw in lines:
            nonce, _, text = raw.decode("utf-8", "replace").partition(" ")
            if nonce != self.nonce:
                continue
            verb, _, rest = text.partition(" ")
            if verb == "ready":
                self.ready = True
            elif verb == "done":
                self.command_done = True
            elif verb in ("exit", "end"):
                self.code = int(rest) if verb == "exit" else None
                self.command_done = True
                self.last_word = True
            elif verb == "fail":
                self.failures.append(rest)

    @property
    def marker(self):
        return f"weft-vm: end of log {self.nonce}".encode()

    def finished(self):
        """Both the last word and the end of the log are here (they take different ways), or QEMU is gone."""
        return (self.last_word and self.marker in self.log[-4096:]) or "console" not in self.open

    def lines(self):
        return self.log.decode("utf-8", "replace").splitlines()

    def qemu_errors(self):
        path = self.spec.job / f"qemu.{self.host}"
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return [line for line in text.splitlines()
                if line and "terminating on signal" not in line and "doesn't support requested feature" not in line]

    def stop(self):
        """End QEMU, politely first: it then gives a terminal back as it was."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for output in self.outputs.values():
            output.close()

    def close(self):
        for sink in self.sinks:
            sink.close()
        for sock in self.sockets.values():
            sock.close()
