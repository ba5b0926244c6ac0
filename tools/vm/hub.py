# SPDX-License-Identifier: MIT
"""The virtual Ethernet between the hosts of a run: a learning frame hub over datagram sockets.

Each port is one end of a Unix datagram socket pair whose other end QEMU holds; one datagram is
one frame. A full socket of a receiver drops the frame, as a switch without flow control does.
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
#: Frames kept per port while QEMU has no room: a kernel's datagram queue holds very few.
QUEUE_FRAMES = 4096


class Port:
    def __init__(self, ours):
        self.sock = ours
        self.queue = collections.deque()


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
            self.selector.register(port.sock, selectors.EVENT_READ, port)
        self.selector.register(self.wake_out, selectors.EVENT_READ, None)
        while True:
            for key, events in self.selector.select():
                if key.data is None:
                    return
                if events & selectors.EVENT_WRITE:
                    self._drain(key.data)
                if events & selectors.EVENT_READ:
                    self._receive(key.data)

    def _receive(self, port):
        for _ in range(64):
            try:
                frame = port.sock.recv(MAX_FRAME_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self.selector.unregister(port.sock)
                return
            if len(frame) >= 14:
                self._forward(port, frame)

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
                self._send(known, frame)
            return
        for port in self.ports:
            if port is not source:
                self._send(port, frame)

    def _send(self, port, frame):
        if port.queue:
            if len(port.queue) >= QUEUE_FRAMES:
                self.dropped += 1
            else:
                port.queue.append(frame)
            return
        try:
            port.sock.send(frame)
        except (BlockingIOError, InterruptedError):
            port.queue.append(frame)
            self.selector.modify(port.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, port)
        except OSError:
            self.dropped += 1

    def _drain(self, port):
        while port.queue:
            try:
                port.sock.send(port.queue[0])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.dropped += 1
            port.queue.popleft()
        self.selector.modify(port.sock, selectors.EVENT_READ, port)
