# SPDX-License-Identifier: MIT
"""Kernel headers for `make modules KDIR=`: installed ones, unpacked ones, or the debug build."""

import pathlib

from . import debugkernel, kernels, util


def kdir(name):
    kernel = kernels.get(name)
    if kernel.debug:
        return debugkernel.kdir()
    installed = pathlib.Path("/usr/src") / f"linux-headers-{kernel.release}"
    if (installed / "Makefile").exists():
        return installed
    raise util.VmError("no headers")
