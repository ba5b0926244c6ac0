# SPDX-License-Identifier: MIT
"""Build of the debug kernel (KASAN, lockdep, kmemleak, fault injection) into the cache.

The build directory stays: it is the KDIR of `make modules` for this kernel. A stamp
holds the hash of the configuration and of the source package, so a change of either
builds again and nothing else does.
"""

import glob
import hashlib
import os
import pathlib
import shutil
import time

from . import util

FRAGMENT = util.HERE / "debug-kernel.config"


def home():
    return util.cache_dir() / "kernels" / "debug"


def source_tarball():
    found = sorted(glob.glob("/usr/src/linux-source-6.1.tar.*"))
    return pathlib.Path(found[0]) if found else None


def wanted_stamp():
    """None when there is no source package, so that a finished build stays usable."""
    tarball = source_tarball()
    if not tarball:
        return None
    stat = tarball.stat()
    digest = hashlib.sha256(FRAGMENT.read_bytes())
    digest.update(f"{stat.st_size} {int(stat.st_mtime)}".encode())
    return digest.hexdigest()


def built():
    """The finished build's directory, or None."""
    stamp = home() / "stamp"
    if not stamp.exists():
        return None
    wanted = wanted_stamp()
    if wanted and stamp.read_text(encoding="ascii").strip() != wanted:
        return None
    return home()


def kdir():
    return home() / "linux-source-6.1"


def lost_lines(config):
    """Lines of the fragment that the configuration did not keep."""
    have = set(config.read_text(encoding="ascii").splitlines())
    lost = []
    for line in FRAGMENT.read_text(encoding="ascii").splitlines():
        if not line.startswith("CONFIG_"):
            continue
        name, value = line.split("=", 1)
        kept = f"# {name} is not set" in have if value == "n" else line in have
        if value == "n" and not any(x.startswith(name + "=") for x in have):
            kept = True
        if not kept:
            lost.append(line)
    return lost


def configure(src, log):
    util.run_logged(["make", "-C", src, "allnoconfig"], log)
    util.run_logged(["scripts/kconfig/merge_config.sh", "-m", ".config", FRAGMENT], log, cwd=src)
    util.run_logged(["make", "-C", src, "olddefconfig"], log)
    lost = lost_lines(src / ".config")
    if lost:
        raise util.VmError("the debug kernel's configuration lost: " + ", ".join(lost))


def build(jobs=None, force=False):
    with util.locked(util.cache_dir() / "locks" / "debug"):
        if built() and not force:
            return home()
        return _build(jobs or os.cpu_count() or 1)


def _build(jobs):
    tarball = source_tarball()
    if not tarball:
        raise util.VmError("no /usr/src/linux-source-6.1.tar.xz: install linux-source-6.1 (or run `make setup`)")
    for program, package in (("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("gcc", "gcc"), ("make", "make")):
        util.need_program(program, package)
    top, src = home(), kdir()
    start = time.monotonic()
    top.mkdir(parents=True, exist_ok=True)
    log = top / "build.log"
    log.unlink(missing_ok=True)
    (top / "stamp").unlink(missing_ok=True)
    if src.exists():
        shutil.rmtree(src)
    util.say(f"building the debug kernel in {top} with {jobs} jobs (about 8 minutes on two idle cores)")
    util.run_logged(["tar", "-xf", tarball, "-C", top], log)
    configure(src, log)
    util.run_logged(["make", "-C", src, f"-j{jobs}", "bzImage", "modules"], log)
    release = util.output_of(["make", "-s", "-C", src, "kernelrelease"]).strip()
    shutil.rmtree(top / "root", ignore_errors=True)
    util.run_logged(["make", "-C", src, f"INSTALL_MOD_PATH={top / 'root'}", "modules_install"], log)
    shutil.copyfile(src / "arch/x86/boot/bzImage", top / f"vmlinuz-{release}")
    (top / "release").write_text(release + "\n", encoding="ascii")
    (top / "stamp").write_text(wanted_stamp() + "\n", encoding="ascii")
    util.say(f"debug kernel {release} ready after {time.monotonic() - start:.0f} s")
    return top
