// SPDX-License-Identifier: GPL-2.0
// What the tests share.
#include "support.h"

#include <algorithm>
#include <string>

namespace weft::test {

Bytes from_hex(std::string_view hex) {
    std::string digits;
    std::copy_if(hex.begin(), hex.end(), std::back_inserter(digits),
                 [](char c) { return c != ' '; });
    Bytes bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    return bytes;
}

std::uint64_t pick(Rng& rng, std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng);
}

Exact::Exact(const Bytes& bytes, std::size_t len)
    : bytes_(new std::uint8_t[len]) {
    std::copy_n(bytes.begin(), len, bytes_.get());
}

std::vector<std::uint8_t> known_opcodes() {
    std::vector<std::uint8_t> known;
    for (unsigned opcode = 0; opcode < 256; ++opcode)
        if (weft_opcode_info(static_cast<std::uint8_t>(opcode)))
            known.push_back(static_cast<std::uint8_t>(opcode));
    return known;
}

weft_pkt random_packet(Rng& rng, std::uint8_t opcode) {
    weft_pkt pkt{};
    pkt.op = weft_opcode_info(opcode);
    pkt.opcode = opcode;
    pkt.solicited = chance(rng, 50);
    pkt.migreq = chance(rng, 50);
    pkt.ackreq = chance(rng, 50);
    pkt.fecn = chance(rng, 50);
    pkt.becn = chance(rng, 50);
    pkt.resv6 = rng() & 0x3f;
    pkt.pkey = rng() & 0xffff;
    pkt.qpn = rng() & WEFT_QPN_MASK;
    pkt.psn = rng() & WEFT_PSN_MASK;
    pkt.qkey = static_cast<std::uint32_t>(rng());
    pkt.src_qpn = rng() & WEFT_QPN_MASK;
    pkt.va = rng();
    pkt.rkey = static_cast<std::uint32_t>(rng());
    pkt.dmalen = static_cast<std::uint32_t>(rng());
    pkt.swap_add = rng();
    pkt.compare = rng();
    pkt.orig = rng();
    pkt.syndrome = rng() & 0xff;
    pkt.msn = rng() & 0xffffff;
    pkt.imm = static_cast<__be32>(rng());
    return pkt;
}

Bytes to_wire(const weft_pkt& pkt, const Bytes& payload) {
    weft_pkt sized = pkt;
    sized.payload_len = static_cast<std::uint32_t>(payload.size());
    Bytes wire(WEFT_HDR_MAX);
    wire.resize(weft_pkt_build(wire.data(), &sized));
    wire.insert(wire.end(), payload.begin(), payload.end());
    wire.insert(wire.end(), weft_pad(sized.payload_len) + WEFT_ICRC_LEN, 0);
    return wire;
}

weft_pkt packet(unsigned opcode, std::uint32_t psn, std::uint32_t payload_len) {
    weft_pkt pkt{};
    pkt.opcode = static_cast<std::uint8_t>(opcode);
    pkt.op = weft_opcode_info(pkt.opcode);
    pkt.psn = psn & WEFT_PSN_MASK;
    pkt.payload_len = payload_len;
    pkt.syndrome = WEFT_SYNDROME_ACK;
    return pkt;
}

std::uint32_t crc32_bits(std::uint32_t crc, const void* data, std::size_t len) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < len; ++i) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    return crc;
}

} // namespace weft::test
