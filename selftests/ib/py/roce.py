# SPDX-License-Identifier: MIT
"""RoCEv2 frames by hand: built, sent and judged without any of Weft's code.

The ICRC is CRC-32 over eight bytes of ones, the IP header with the fields that routers change set to
ones, UDP with its checksum set to ones, BTH with its reserved byte set to ones, and the rest.
"""

import socket
import struct
import zlib

UDP_PORT = 4791
SO_RCVBUFFORCE = 33
RC_SEND_FIRST, RC_SEND_ONLY, RC_WRITE_FIRST, RC_WRITE_ONLY, RC_ACK = 0x00, 0x04, 0x06, 0x0a, 0x11
RC_WRITE_MIDDLE, RC_WRITE_LAST, RC_READ_REQUEST, RC_FETCH_ADD = 0x07, 0x08, 0x0c, 0x14
UC_SEND_ONLY, UC_WRITE_ONLY, UD_SEND_ONLY = 0x24, 0x2a, 0x64
RC_READ_FIRST, RC_READ_MIDDLE, RC_READ_LAST, RC_READ_ONLY, RC_ATOMIC_ACK = 0x0d, 0x0e, 0x0f, 0x10, 0x12
CNP = 0x81


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def bth(opcode, qpn, psn, pkey=0xffff, pad=0, version=0, ack=False, solicited=False, reserved=0):
    return struct.pack("!BBHII", opcode, solicited << 7 | 1 << 6 | pad << 4 | version, pkey,
                       reserved << 24 | qpn, ack << 31 | psn & 0xffffff)


def reth(addr, rkey, length):
    return struct.pack("!QII", addr, rkey, length)


def deth(qkey, source):
    return struct.pack("!II", qkey, source)


def ip_udp(src, dst, length, sport=50000, tos=0, ident=0, dont_fragment=True):
    """IP and UDP headers for that many bytes behind UDP."""
    udp = struct.pack("!HHHH", sport, UDP_PORT, 8 + length, 0)
    if ":" in src:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, 8 + length, 17, 64) + \
            socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + udp
    head = struct.pack("!BBHHHBBH", 0x45, tos, 28 + length, ident, dont_fragment << 14, 64, 17, 0) + \
        socket.inet_aton(src) + socket.inet_aton(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + udp


def icrc(packet):
    """Of a packet from its IP header to the end of what the ICRC covers; as it stands on the wire."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        size = (packet[0] & 15) * 4
        masked[1] = masked[8] = masked[10] = masked[11] = 0xff
    else:
        size = 40
        masked[0] |= 0x0f
        masked[1] = masked[2] = masked[3] = masked[7] = 0xff
    masked[size + 6] = masked[size + 7] = 0xff
    masked[size + 8 + 4] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)) & 0xffffffff)


def packet(src, dst, transport, good=True, udp_checksum=None, **options):
    """From the IP header to the ICRC. `transport` is everything from the BTH on, pad bytes included.

    udp_checksum: None leaves it 0 as RoCE NICs do, True is the right one, False a wrong one.
    """
    whole = ip_udp(src, dst, len(transport) + 4, **options) + transport
    word = icrc(whole)
    whole += word if good else bytes([word[0] ^ 1]) + word[1:]
    if udp_checksum is None:
        return whole
    at = (whole[0] & 15) * 4 if whole[0] >> 4 == 4 else 40
    family = socket.AF_INET6 if ":" in src else socket.AF_INET
    pseudo = socket.inet_pton(family, src) + socket.inet_pton(family, dst) + struct.pack("!II", len(whole) - at, 17)
    right = checksum(pseudo + whole[at:]) or 0xffff
    return whole[:at + 6] + struct.pack("!H", right if udp_checksum else right ^ 0x0101) + whole[at + 8:]


def icrc_ok(whole):
    """Of a captured packet, IP header to ICRC."""
    return icrc(whole[:-4]) == whole[-4:]


class Wire:
    """Sends frames from a netdev, as if they came out of its own stack. No tap: nothing is received."""

    def __init__(self, netdev, destination, netns=""):
        self.socket = in_netns(netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        in_netns(netns, lambda: self.socket.bind((netdev, 0)))
        source = self.socket.getsockname()[4]
        self.ethernet = bytes.fromhex(destination.replace(":", "")) + source

    def send(self, whole):
        kind = b"\x08\x00" if whole[0] >> 4 == 4 else b"\x86\xdd"
        self.socket.send(self.ethernet + kind + whole)


def in_netns(name, function):
    """Call it in a network namespace; what it opens stays there."""
    if not name:
        return function()
    import ctypes  # pylint: disable=import-outside-toplevel
    libc = ctypes.CDLL(None, use_errno=True)
    newnet = 0x40000000
    with open("/proc/self/ns/net", encoding="ascii") as home, \
            open(f"/run/netns/{name}", encoding="ascii") as there:
        if libc.setns(there.fileno(), newnet):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return function()
        finally:
            libc.setns(home.fileno(), newnet)


class Tap:
    """Sees the RoCEv2 frames of a netdev, both ways, from the IP header on."""

    def __init__(self, netdev, netns=""):
        self.socket = in_netns(netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                                            socket.htons(3)))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        in_netns(netns, lambda: self.socket.bind((netdev, 3)))
        self.socket.setblocking(False)

    def both(self):
        """(packet from its IP header on, is it an outgoing one?) for all that have come since the last call."""
        while True:
            try:
                data, where = self.socket.recvfrom(65536)
            except BlockingIOError:
                return
            v4 = data[0] >> 4 == 4
            head = (data[0] & 15) * 4 if v4 else 40
            protocol = data[9] if v4 else data[6]
            if protocol != socket.IPPROTO_UDP or struct.unpack_from("!H", data, head + 2)[0] != UDP_PORT:
                continue
            length = struct.unpack_from("!H", data, 2)[0] if v4 else 40 + struct.unpack_from("!H", data, 4)[0]
            yield data[:length], where[2] == socket.PACKET_OUTGOING

    def frames(self, outgoing=None):
        """The packets alone; True and False: only sent and only received ones."""
        return [data for data, out in self.both() if outgoing is None or out == outgoing]

    def close(self):
        self.socket.close()


def parse(whole):
    """(opcode, qpn, psn, bytes behind the BTH up to the ICRC) of a packet from its IP header on."""
    at = ((whole[0] & 15) * 4 if whole[0] >> 4 == 4 else 40) + 8
    opcode, _, _, qpn, psn = struct.unpack_from("!BBHII", whole, at)
    return opcode, qpn & 0xffffff, psn & 0xffffff, whole[at + 12:-4]
