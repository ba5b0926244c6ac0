# SPDX-License-Identifier: MIT
"""Build of the debug kernel (KASAN, lockdep, kmemleak, fault injection) into the cache.

The build directory stays: it is the KDIR of `make modules` for this kernel. It is named
by a hash of the configuration and of the source package, so a change of either builds
beside it; the older ones go only when the new one is complete.
"""

import glob
import hashlib
import os
import pathlib
import shutil
import time

from . import util

FRAGMENT = util.HERE / "debug-kernel.config"
#: Counts up when the steps below change what comes out.
RECIPE = 2
#: The kmemleak scanner runs over every word of memory: without KASAN's checks it is ten times quicker.
MAKE_VARIABLES = ("KASAN_SANITIZE_kmemleak.o=n", "UBSAN_SANITIZE_kmemleak.o=n")
SOURCE = "linux-source-6.1"
#: x86 tells kmemleak of KASAN's shadow (an eighth of the memory), which then scans it; other architectures do not.
SHADOW_FILE = "arch/x86/mm/kasan_init_64.c"


def home():
    return util.cache_dir() / "kernels" / "debug"


def source_tarball():
    found = sorted(glob.glob("/usr/src/linux-source-6.1.tar.*"))
    return pathlib.Path(found[0]) if found else None


def wanted():
    """Name of the build for this tree and source package; None when there is no source package."""
    tarball = source_tarball()
    if not tarball:
        return None
    stat = tarball.stat()
    digest = hashlib.sha256(FRAGMENT.read_bytes())
    digest.update(f"{RECIPE} {stat.st_size} {int(stat.st_mtime)}".encode())
    return digest.hexdigest()[:12]


def built():
    """The directory of the finished build, or None. Without a source package the newest one stays usable."""
    name = wanted()
    if name:
        return home() / name if (home() / name / "complete").exists() else None
    done = sorted(home().glob("*/complete"), key=lambda p: p.stat().st_mtime)
    return done[-1].parent if done else None


def kdir():
    return built() / SOURCE


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


def hide_shadow(src):
    path = src / SHADOW_FILE
    text = path.read_text(encoding="utf-8")
    if "MEMBLOCK_ALLOC_ACCESSIBLE" not in text:
        raise util.VmError(f"{path} allocates its shadow in another way than expected")
    path.write_text(text.replace("MEMBLOCK_ALLOC_ACCESSIBLE", "MEMBLOCK_ALLOC_NOLEAKTRACE"), encoding="utf-8")


def build(jobs=None, force=False):
    with util.locked(util.cache_dir() / "locks" / "debug"):
        if not built() or force:
            _build(jobs or os.cpu_count() or 1)
        return built()


def _build(jobs):
    tarball = source_tarball()
    if not tarball:
        raise util.VmError("no /usr/src/linux-source-6.1.tar.xz: install linux-source-6.1 (or run `make setup`)")
    for program, package in (("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("gcc", "gcc"), ("make", "make")):
        util.need_program(program, package)
    top = home() / wanted()
    src = top / SOURCE
    log = top / "build.log"
    start = time.monotonic()
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    util.say(f"building the debug kernel in {top} with {jobs} jobs (about 8 minutes on two idle cores)")
    util.run_logged(["tar", "-xf", tarball, "-C", top], log)
    hide_shadow(src)
    configure(src, log)
    util.run_logged(["make", "-C", src, f"-j{jobs}", *MAKE_VARIABLES, "bzImage", "modules"], log)
    release = util.output_of(["make", "-s", "-C", src, "kernelrelease"]).strip()
    util.run_logged(["make", "-C", src, f"INSTALL_MOD_PATH={top / 'root'}", "modules_install"], log)
    shutil.copyfile(src / "arch/x86/boot/bzImage", top / f"vmlinuz-{release}")
    (top / "release").write_text(release + "\n", encoding="ascii")
    (top / "complete").touch()
    util.say(f"debug kernel {release} ready after {time.monotonic() - start:.0f} s")
    for old in home().iterdir():
        if old != top:
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
