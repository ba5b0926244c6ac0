// SPDX-License-Identifier: GPL-2.0
// What the tests share: bytes, packets, random numbers, a CRC backend.
#pragma once

#include "core.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

namespace weft::test {

using Bytes = std::vector<std::uint8_t>;
using Rng = std::mt19937_64;

// "0a0b 0c" → bytes; spaces are skipped.
Bytes from_hex(std::string_view hex);

// low … high, both included.
std::uint64_t pick(Rng& rng, std::uint64_t low, std::uint64_t high);

inline bool chance(Rng& rng, unsigned percent) {
    return pick(rng, 1, 100) <= percent;
}

// A copy with no byte of slack behind it, so that AddressSanitizer sees any read beyond.
class Exact {
public:
    explicit Exact(const Bytes& bytes, std::size_t len);
    const void* data() const { return bytes_.get(); }

private:
    std::unique_ptr<std::uint8_t[]> bytes_;
};

// Every opcode that the core knows.
std::vector<std::uint8_t> known_opcodes();

// A packet with every field of its opcode filled at random; payload_len is 0.
weft_pkt random_packet(Rng& rng, std::uint8_t opcode);

// BTH to ICRC: headers by weft_pkt_build(), payload, pad of zeros, four bytes for the ICRC.
Bytes to_wire(const weft_pkt& pkt, const Bytes& payload);

// Decoded packet of an opcode, with nothing but what responder and completer look at.
weft_pkt packet(unsigned opcode, std::uint32_t psn, std::uint32_t payload_len = 0);

// Bit-serial CRC-32, written from the polynomial's definition.
std::uint32_t crc32_bits(std::uint32_t crc, const void* data, std::size_t len);

constexpr std::uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

} // namespace weft::test
