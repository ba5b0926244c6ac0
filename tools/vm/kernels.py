# SPDX-License-Identifier: MIT
"""Kernels that weft-vm can boot: fetched from the archive, unpacked in the cache, never installed."""

import dataclasses
import lzma
import pathlib
import re
import shutil

from . import archive, debugkernel, util

HOST_SUITES = ("bookworm", "bookworm-updates", "bookworm-security")
LTS_SUITES = ("bookworm-backports", "bookworm-security")
NEW_SUITES = ("trixie", "trixie-backports")


@dataclasses.dataclass(frozen=True)
class Kind:
    """One value of --kernel: where its packages are and what its guest root is."""
    name: str
    suites: tuple
    pattern: str
    chroot: bool
    what: str


KINDS = {
    kind.name: kind for kind in (
        Kind("6.1", HOST_SUITES, r"linux-image-6\.1\.0-\d+-amd64", False, "Debian 12's stock kernel"),
        Kind("6.12", LTS_SUITES, r"linux-image-6\.12\.\d+\+(deb12|bpo)(\.\d+)?-amd64", False,
             "Debian 12 backports or security"),
        Kind("7.3", NEW_SUITES, r"linux-image-7\.3\.\d+\+deb13(\.\d+)?-amd64", True,
             "Debian 13 backports, guest root is a Debian 13 chroot"),
        Kind("debug", (), "", False, "6.1 with KASAN, lockdep, kmemleak, fault injection"),
    )
}


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel that is ready to boot."""
    kind: Kind
    release: str
    vmlinuz: pathlib.Path
    modules: pathlib.Path       #: .../lib/modules/<release>

    @property
    def debug(self):
        return self.kind.name == "debug"

    @property
    def boot_file(self):
        """What QEMU loads: the unpacked ELF file where it exists (saves its decompression)."""
        elf = self.vmlinuz.parent / f"vmlinux-{self.release}"
        return elf if elf.exists() else self.vmlinuz


def kind_of(name):
    if name not in KINDS:
        raise util.VmError(f"unknown kernel '{name}': one of {', '.join(KINDS)}")
    return KINDS[name]


def home(name):
    return util.cache_dir() / "kernels" / name


def installed_headers(pattern):
    """The newest release in /usr/src whose headers are installed on this machine."""
    image = re.compile(pattern)
    found = [p.name.removeprefix("linux-headers-") for p in pathlib.Path("/usr/src").glob("linux-headers-*")
             if image.fullmatch(p.name.replace("linux-headers-", "linux-image-"))]
    return max(found, key=archive.version_key, default=None)


def find(name):
    """The kernel if it is in the cache, else None."""
    kind = kind_of(name)
    if name == "debug":
        top = debugkernel.built()
        if not top:
            return None
        release = (top / "release").read_text(encoding="ascii").strip()
        return Kernel(kind, release, top / f"vmlinuz-{release}", top / "root/lib/modules" / release)
    current = home(name) / "current"
    if not current.exists():
        return None
    release = current.read_text(encoding="ascii").strip()
    top = home(name) / release
    vmlinuz = top / "boot" / f"vmlinuz-{release}"
    for modules in (top / "lib/modules" / release, top / "usr/lib/modules" / release):
        if vmlinuz.exists() and (modules / "modules.dep.bin").exists():
            return Kernel(kind, release, vmlinuz, modules)
    return None


def unpack_elf(vmlinuz, target):
    """Write the ELF kernel that a bzImage carries, if it is xz-compressed and can boot by PVH."""
    data = vmlinuz.read_bytes()
    at = data.find(b"\xfd7zXZ\x00")
    if at < 0:
        return
    try:
        elf = lzma.LZMADecompressor().decompress(data[at:])
    except lzma.LZMAError:
        return
    if elf.startswith(b"\x7fELF"):
        partial = target.with_suffix(".part")
        partial.write_bytes(elf)
        partial.rename(target)


def fetch(name, newest=False):
    """Bring a kernel into the cache (build it, for the debug one) and return it."""
    kind = kind_of(name)
    if name == "debug":
        debugkernel.build()
        return find(name)
    with util.locked(util.cache_dir() / "locks" / f"kernel-{name}"):
        have = find(name)
        pinned = installed_headers(kind.pattern)
        if have and not newest and (kind.chroot or pinned in (None, have.release)):
            return have
        apt = archive.Apt(kind.suites)
        package = f"linux-image-{pinned}" if pinned and not kind.chroot else apt.newest(kind.pattern)
        return _unpack(kind, apt, package)


def _unpack(kind, apt, package):
    release = package.removeprefix("linux-image-")
    top = home(kind.name) / release
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    apt.unpack(package, top)
    usr = top / "usr/lib/modules" / release
    modules = usr if usr.exists() else top / "lib/modules" / release
    if not modules.exists():
        for dependency in apt.depends(package):
            if dependency.startswith(("linux-modules-", "linux-binary-", "linux-base-")):
                apt.unpack(dependency, top)
        modules = usr if usr.exists() else top / "lib/modules" / release
    if not modules.exists():
        raise util.VmError(f"{package} brought no modules directory")
    base = modules.parent.parent.parent
    util.output_of([util.need_program("depmod", "kmod"), "-b", base, release])
    if not (modules / "modules.dep.bin").exists():
        raise util.VmError(f"depmod wrote no index in {modules}")
    vmlinuz = top / "boot" / f"vmlinuz-{release}"
    if not vmlinuz.exists():
        # Newer packages keep the image beside the modules.
        vmlinuz.parent.mkdir(exist_ok=True)
        shutil.copyfile(modules / "vmlinuz", vmlinuz)
    unpack_elf(vmlinuz, vmlinuz.parent / f"vmlinux-{release}")
    (home(kind.name) / "current").write_text(release + "\n", encoding="ascii")
    util.say(f"kernel {release} ready in {top}")
    return find(kind.name)


def get(name):
    """The kernel, fetched on first use."""
    return find_current(name) or fetch(name)


def find_current(name):
    """As find(), but a stock kernel must still match the machine's installed headers."""
    have = find(name)
    if have and name != "debug" and not have.kind.chroot:
        pinned = installed_headers(have.kind.pattern)
        if pinned and pinned != have.release:
            return None
    return have
