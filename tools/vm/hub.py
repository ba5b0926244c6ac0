# SPDX-License-Identifier: MIT
"""The virtual Ethernet between the hosts of a run: a learning frame hub over stream sockets.

Each port is one end of a Unix stream socket pair whose other end QEMU holds. A frame comes with its
length, four bytes in network order, before it; what is read at once, and sent at once, is many
frames. As on the lossless Ethernet that RoCE is made for, a receiver that cannot keep up pauses the
senders instead of losing frames: nothing more is read from them, so that their own queues fill. A
receiver that takes nothing at all for a while pauses nobody, and loses what is too much.
Like a NIC that moderates its interrupts the hub rests a little while frames come in bulk: it, QEMU and
the guest then wake up once for many.
Optionally every frame is written to a pcap file, once, as it came in.
"""

import collections
import selectors
import socket
import struct
import threading
import time

from . import util

LENGTH = struct.Struct("!I")
HEADER_BYTES = 14
MAX_FRAME_BYTES = 65536 + 64
AT_ONCE_BYTES = 256 << 10
#: Kept per port while QEMU has no room: senders pause, go on, lose.
PAUSE_BYTES, RESUME_BYTES, QUEUE_BYTES = 1 << 20, 256 << 10, 16 << 20
#: Who has read so much at once rests so long before the next look.
BULK_BYTES, REST_SECONDS = 16 << 10, 0.0004
#: Without a byte taken for so long a receiver is stuck, or its guest has no driver yet.
STUCK_SECONDS = 2


class Port:
    def __init__(self, ours):
        self.sock = ours
        self.rest = b""         # of what was read: a frame that is not complete
        self.queue = collections.deque()    # frames with their lengths, for QEMU
        self.queued = 0         # bytes of them
        self.events = 0         # that the selector watches
        self.paused_by = set()  # ports whose queues are full
        self.ended = False      # nothing more comes from it
        self.taken = 0.0        # when it last took something


class Hub:
    def __init__(self, ports, pcap=None):
        self.ports = []
        self.qemu_ends = []
        for _ in range(ports):
            ours, theirs = socket.socketpair()
            for sock in (ours, theirs):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, AT_ONCE_BYTES)
            ours.setblocking(False)
            self.ports.append(Port(ours))
            self.qemu_ends.append(theirs)
        self.where = {}
        self.dropped = 0
        self.read = 0           # bytes, since the last look at the ports
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
            if self.read >= BULK_BYTES:
                time.sleep(REST_SECONDS)
            self.read = 0
            paused = any(port.paused_by for port in self.ports)
            for key, events in self.selector.select(STUCK_SECONDS / 4 if paused else None):
                if key.data is None:
                    return
                if events & selectors.EVENT_WRITE:
                    self._flush(key.data)
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
        try:
            data = port.sock.recv(AT_ONCE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        port.ended = not data
        self.read += len(data)
        if port.rest:
            data = port.rest + data
        at = 0
        while len(data) - at >= LENGTH.size:
            end = at + LENGTH.size + LENGTH.unpack_from(data, at)[0]
            if end - at > MAX_FRAME_BYTES:
                port.ended = True
                util.say(f"h{self.ports.index(port)}: its network sends what is no frame; its end")
                break
            if end > len(data):
                break
            if end - at >= LENGTH.size + HEADER_BYTES:
                self._forward(port, data[at:end])
            at = end
        port.rest = data[at:]
        for other in self.ports:
            # What waits for room is told when there is some.
            if not other.events & selectors.EVENT_WRITE:
                self._flush(other)
            if other.queued >= PAUSE_BYTES and other is not port and not self._stuck(other):
                port.paused_by.add(other)
        self._watch(port)

    def _forward(self, source, frame):
        """The frame has its length before it."""
        target, sender = frame[4:10], frame[10:16]
        self.where[sender] = source
        if self.pcap:
            now, size = time.time(), len(frame) - LENGTH.size
            self.pcap.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), size, size) + frame[LENGTH.size:])
            self.pcap.flush()
        known = None if target[0] & 1 else self.where.get(target)
        for port in self.ports if known is None else (known,):
            if port is source:
                continue
            if port.queued >= QUEUE_BYTES:
                self.dropped += 1
                continue
            port.queue.append(frame)
            port.queued += len(frame)

    def _flush(self, port):
        """Hand over as much as QEMU has room for."""
        while port.queue:
            frames, size = [], 0
            while port.queue and size < AT_ONCE_BYTES:
                frames.append(port.queue.popleft())
                size += len(frames[-1])
            sent = self._put(port, b"".join(frames))
            port.queued -= sent
            if sent < size:
                port.queue.appendleft(b"".join(frames)[sent:])
                break
        self._watch(port)
        if port.queued <= RESUME_BYTES:
            self._resume([source for source in self.ports if port in source.paused_by], lambda other: other is not port)

    @staticmethod
    def _put(port, data):
        """How many bytes QEMU had room for."""
        try:
            sent = port.sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            sent = len(data)    # nobody is there any more
        port.taken = time.monotonic()
        return sent
