# SPDX-License-Identifier: MIT
"""The virtual Ethernet between the hosts of a run: a learning frame hub over datagram sockets.

Each port is one end of a Unix datagram socket pair whose other end QEMU holds; one datagram is
one frame. As on the lossless Ethernet that RoCE is made for, a receiver that cannot keep up pauses
the senders instead of losing frames: nothing more is read from them, so that their own queues
fill. A receiver that takes nothing at all for a while pauses nobody, and loses what is too much.
Optionally every frame is written to a pcap file, once, as it came in.
"""

import collections
import socket
import struct
import threading
import time
import selectors

BUFFER_BYTES = 4 << 20
MAX_FRAME_BYTES = 65536 + 64
#: Frames kept per port while QEMU has no room (a kernel's datagram queue holds very few): senders pause, go on, lose.
PAUSE_FRAMES, RESUME_FRAMES, QUEUE_FRAMES = 256, 64, 4096
#: Without a frame taken for so long a receiver is stuck, or its guest has no driver yet.
STUCK_SECONDS = 2


class Port:
    def __init__(self, ours):
        self.sock = ours
        self.queue = collections.deque()
        self.events = 0         # that the selector watches
        self.paused_by = set()  # ports whose queues are full
        self.ended = False      # nothing more comes from it
        self.taken = 0.0        # when it last took a frame


class Hub:
    def __init__(self, ports, pcap=None):
        self.ports = []
        self.qemu_ends = []
        for _ in range(ports):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            for sock in (ours, theirs):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            ours.setblocking(False)
            self.ports.append(Port(ours))
            self.qemu_ends.append(theirs)
        self.where = {}
        self.dropped = 0
        self.selector = selectors.DefaultSelector()
        self.wake_out, self.wake_in = socket.socketpair()
        self.pcap = open(pcap, "wb") if pcap else None
        if self.pcap:
            self.pcap.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
            self.pcap.flush()
        self.thread = threading.Thread(target=self._serve, name="hub", daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        """End the thread and close the capture."""
        self.wake_in.send(b"x")
        if self.thread.is_alive():
            self.thread.join()
        for sock in (self.wake_in, self.wake_out, *(port.sock for port in self.ports)):
            sock.close()
        self.selector.close()
        if self.pcap:
            self.pcap.close()

    def _serve(self):
        for port in self.ports:
            self._watch(port)
        self.selector.register(self.wake_out, selectors.EVENT_READ, None)
        while True:
            paused = any(port.paused_by for port in self.ports)
            for key, events in self.selector.select(STUCK_SECONDS / 4 if paused else None):
                if key.data is None:
                    return
                if events & selectors.EVENT_WRITE:
                    self._drain(key.data)
                if events & selectors.EVENT_READ:
                    self._receive(key.data)
            for port in self.ports:
                if any(self._stuck(other) for other in port.paused_by):
                    self._resume([port], lambda other: not self._stuck(other))

    def _watch(self, port):
        """Have the selector look for what the port is to do next."""
        events = 0 if port.paused_by or port.ended else selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if port.queue else 0
        if events == port.events:
            return
        if not port.events:
            self.selector.register(port.sock, events, port)
        elif events:
            self.selector.modify(port.sock, events, port)
        else:
            self.selector.unregister(port.sock)
        port.events = events

    @staticmethod
    def _stuck(port):
        return time.monotonic() - port.taken > STUCK_SECONDS

    def _resume(self, ports, still):
        for port in ports:
            port.paused_by = {other for other in port.paused_by if still(other)}
            self._watch(port)

    def _receive(self, port):
        for _ in range(64):
            try:
                frame = port.sock.recv(MAX_FRAME_BYTES)
            except BlockingIOError:
                return
            except OSError:
                port.ended = True
                self._watch(port)
                return
            if len(frame) >= 14:
                self._forward(port, frame)
            if port.paused_by:
                return

    def _forward(self, source, frame):
        target, sender = frame[0:6], frame[6:12]
        self.where[sender] = source
        if self.pcap:
            now = time.time()
            self.pcap.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)
            self.pcap.flush()
        known = None if target[0] & 1 else self.where.get(target)
        if known is not None:
            if known is not source:
                self._send(source, known, frame)
            return
        for port in self.ports:
            if port is not source:
                self._send(source, port, frame)

    def _send(self, source, port, frame):
        if not port.queue and self._put(port, frame):
            return
        if len(port.queue) >= QUEUE_FRAMES:
            self.dropped += 1
            return
        port.queue.append(frame)
        self._watch(port)
        if len(port.queue) >= PAUSE_FRAMES and not self._stuck(port):
            source.paused_by.add(port)
            self._watch(source)

    def _put(self, port, frame):
        """False: QEMU has no room now."""
        try:
            port.sock.send(frame)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.dropped += 1
        port.taken = time.monotonic()
        return True

    def _drain(self, port):
        while port.queue and self._put(port, port.queue[0]):
            port.queue.popleft()
        self._watch(port)
        if len(port.queue) <= RESUME_FRAMES:
            self._resume([source for source in self.ports if port in source.paused_by], lambda other: other is not port)
