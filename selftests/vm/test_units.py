# SPDX-License-Identifier: MIT
"""Tests of the runner's parts that need no machine: log judgement, apt sources, hub, barrier, binds."""

import pathlib
import socket
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from vm import archive, barrier, hub, initramfs, kernels, logscan, run  # noqa: E402

COMPLAINTS = """\
[    9.1] WARNING: CPU: 1 PID: 77 at drivers/net/x.c:5 f+0x1/0x2 [x]
[    9.1] WARNING: possible circular locking dependency detected
[    9.1] WARNING: suspicious RCU usage
[    9.1] BUG: KASAN: use-after-free in f+0x1/0x2
[    9.1] BUG: unable to handle page fault for address: ffff
[    9.1] BUG: sleeping function called from invalid context at mm/x.c:1
[    9.1] kernel BUG at mm/slub.c:1!
[    9.1] Oops: 0000 [#1] PREEMPT SMP
[    9.1] general protection fault, probably for non-canonical address 0x1: 0000
[    9.1] UBSAN: shift-out-of-bounds in x.c:1:2
[    9.1] INFO: task rmmod:88 blocked for more than 60 seconds.
[    9.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[    9.1] INFO: trying to register non-static key.
[    9.1] refcount_t: underflow; use-after-free.
[    9.1] ODEBUG: free active (active state 0) object type: timer_list
[    9.1] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
[    9.1] unregister_netdevice: waiting for eth0 to become free. Usage count = 2
[    9.1] leaked reference.
[    9.1] list_del corruption. prev->next should be ffff
[    9.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!
[    9.1] Kernel panic - not syncing: Fatal exception
[    9.1] test: page allocation failure: order:0, mode:0xcc0
""".splitlines()

HARMLESS = """\
[    0.0] tsc: Unable to calibrate against PIT
[    0.7] mtrr: your CPUs had inconsistent fixed MTRR settings
[    3.3] 9pnet: Limiting 'msize' to 512000 as this is the maximum supported by transport virtio
[    4.0] traps: prog[12] general protection fault ip:401000 sp:7ffc error:0 in prog[401000+1000]
[    4.1] hrtimer: interrupt took 9128110 ns
[    4.2] weft_core: loaded
[    4.3] kmemleak: Kernel memory leak detector initialized (mem pool available: 15000)
[    4.4] debug: unmapping init memory
[    4.5] Warning: unable to open an initial console.
""".splitlines()


class LogJudgement(unittest.TestCase):
    def test_each_complaint_alone_is_seen(self):
        for line in COMPLAINTS:
            self.assertEqual(logscan.complaints([line]), [0], line)

    def test_harmless_lines_pass(self):
        self.assertEqual(logscan.complaints(HARMLESS), [])

    def test_allowed_is_only_what_matches(self):
        hits = logscan.complaints(COMPLAINTS, [r"refcount_t: underflow", r"KASAN: use-after-free in f"])
        self.assertEqual(len(hits), len(COMPLAINTS) - 2)

    def test_excerpt_takes_the_block(self):
        log = ["[ 1.0] a", "[ 1.1] WARNING: CPU: 0", "[ 1.1] Call Trace:", "[ 1.1]  f+1",
               "[ 1.1] ---[ end trace 0 ]---", "[ 1.2] b"]
        self.assertEqual(logscan.excerpt(log, [1]), log[1:4])


class AptSources(unittest.TestCase):
    def test_both_formats(self):
        one = "# x\ndeb [signed-by=/k] http://a/debian/ bookworm main\ndeb-src http://a/debian bookworm main\n"
        self.assertEqual(archive.parse_one_line(one), [archive.Source("http://a/debian", "bookworm")])
        deb822 = ("Types: deb\n# note\nURIs: http://b/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n"
                  "Enabled: no\nTypes: deb\nURIs: http://c\nSuites: sid\n\nTypes: deb-src\nURIs: http://d\nSuites: s\n")
        self.assertEqual(archive.parse_deb822(deb822), [archive.Source("http://b/debian", "bookworm"),
                                                        archive.Source("http://b/debian", "bookworm-updates")])

    def test_files_of_a_directory(self):
        with tempfile.TemporaryDirectory() as etc:
            place = pathlib.Path(etc)
            (place / "sources.list").write_text("deb http://a/debian trixie main\n")
            (place / "sources.list.d").mkdir()
            (place / "sources.list.d/x.sources").write_text("Types: deb\nURIs: http://b\nSuites: t\n")
            (place / "sources.list.d/x.sources.off").write_text("Types: deb\nURIs: http://c\nSuites: t\n")
            self.assertEqual([s.uri for s in archive.machine_sources(etc)], ["http://a/debian", "http://b"])

    def test_newest_is_numeric(self):
        self.assertEqual(max(["linux-image-6.12.9-amd64", "linux-image-6.12.117-amd64"], key=archive.version_key),
                         "linux-image-6.12.117-amd64")


class Frames(unittest.TestCase):
    def setUp(self):
        self.hub = hub.Hub(3)
        self.hub.start()
        self.ports = self.hub.qemu_ends
        for port in self.ports:
            port.settimeout(5)

    def tearDown(self):
        self.hub.stop()
        for port in self.ports:
            port.close()

    @staticmethod
    def frame(target, source, size=60):
        return bytes([2, 0, 0, 0, 0, target]) + bytes([2, 0, 0, 0, 0, source]) + b"\x88\xb5" + bytes(size - 14)

    def send(self, port, *frames):
        """As QEMU does it: all at once."""
        self.ports[port].sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    def take(self, port, size):
        data = b""
        while len(data) < size:
            data += self.ports[port].recv(size - len(data))
        return data

    def receive(self, port):
        return self.take(port, int.from_bytes(self.take(port, 4), "big"))

    def silent(self, port):
        self.ports[port].settimeout(0.2)
        with self.assertRaises(TimeoutError):
            self.ports[port].recv(65536)
        self.ports[port].settimeout(5)

    def test_unknown_is_flooded_and_known_is_not(self):
        self.send(0, self.frame(3, 1))
        self.assertEqual(self.receive(1), self.frame(3, 1))
        self.assertEqual(self.receive(2), self.frame(3, 1))
        self.send(2, self.frame(1, 3, 9014))
        self.assertEqual(self.receive(0), self.frame(1, 3, 9014))
        self.silent(1)
        self.silent(2)

    def test_broadcast_goes_to_the_others(self):
        data = b"\xff" * 6 + self.frame(1, 1)[6:]
        self.send(1, data)
        self.assertEqual(self.receive(0), data)
        self.assertEqual(self.receive(2), data)
        self.silent(1)

    def test_many_at_once_and_one_in_pieces(self):
        frames = [self.frame(2, 1, size) for size in (60, 1514, 9014, 61)]
        self.send(0, *frames)
        self.assertEqual([self.receive(1) for _ in frames], frames)
        text = (2000).to_bytes(4, "big") + self.frame(2, 1, 2000)
        for piece in (text[:2], text[2:9], text[9:1900], text[1900:]):
            self.ports[0].sendall(piece)
            time.sleep(0.02)
        self.assertEqual(self.receive(1), self.frame(2, 1, 2000))

    def test_what_is_no_frame_ends_the_port_alone(self):
        self.learn()
        self.ports[2].sendall(b"\xff" * 100)
        self.send(0, self.frame(2, 1))
        self.assertEqual(self.receive(1), self.frame(2, 1))

    def learn(self):
        """The hub knows both; port 1 has just taken a frame."""
        self.send(1, self.frame(255, 2))
        self.receive(0)
        self.receive(2)
        self.send(0, self.frame(2, 1))
        self.receive(1)

    def send_numbers(self, first, most):
        """From port 0 to port 1, until there is no room; the number behind the last one, and what is left of that."""
        self.ports[0].settimeout(0.3)
        for number in range(first, most):
            frame = self.frame(2, 1, 4000) + number.to_bytes(4, "big")
            text = len(frame).to_bytes(4, "big") + frame
            while text:
                try:
                    text = text[self.ports[0].send(text):]
                except TimeoutError:
                    return number + 1, text
        return most, b""

    def take_numbers(self, count):
        return [int.from_bytes(self.receive(1)[-4:], "big") for _ in range(count)]

    def test_slow_receiver_pauses_the_sender(self):
        self.learn()
        most = 4 * hub.QUEUE_BYTES // 4000
        end, rest = self.send_numbers(0, most)
        # As many more as the sockets hold.
        self.assertLess(end * 4000, hub.QUEUE_BYTES / 2)
        # What is taken makes room, and nothing was lost.
        self.assertEqual(self.take_numbers(end - 1), list(range(end - 1)))
        self.ports[0].sendall(rest)
        self.assertEqual(self.send_numbers(end, end + 20), (end + 20, b""))
        self.assertEqual(self.take_numbers(21), list(range(end - 1, end + 20)))
        self.assertEqual(self.hub.dropped, 0)

    def test_paused_sender_still_receives(self):
        self.learn()
        self.send_numbers(0, 4 * hub.QUEUE_BYTES // 4000)
        self.send(1, self.frame(1, 2))
        self.ports[0].settimeout(5)
        self.assertEqual(self.receive(0), self.frame(1, 2))

    def test_rests_between_looks_at_bulk_only(self):
        with unittest.mock.patch.object(hub.time, "sleep") as rest:
            self.learn()
            rest.assert_not_called()
            self.send(0, *[self.frame(2, 1, 4000)] * 40)
            self.assertEqual([self.receive(1) for _ in range(40)], [self.frame(2, 1, 4000)] * 40)
            self.lone()
            rest.assert_called_with(hub.REST_SECONDS)
            rest.reset_mock()
            # When the second one is here, the hub has looked again behind the first one.
            self.lone()
            self.lone()
            rest.assert_not_called()

    def lone(self):
        self.send(0, self.frame(2, 1))
        self.assertEqual(self.receive(1), self.frame(2, 1))

    def test_no_frame_ends_the_port_and_is_said(self):
        with unittest.mock.patch.object(hub.util, "say") as said:
            self.learn()
            self.ports[0].sendall(b"\xff" * 8)
            self.send(1, self.frame(255, 2))
            self.receive(2)
        said.assert_called_once()
        self.assertIn("h0", said.call_args[0][0])

    def test_stuck_receiver_pauses_nobody(self):
        with unittest.mock.patch.object(hub, "STUCK_SECONDS", 0.1):
            self.learn()
            time.sleep(0.2)
            most = 2 * hub.QUEUE_BYTES // 4000
            self.assertEqual(self.send_numbers(0, most), (most, b""))
            kept = hub.QUEUE_BYTES // 4100
            self.assertEqual(self.take_numbers(kept), list(range(kept)))
            self.assertGreater(self.hub.dropped, 0)


class FakeMachine:
    def __init__(self, host):
        self.host, self.name = host, f"h{host}"
        ours, self.guest = socket.socketpair()
        self.sockets = {"barrier": ours}
        self.command_done = False
        self.open = {"console"}
        self.guest.setblocking(False)

    def answer(self):
        try:
            return self.guest.recv(100)
        except BlockingIOError:
            return None

    def close(self):
        self.guest.close()
        self.sockets["barrier"].close()


class BarrierRules(unittest.TestCase):
    def setUp(self):
        self.machines = [FakeMachine(0), FakeMachine(1)]
        self.barriers = barrier.Barriers(self.machines)

    def tearDown(self):
        for each in self.machines:
            each.close()

    def test_opens_when_all_are_there(self):
        self.barriers.feed(self.machines[0], b"a 1")
        self.barriers.feed(self.machines[0], b"0\n")
        self.barriers.tick()
        self.assertIsNone(self.machines[0].answer())
        self.barriers.feed(self.machines[1], b"a 10\n")
        self.assertEqual([m.answer() for m in self.machines], [b"ok\n", b"ok\n"])

    def test_names_do_not_mix(self):
        self.barriers.feed(self.machines[0], b"a 10\n")
        self.barriers.feed(self.machines[1], b"b 10\n")
        self.assertEqual([m.answer() for m in self.machines], [None, None])

    def test_time_and_ended_peers_fail_it(self):
        self.barriers.feed(self.machines[0], b"a 0.01\n")
        time.sleep(0.05)
        self.barriers.tick()
        self.assertEqual(self.machines[0].answer(), b"time is over\n")
        self.machines[1].command_done = True
        self.barriers.feed(self.machines[0], b"b 100\n")
        self.barriers.tick()
        self.assertEqual(self.machines[0].answer(), b"h1 has ended\n")


class Places(unittest.TestCase):
    @staticmethod
    def options(**values):
        return types.SimpleNamespace(**{"modules": None, "bind": [], "command": ["true"], **values})

    def kernel(self, chroot):
        kind = kernels.KINDS["7.3" if chroot else "6.1"]
        return kernels.Kernel(kind, "r", pathlib.Path("/v"), pathlib.Path("/home/u/.cache/weft/m/r"))

    def test_stock_root_needs_only_what_tmpfs_hides(self):
        with tempfile.NamedTemporaryFile(prefix="weft", dir="/tmp") as script:
            got = run.binds(self.options(command=["sh", script.name]), self.kernel(False), "/tmp/place")
        self.assertIn("/tmp/place", got)
        self.assertIn(script.name, got)
        self.assertNotIn("/home/u/.cache/weft/m/r", got)

    def test_chroot_needs_all_and_nested_ones_once(self):
        got = run.binds(self.options(bind=["/srv/a/b", "/srv/a"]), self.kernel(True), "/srv/a")
        self.assertIn("/srv/a", got)
        self.assertNotIn("/srv/a/b", got)
        self.assertIn("/home/u/.cache/weft/m/r", got)

    def test_module_names(self):
        self.assertEqual(initramfs.module_name("kernel/net/9p/9pnet-virtio.ko.xz"), "9pnet_virtio")


if __name__ == "__main__":
    unittest.main()
