# SPDX-License-Identifier: MIT
"""Kernel headers for `make modules KDIR=`: installed ones, unpacked ones, or the debug build.

Debian splits headers into three packages that find each other by absolute path
(the Makefile's include) and by relative links (scripts, tools): unpacked side by side
below one directory the links hold, and the include is rewritten.
"""

import pathlib
import shutil

from . import archive, chroot, debugkernel, kernels, util


def kdir(name):
    """The directory to give as KDIR. For a chroot kernel it is a path inside the chroot."""
    kernel = kernels.get(name)
    if kernel.debug:
        return debugkernel.kdir()
    if kernel.kind.chroot:
        return chroot.headers(kernel)
    installed = pathlib.Path("/usr/src") / f"linux-headers-{kernel.release}"
    if (installed / "Makefile").exists():
        return installed
    return unpacked(kernel)


def unpacked(kernel):
    top = kernels.home(kernel.kind.name) / "headers" / kernel.release
    target = top / "usr/src" / f"linux-headers-{kernel.release}"
    with util.locked(util.cache_dir() / "locks" / f"headers-{kernel.kind.name}"):
        if not (top / "complete").exists():
            unpack(kernel, top, target)
            (top / "complete").touch()
    return target


def unpack(kernel, top, target):
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    apt = archive.Apt(kernel.kind.suites)
    package = f"linux-headers-{kernel.release}"
    apt.unpack(package, top)
    for dependency in apt.depends(package):
        if dependency.startswith(("linux-headers-", "linux-kbuild-")):
            apt.unpack(dependency, top)
    makefile = target / "Makefile"
    if not makefile.exists():
        raise util.VmError(f"{package} brought no {makefile}")
    makefile.write_text(makefile.read_text(encoding="utf-8").replace("/usr/src/", f"{top}/usr/src/"),
                        encoding="utf-8")
    if not (target / "scripts").exists():
        raise util.VmError(f"{package}: its scripts link leads nowhere in {top}")
