#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Writes vectors.h: RoCEv2 frames whose ICRC does not come from Weft.

usage: selftests/unit/vectors.py > selftests/unit/vectors.h   (Debian: python3-scapy)

For IPv4 the ICRC is scapy's own. scapy has none for IPv6, so it is computed here the other way round
than in the core: the frame is built a second time with every masked field set to ones by its name.
"""
from zlib import crc32

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

PAYLOAD = bytes((i * 37 + 11) & 0xFF for i in range(64))


def bth(opcode, payload, ext=b"", **fields):
    pad = -len(payload) % 4
    layer = BTH(opcode=opcode, padcount=pad, **fields)
    return layer, ext + payload + bytes(pad)


def v4(opcode, payload, ext=b"", ip=None, vlan=None, **fields):
    header, rest = bth(opcode, payload, ext, **fields)
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    if vlan is not None:
        frame /= Dot1Q(vlan=vlan, prio=3)
    frame /= IP(src="192.0.2.1", dst="192.0.2.2", **(ip or {}))
    return bytes(frame / UDP(sport=0xC123, dport=4791) / header / Raw(rest))


def v6(opcode, payload, ext=b"", vlan=None, **fields):
    header, rest = bth(opcode, payload, ext, **fields)
    address = {"src": "2001:db8::1", "dst": "2001:db8::2"}
    length = 8 + 12 + len(rest) + 4
    header.icrc = 0

    def transport(chksum, b):
        return UDP(sport=0xC123, dport=4791, len=length, chksum=chksum) / Raw(bytes(b)[:12] + rest)

    masked = IPv6(tc=0xFF, fl=0xFFFFF, hlim=0xFF, plen=length, nh=17, **address)
    ones = BTH(opcode=header.opcode, solicited=header.solicited, migreq=header.migreq,
               padcount=header.padcount, pkey=header.pkey, fecn=1, becn=1, resv6=0x3F,
               dqpn=header.dqpn, ackreq=header.ackreq, psn=header.psn, icrc=0)
    icrc = crc32(b"\xff" * 8 + bytes(masked / transport(0xFFFF, ones)))
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    if vlan is not None:
        frame /= Dot1Q(vlan=vlan)
    real = IPv6(tc=0x2A, fl=0x12345, hlim=63, plen=length, nh=17, **address)
    return bytes(frame / real / transport(0x1234, header)) + icrc.to_bytes(4, "little")


RETH = bytes.fromhex("00007f0123456000" "00001234" "00000007")
ATOMIC = bytes.fromhex("00007f0123456008" "00001234" "1122334455667788" "99aabbccddeeff00")
AETH = bytes.fromhex("1f000005")

FRAMES = [
    ("v4_send_only", v4(0x04, PAYLOAD, dqpn=0x11, psn=7, ackreq=1)),
    ("v4_empty", v4(0x04, b"", dqpn=0x11, psn=0xFFFFFF)),
    ("v4_pad1", v4(0x04, PAYLOAD[:7], dqpn=0x11, psn=1)),
    ("v4_pad2", v4(0x04, PAYLOAD[:6], dqpn=0x11, psn=2)),
    ("v4_pad3", v4(0x04, PAYLOAD[:5], dqpn=0x11, psn=3, solicited=1)),
    ("v4_write_only", v4(0x0A, PAYLOAD[:7], RETH, dqpn=0xABCDEF, psn=9, migreq=1, ackreq=1)),
    ("v4_fetch_add", v4(0x14, b"", ATOMIC, dqpn=0x12, psn=10)),
    ("v4_ack", v4(0x11, b"", AETH, dqpn=0x13, psn=11)),
    ("v4_congested", v4(0x04, PAYLOAD[:4], ip={"tos": 0x03, "ttl": 2}, dqpn=0x11, psn=12, fecn=1,
                        becn=1, resv6=0x15)),
    ("v4_options", v4(0x04, PAYLOAD[:8], ip={"options": [IPOption(b"\x94\x04\x00\x00")]},
                      dqpn=0x11, psn=13)),
    ("v4_vlan", v4(0x04, PAYLOAD[:9], vlan=100, dqpn=0x11, psn=14)),
    ("v6_send_only", v6(0x04, PAYLOAD, dqpn=0x11, psn=7, ackreq=1)),
    ("v6_pad1", v6(0x04, PAYLOAD[:3], dqpn=0x11, psn=1)),
    ("v6_pad2", v6(0x04, PAYLOAD[:2], dqpn=0x11, psn=2)),
    ("v6_pad3", v6(0x04, PAYLOAD[:1], dqpn=0x11, psn=3)),
    ("v6_write_only", v6(0x0A, PAYLOAD[:7], RETH, dqpn=0xABCDEF, psn=9, fecn=1)),
    ("v6_vlan", v6(0x11, b"", AETH, vlan=4094, dqpn=0x13, psn=11)),
]

print("// SPDX-License-Identifier: GPL-2.0")
print("// Ethernet frames with an independent ICRC; written by vectors.py.\n// clang-format off")
print("#pragma once\n")
print("struct FrameVector {\n  const char* name;\n  const char* hex;\n};\n")
print("constexpr FrameVector frame_vectors[] = {")
for name, frame in FRAMES:
    text = frame.hex()
    lines = [text[i:i + 80] for i in range(0, len(text), 80)]
    joined = "\n     ".join(f'"{line}"' for line in lines)
    print(f'    {{"{name}",\n     {joined}}},')
print("};")
