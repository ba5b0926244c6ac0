# SPDX-License-Identifier: MIT
"""QEMU's command line, and the choice of the accelerator by a real probe boot."""

import pathlib
import subprocess

from . import util

PROGRAM = "qemu-system-x86_64"
PROBE_SECONDS = 2
#: q35 gives its interrupt routing as a static table; interpreting the older `pc` one takes a debug kernel minutes.
MACHINE = "q35,sata=off,smbus=off,vmport=off"
KERNEL_ARGS = ("console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off nokaslr random.trust_cpu=on "
               "net.ifnames=0 audit=0 apparmor=0 watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60 "
               "sysctl.kernel.hung_task_timeout_secs=60")
#: TCG's CPUs have one time stamp counter, which Linux would not trust with two: each look at the HPET leaves the CPU.
KERNEL_ARGS_TCG = " tsc=reliable"


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def kvm_works(kernel, initrd):
    """Whether KVM boots this machine's guest within two seconds; asked once per boot of the host."""
    if not pathlib.Path("/dev/kvm").exists():
        return False
    memo = util.cache_dir() / "kvm-probe"
    known = memo.read_text(encoding="ascii").split() if memo.exists() else []
    if len(known) == 2 and known[0] == boot_id():
        return known[1] == "yes"
    argv = [util.need_program(PROGRAM, "qemu-system-x86"), "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-accel", "kvm", "-cpu", "host", "-m", "512", "-kernel", str(kernel.boot_file),
            "-initrd", str(initrd), "-append", "console=ttyS0 quiet panic=-1 nokaslr rdinit=/probe",
            "-serial", "stdio"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PROBE_SECONDS)
        alive = b"weft-probe-alive" in done.stdout
    except subprocess.TimeoutExpired as late:
        alive = b"weft-probe-alive" in (late.stdout or b"")
    memo.write_text(f"{boot_id()} {'yes' if alive else 'no'}\n", encoding="ascii")
    return alive


def choose_accel(wanted, kernel, initrd):
    if wanted != "auto":
        return wanted
    return "kvm" if kvm_works(kernel, initrd) else "tcg"


def accel_args(accel, icount, hosts):
    if icount:
        return ["-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,align=off,sleep=off",
                "-cpu", "max,-erms,-fsrm"]
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    tb_size = 512 if hosts == 1 else 256
    return ["-accel", f"tcg,thread=multi,tb-size={tb_size}", "-cpu", "max,-erms,-fsrm"]


def smp_arg(accel, icount, cpus):
    """
    TCG leaves out the guest's memory barriers where there can be one CPU only, also those between it and the
    devices: a virtqueue's kick then gets lost once in a while, and the queue stands still.
    """
    return f"{cpus},maxcpus={max(cpus, 2)}" if accel == "tcg" and not icount else str(cpus)


def share_args(tag, path, readonly):
    """A 9p share; commas in a path are doubled for QEMU's option parser."""
    escaped = str(path).replace(",", ",,")
    extra = ",readonly=on" if readonly else ""
    return ["-virtfs", f"local,path={escaped},mount_tag={tag},security_model=none,multidevs=remap{extra}"]


def port_args(name, number):
    return ["-device", f"virtserialport,chardev={name},name=weft.{name},nr={number}"]


def command(spec, fds):
    """argv of one machine. fds: chardev name -> file descriptor number; `net` is the hub's."""
    kernel, options = spec.kernel, spec.options
    args = [util.need_program(PROGRAM, "qemu-system-x86"), "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-machine", MACHINE, "-name", f"weft-h{spec.host}", "-m", options.mem,
            "-smp", smp_arg(spec.accel, options.icount, options.smp)]
    args += accel_args(spec.accel, options.icount, options.hosts)
    append = KERNEL_ARGS + (KERNEL_ARGS_TCG if spec.accel == "tcg" else "")
    append += " weft.chroot=1" if kernel.kind.chroot else ""
    args += ["-kernel", str(kernel.boot_file), "-initrd", str(spec.initrd),
             "-append", f"{append} {options.append or ''}".strip()]
    for name, fd in fds.items():
        if name != "net":
            args += ["-chardev", f"socket,id={name},fd={fd}"]
    ports = [name for name in fds if name not in ("net", "console")]
    # Each port that could be there has two queues, and QEMU polls a descriptor for each before it handles a frame:
    # ours, number 0, which only a console may have, and the shell's.
    args += ["-serial", "chardev:console", "-device", f"virtio-serial-pci,max_ports={len(ports) + 2}"]
    for number, name in enumerate(ports, start=1):
        args += port_args(name, number)
    if options.shell:
        args += ["-chardev", "stdio,id=tty,signal=off", "-device", "virtconsole,chardev=tty"]
    args += share_args("host", "/", True)
    if kernel.kind.chroot:
        args += share_args("root", spec.chroot, True)
    args += share_args("job", spec.job, False) + share_args("out", spec.out, False)
    if "net" in fds:
        mac = f"52:54:00:77:65:{spec.host + 1:02x}"
        args += ["-netdev", f"stream,id=net,server=off,addr.type=fd,addr.str={fds['net']}",
                 "-device", f"virtio-net-pci,netdev=net,mac={mac},host_mtu=9216,romfile="]
    return args
