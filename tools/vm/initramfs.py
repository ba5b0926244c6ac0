# SPDX-License-Identifier: MIT
"""The initramfs: busybox, the modules that reach the 9p root, and the guest scripts."""

import hashlib
import lzma
import pathlib
import stat
import time
import subprocess

from . import util

KEEP_SECONDS = 86400
GUEST = util.HERE / "guest"
#: What a guest needs before its root is there; what the kernel has built in is left out.
EARLY_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "virtio_net")


def dependency_map(modules):
    """Module name -> (file, names it needs), from modules.dep."""
    table = {}
    for line in (modules / "modules.dep").read_text(encoding="utf-8").splitlines():
        path, needs = line.split(":", 1)
        table[module_name(path)] = (path, [module_name(n) for n in needs.split()])
    return table


def module_name(path):
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def early_order(modules):
    """Files of the early modules below the modules directory, in loading order."""
    table = dependency_map(modules)
    order = []

    def add(name):
        if name not in table:
            return
        path, needs = table[name]
        for need in reversed(needs):
            if table.get(need, ("",))[0] not in order:
                add(need)
        if path not in order:
            order.append(path)

    for name in EARLY_MODULES:
        add(name)
    return order


def read_module(path):
    """The bytes of a module, decompressed: busybox inserts plain files only."""
    if path.name.endswith(".xz"):
        return lzma.decompress(path.read_bytes())
    if path.name.endswith(".zst"):
        return subprocess.run([util.need_program("zstd", "zstd"), "-dcq", str(path)], check=True,
                              capture_output=True).stdout
    return path.read_bytes()


class Cpio:
    """A writer of the newc format, which the kernel unpacks."""

    def __init__(self):
        self.parts = []
        self.inode = 0

    def add(self, name, mode, data=b""):
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + raw
        self.parts.append(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def directory(self, name):
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name, data, mode=0o644):
        self.add(name, stat.S_IFREG | mode, data)

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def build(kernel):
    """The initramfs of a kernel, made again only when something in it changed."""
    busybox = pathlib.Path(util.need_program("busybox", "busybox-static"))
    order = early_order(kernel.modules)
    digest = hashlib.sha256(busybox.read_bytes())
    scripts = sorted(GUEST.iterdir())
    for path in [pathlib.Path(__file__), *scripts, *(kernel.modules / m for m in order)]:
        digest.update(path.name.encode() + path.read_bytes())
    target = util.cache_dir() / "initramfs" / f"{kernel.release}-{digest.hexdigest()[:16]}.cpio"
    if target.exists():
        return target
    target.parent.mkdir(exist_ok=True)
    for old in target.parent.glob(f"{kernel.release}-*.cpio"):
        # Another run may be about to boot a young one.
        if old.stat().st_mtime < time.time() - KEEP_SECONDS:
            old.unlink(missing_ok=True)
    cpio = Cpio()
    for name in ("bin", "modules", "guest", "proc", "sys", "dev", "host", "base", "ovl", "src"):
        cpio.directory(name)
    cpio.add("dev/console", stat.S_IFCHR | 0o600)
    cpio.file("bin/busybox", busybox.read_bytes(), 0o755)
    names = [f"{module_name(m)}.ko" for m in order]
    for path, name in zip(order, names):
        cpio.file(f"modules/{name}", read_module(kernel.modules / path))
    cpio.file("modules/order", "".join(n + "\n" for n in names).encode())
    for path in scripts:
        cpio.file(f"guest/{path.name}", path.read_bytes(), 0o755)
    cpio.file("init", (GUEST / "init").read_bytes(), 0o755)
    cpio.file("probe", (GUEST / "probe").read_bytes(), 0o755)
    partial = target.with_suffix(".part")
    partial.write_bytes(cpio.bytes())
    partial.rename(target)
    return target
