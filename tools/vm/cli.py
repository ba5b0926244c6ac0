# SPDX-License-Identifier: MIT
"""Command line of weft-vm."""

import argparse
import signal
import sys
import termios

from . import chroot, debugkernel, headers, kernels, run, util

EPILOG = """\
exit codes of run: COMMAND's own; 120 complaint in the kernel log, 121 leak, 122 the machine
never reported success, 124 time limit, 2 refused."""


def add_run_options(parser):
    parser.add_argument("--kernel", choices=list(kernels.KINDS), default="6.1")
    parser.add_argument("--hosts", type=int, default=1, metavar="N", help="machines on one Ethernet (1-8)")
    parser.add_argument("--smp", type=int, metavar="N", help="vCPUs (default 2)")
    parser.add_argument("--mem", metavar="SIZE", help="memory (default 2G, debug kernel 3G)")
    parser.add_argument("--mtu", type=int, default=1500, help="MTU of eth0 with --hosts (default 1500)")
    parser.add_argument("--icount", action="store_true",
                        help="guest time = instructions executed; one vCPU, repeatable")
    parser.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto")
    parser.add_argument("--timeout", type=float, metavar="S", help="time limit (default 600; debug 1800)")
    parser.add_argument("--no-weft", action="store_true", help="do not load Weft's modules")
    parser.add_argument("--modules", metavar="DIR", help="directory of the .ko files (default build/modules/RELEASE)")
    parser.add_argument("--unload", action="store_true", help="Weft must unload after COMMAND")
    parser.add_argument("--env", action="append", default=[], metavar="K=V",
                        help="variable for COMMAND (WEFT_* are passed by themselves)")
    parser.add_argument("--out", "--share", metavar="DIR",
                        help="host directory that the guest sees writable as $WEFT_OUT; keeps the logs too")
    parser.add_argument("--bind", action="append", default=[], metavar="DIR",
                        help="one more host directory visible at its own path (/tmp, or under 7.3)")
    parser.add_argument("--allow-log", action="append", default=[], metavar="REGEX",
                        help="kernel log lines that do not fail the run")
    parser.add_argument("--log", metavar="FILE", help="write the kernel log there")
    parser.add_argument("--pcap", metavar="FILE", help="capture the Ethernet of --hosts")
    parser.add_argument("--udev", action="store_true", help="run udevd in the guest")
    parser.add_argument("--append", metavar="ARGS", help="more kernel arguments")
    parser.add_argument("-v", "--verbose", action="store_true", help="show QEMU's command and the kernel log live")


def build_parser():
    parser = argparse.ArgumentParser(prog="weft-vm", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Run a command in a virtual machine with Weft's RDMA device.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    add_run_options(verbs.add_parser("run", help="weft-vm run [OPTIONS] -- COMMAND...", epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter))
    add_run_options(verbs.add_parser("shell", help="an interactive prompt in the guest"))
    kernel = verbs.add_parser("kernel", help="list, fetch, build, path, kdir")
    actions = kernel.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="the kernels and what is in the cache")
    for name, text in (("fetch", "bring a kernel into the cache"), ("path", "print the boot file"),
                       ("release", "print the kernel release"),
                       ("kdir", "print the headers directory for `make modules KDIR=`")):
        sub = actions.add_parser(name, help=text)
        sub.add_argument("kernel", choices=list(kernels.KINDS))
        if name == "fetch":
            sub.add_argument("--newest", action="store_true", help="look for a newer package")
    build = actions.add_parser("build", help="build the debug kernel")
    build.add_argument("kernel", choices=["debug"])
    build.add_argument("--jobs", type=int)
    build.add_argument("--force", action="store_true", help="build again")
    inside = verbs.add_parser("chroot", help="weft-vm chroot 7.3 -- COMMAND...: run it in the chroot")
    inside.add_argument("kernel", choices=[k.name for k in kernels.KINDS.values() if k.chroot])
    return parser


def split_command(argv):
    """Words before and after the first `--`."""
    if "--" in argv:
        at = argv.index("--")
        return argv[:at], argv[at + 1:]
    return argv, []


def settle_run_options(args, command):
    """Defaults that depend on other options, and refusals."""
    debug = args.kernel == "debug"
    args.shell = args.verb == "shell"
    args.command = command or (["bash", "-i"] if args.shell else [])
    if not args.command:
        raise util.VmError("run needs a command: weft-vm run [OPTIONS] -- COMMAND...")
    if not 1 <= args.hosts <= 8:
        raise util.VmError(f"--hosts {args.hosts}: 1 to 8")
    if args.shell and args.hosts > 1:
        raise util.VmError("shell drives one host")
    if args.icount and (args.hosts > 1 or (args.smp or 1) > 1 or args.accel == "kvm"):
        raise util.VmError("--icount means one host, one vCPU and TCG")
    if not 68 <= args.mtu <= 9216:
        raise util.VmError(f"--mtu {args.mtu}: 68 to 9216")
    if args.pcap and args.hosts < 2:
        raise util.VmError("--pcap captures the Ethernet of --hosts 2 or more")
    args.smp = 1 if args.icount else args.smp or 2
    args.mem = args.mem or ("3G" if debug else "2G")
    if args.timeout is None:
        args.timeout = float("inf") if args.shell else 1800 if debug else 600
    return args


def do_run(args, command):
    settle_run_options(args, command)
    saved = termios.tcgetattr(sys.stdin) if args.shell and sys.stdin.isatty() else None
    try:
        return run.Run(args).execute()
    finally:
        if saved:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def do_kernel(args):
    if args.action == "list":
        for name, kind in kernels.KINDS.items():
            have = kernels.find_current(name)
            print(f"{name:6} {have.release if have else '-':28} {kind.what}")
    elif args.action == "fetch":
        print(kernels.fetch(args.kernel, args.newest).release)
    elif args.action == "build":
        debugkernel.build(args.jobs, args.force)
    elif args.action == "path":
        print(kernels.get(args.kernel).boot_file)
    elif args.action == "release":
        print(kernels.get(args.kernel).release)
    elif args.action == "kdir":
        print(headers.kdir(args.kernel))
    return 0


def dispatch(argv):
    words, command = split_command(argv)
    args = build_parser().parse_args(words)
    if args.verb in ("run", "shell"):
        return do_run(args, command)
    if args.verb == "chroot":
        return chroot.enter(command)
    return do_kernel(args)


def main(argv):
    """Exit code for the process; every refusal is one line on standard error."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return dispatch(argv)
    except util.VmError as error:
        print(f"weft-vm: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
