# SPDX-License-Identifier: MIT
"""The Debian 13 chroot: guest root and build machine of the newest kernel.

Made by mmdebstrap into the cache: by root directly, by an ordinary user in a user
namespace if the machine allows that. It holds the tools a guest needs, the compiler,
and the headers of the kernel; the kernel image itself is unpacked beside it.
"""

import os
import pathlib
import shlex
import shutil
import subprocess

from . import archive, kernels, util

NAME = "7.3"
PACKAGES = (
    "bash", "coreutils", "util-linux", "procps", "psmisc", "kmod", "udev", "iproute2", "ethtool", "iputils-ping",
    "rdma-core", "ibverbs-utils", "ibverbs-providers", "rdmacm-utils", "perftest", "python3-minimal",
    "python3-pyverbs", "tcpdump", "hostname", "gcc", "binutils", "make", "bc", "libelf1t64", "xz-utils",
    "dwarves", "nftables", "gawk",
)


def home():
    return util.cache_dir() / "chroot" / NAME


def stamp_text(kernel):
    return f"{kernel.release} {' '.join(PACKAGES)}\n"


def get():
    """The chroot's directory, made on first use."""
    kernel = kernels.get(NAME)
    top = home()
    stamp = top.parent / f"{NAME}.stamp"
    with util.locked(util.cache_dir() / "locks" / f"chroot-{NAME}"):
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != stamp_text(kernel):
            make(top, kernel)
            stamp.write_text(stamp_text(kernel), encoding="utf-8")
    return top


def make(top, kernel):
    program = util.need_program("mmdebstrap", "mmdebstrap")
    partial = top.with_name(top.name + ".part")
    for old in (partial, top):
        if old.exists():
            shutil.rmtree(old)
    top.parent.mkdir(parents=True, exist_ok=True)
    mode = "root" if os.geteuid() == 0 else "unshare"
    log = top.parent / f"{NAME}.log"
    util.say(f"making the Debian 13 chroot in {top} (about 2 minutes)")
    packages = ",".join((*PACKAGES, f"linux-headers-{kernel.release}"))
    options = ["--include=" + packages, "--aptopt=Acquire::Retries \"3\"",
               "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"]
    try:
        util.run_logged([program, f"--mode={mode}", "--variant=minbase", *options, "trixie", partial,
                         *archive.entries(kernel.kind.suites)], log)
    except util.VmError as error:
        hint = "" if mode == "root" else "\nmaking the chroot failed as an ordinary user: run this once as root " \
            "with the same XDG_CACHE_HOME"
        raise util.VmError(f"{error}{hint}") from error
    for place in (util.CHECKOUT, kernel.modules):
        (partial / str(place).lstrip("/")).mkdir(parents=True, exist_ok=True)
    os.chmod(partial, 0o755)
    partial.rename(top)


def headers(kernel):
    """KDIR as the chroot sees it."""
    path = pathlib.Path("/usr/src") / f"linux-headers-{kernel.release}"
    if not (get() / str(path).lstrip("/") / "Makefile").exists():
        raise util.VmError(f"the chroot has no {path}")
    return path


def enter(command):
    """Run a command in the chroot, in a mount namespace of its own, with the checkout bound in."""
    if not command:
        raise util.VmError("chroot needs a command: weft-vm chroot 7.3 -- COMMAND...")
    top = get()
    cwd = os.getcwd()
    places = [str(util.CHECKOUT)]
    if not (cwd + "/").startswith(str(util.CHECKOUT) + "/"):
        places.append(cwd)
    steps = ["set -e"]
    for source in ("/proc", "/dev", "/sys", *places):
        target = shlex.quote(str(top) + source)
        steps.append(f"mkdir -p {target}; mount --rbind {shlex.quote(source)} {target}")
    inner = f"cd {shlex.quote(cwd)} && exec {shlex.join(command)}"
    # HOME and PATH of the host mean nothing in there.
    steps.append(f"exec chroot {shlex.quote(str(top))} /usr/bin/env -u MAKEFLAGS -u MAKELEVEL HOME=/root "
                 f"PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 /bin/sh -c {shlex.quote(inner)}")
    namespace = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        namespace = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    return subprocess.run([*namespace, "/bin/sh", "-c", "\n".join(steps)], check=False).returncode
