# SPDX-License-Identifier: MIT
"""Paths, errors, child processes and locks that every part of weft-vm shares."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import time

#: tools/vm
HERE = pathlib.Path(__file__).resolve().parent
#: the checkout that contains tools/weft-vm
CHECKOUT = HERE.parent.parent


class VmError(Exception):
    """A refusal with a text for the user; main prints it and exits with 2."""


def say(text):
    """Progress for a person: standard error, never mixed with a command's output."""
    print(f"weft-vm: {text}", file=sys.stderr, flush=True)


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = pathlib.Path(base) / "weft"
    path.mkdir(parents=True, exist_ok=True)
    return path


def need_program(name, package):
    """The path of a program, or a refusal that names the Debian package."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise VmError(f"{name} is missing: install {package} (or run `make setup`)")
    return path


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock file, so that two runs do not build one cache entry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another weft-vm ({path.name})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def machine_slot():
    """Hold one of the machine's slots: as many runs at a time as there are cores (WEFT_VM_SLOTS).

    More emulated machines than cores only make each other run into their time limits.
    """
    slots = int(os.environ.get("WEFT_VM_SLOTS") or os.cpu_count() or 1)
    directory = cache_dir() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        handles = [stack.enter_context(open(directory / f"machine-{i}", "w", encoding="ascii"))
                   for i in range(slots)]
        said = False
        while not any(_try_lock(handle) for handle in handles):
            if not said:
                say(f"waiting for one of {slots} running weft-vm to end (WEFT_VM_SLOTS)")
                said = True
            time.sleep(0.5)
        yield


def _try_lock(handle):
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def clean_environment():
    """Ours without what a calling make hands down: another project's make must not obey it."""
    dropped = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "KDIR")
    return {k: v for k, v in os.environ.items() if k not in dropped}


def run_logged(argv, log, **kwargs):
    """Run a long command with its output in a file; a failure shows the file's end."""
    with open(log, "a", encoding="utf-8", errors="replace") as out:
        out.write(f"+ {' '.join(map(str, argv))}\n")
        out.flush()
        rc = subprocess.run([str(a) for a in argv], stdout=out, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, check=False, env=clean_environment(), **kwargs).returncode
    if rc:
        tail = pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        raise VmError(f"`{' '.join(map(str, argv[:3]))} …` failed with {rc}; end of {log}:\n  "
                      + "\n  ".join(tail))


def output_of(argv, **kwargs):
    """Standard output of a short command; a failure is a refusal with its standard error."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env=clean_environment(), **kwargs)
    if done.returncode:
        raise VmError(f"`{' '.join(map(str, argv))}` failed: {done.stderr.strip()[-600:]}")
    return done.stdout
