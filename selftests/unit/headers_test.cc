// SPDX-License-Identifier: GPL-2.0
// Parser and builder: literal packets, round trips, every truncation, every refusal.
#include "support.h"

#include <algorithm>

namespace {

using weft::test::Bytes;
using weft::test::Exact;
using weft::test::from_hex;
using weft::test::known_opcodes;
using weft::test::pick;
using weft::test::random_packet;
using weft::test::Rng;
using weft::test::to_wire;

weft_drop parse(weft_pkt& pkt, const Bytes& wire) {
    const Exact exact(wire, wire.size());
    return weft_pkt_parse(&pkt, exact.data(), wire.size());
}

TEST(Headers, BthBitByBit) {
    weft_pkt pkt{};
    // SEND_ONLY, SE, MigReq, pad 1, pkey 1234, FECN, BECN, resv6 2a, QPN abcdef, AckReq, PSN
    // 123456.
    ASSERT_EQ(parse(pkt, from_hex("04d01234 eaabcdef 80123456 aabbcc00 11223344")), WEFT_DROP_NONE);
    EXPECT_STREQ(pkt.op->name, "RC_SEND_ONLY");
    EXPECT_EQ(pkt.opcode, 0x04);
    EXPECT_TRUE(pkt.solicited && pkt.migreq && pkt.fecn && pkt.becn && pkt.ackreq);
    EXPECT_EQ(pkt.pad, 1);
    EXPECT_EQ(pkt.pkey, 0x1234);
    EXPECT_EQ(pkt.resv6, 0x2a);
    EXPECT_EQ(pkt.qpn, 0xabcdefU);
    EXPECT_EQ(pkt.psn, 0x123456U);
    EXPECT_EQ(pkt.hdr_len, 12);
    EXPECT_EQ(pkt.payload_len, 3U);
}

TEST(Headers, BthFlagsAreIndependent) {
    weft_pkt pkt{};
    ASSERT_EQ(parse(pkt, from_hex("0480ffff 00000001 00000000 00000000")), WEFT_DROP_NONE);
    EXPECT_TRUE(pkt.solicited);
    EXPECT_FALSE(pkt.migreq || pkt.fecn || pkt.becn || pkt.ackreq);
    ASSERT_EQ(parse(pkt, from_hex("0440ffff 80000001 00000000 00000000")), WEFT_DROP_NONE);
    EXPECT_TRUE(pkt.migreq && pkt.fecn);
    EXPECT_FALSE(pkt.solicited || pkt.becn || pkt.ackreq);
    ASSERT_EQ(parse(pkt, from_hex("0400ffff 40000001 80000000 00000000")), WEFT_DROP_NONE);
    EXPECT_TRUE(pkt.becn && pkt.ackreq);
    EXPECT_FALSE(pkt.solicited || pkt.migreq || pkt.fecn);
}

// Literal bytes, so that a mistake common to builder and parser shows.
TEST(Headers, ExtendedHeadersStandWhereTheStandardSays) {
    weft_pkt pkt{};
    ASSERT_EQ(parse(pkt, from_hex("0b00ffff 00000011 00000001"
                                  "0102030405060708 11121314 00000004 21222324 aabbccdd 00000000")),
              WEFT_DROP_NONE);
    EXPECT_EQ(pkt.va, 0x0102030405060708U);
    EXPECT_EQ(pkt.rkey, 0x11121314U);
    EXPECT_EQ(pkt.dmalen, 4U);
    EXPECT_EQ(be32_to_cpu(pkt.imm), 0x21222324U);
    EXPECT_EQ(pkt.payload_len, 4U);

    ASSERT_EQ(parse(pkt, from_hex("1300ffff 00000011 00000001"
                                  "0102030405060708 11121314 2122232425262728 3132333435363738"
                                  "00000000")),
              WEFT_DROP_NONE);
    EXPECT_EQ(pkt.va, 0x0102030405060708U);
    EXPECT_EQ(pkt.rkey, 0x11121314U);
    EXPECT_EQ(pkt.swap_add, 0x2122232425262728U);
    EXPECT_EQ(pkt.compare, 0x3132333435363738U);

    ASSERT_EQ(parse(pkt, from_hex("1200ffff 00000011 00000001 1f123456 0102030405060708 00000000")),
              WEFT_DROP_NONE);
    EXPECT_EQ(pkt.syndrome, 0x1f);
    EXPECT_EQ(pkt.msn, 0x123456U);
    EXPECT_EQ(pkt.orig, 0x0102030405060708U);

    ASSERT_EQ(
        parse(pkt, from_hex("6500ffff 00000001 00000001 80010000 ff123456 01020304 00000000")),
        WEFT_DROP_NONE);
    EXPECT_EQ(pkt.qkey, 0x80010000U);
    EXPECT_EQ(pkt.src_qpn, 0x123456U) << "the octet above the QPN is reserved";
    EXPECT_EQ(be32_to_cpu(pkt.imm), 0x01020304U);

    ASSERT_EQ(parse(pkt, from_hex("1700ffff 00000011 00000001 0a0b0c0d 00000000")), WEFT_DROP_NONE);
    EXPECT_EQ(pkt.rkey, 0x0a0b0c0dU);
}

TEST(Headers, BuildWritesTheLiteralBytes) {
    weft_pkt pkt{};
    pkt.opcode = 0x0b;
    pkt.solicited = true;
    pkt.migreq = true;
    pkt.ackreq = true;
    pkt.becn = true;
    pkt.resv6 = 1;
    pkt.pkey = 0xffff;
    pkt.qpn = 0x123456;
    pkt.psn = 0xfedcba;
    pkt.va = 0x0102030405060708;
    pkt.rkey = 0x11121314;
    pkt.dmalen = 5;
    pkt.imm = cpu_to_be32(0x21222324);
    pkt.payload_len = 5;
    Bytes out(WEFT_HDR_MAX, 0xee);
    ASSERT_EQ(weft_pkt_build(out.data(), &pkt), 32U);
    const Bytes expected = from_hex("0bf0ffff 41123456 80fedcba"
                                    "0102030405060708 11121314 00000005 21222324 eeeeeeeeeeeeeeee");
    EXPECT_EQ(out, expected) << "and nothing behind the headers";
}

TEST(Headers, BuildRefusesUnknownOpcodes) {
    Bytes out(WEFT_HDR_MAX, 0xee);
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        weft_pkt pkt{};
        pkt.opcode = static_cast<u8>(opcode);
        const auto* info = weft_opcode_info(pkt.opcode);
        EXPECT_EQ(weft_pkt_build(out.data(), &pkt), info ? info->hdr_len : 0U);
    }
}

TEST(Headers, BuildMasksFieldsThatAreTooWide) {
    weft_pkt pkt{};
    pkt.opcode = 0x64;
    pkt.qpn = 0xff000001;
    pkt.psn = 0x7f000002;
    pkt.src_qpn = 0xff000003;
    pkt.resv6 = 0xc0;
    Bytes out(WEFT_HDR_MAX);
    ASSERT_EQ(weft_pkt_build(out.data(), &pkt), 20U);
    out.resize(20);
    EXPECT_EQ(out, from_hex("64000000 00000001 00000002 00000000 00000003"));
}

void expect_same(const weft_pkt& in, const weft_pkt& out) {
    const u32 f = in.op->flags;
    EXPECT_EQ(out.op, in.op);
    EXPECT_EQ(out.solicited, in.solicited);
    EXPECT_EQ(out.migreq, in.migreq);
    EXPECT_EQ(out.ackreq, in.ackreq);
    EXPECT_EQ(out.fecn, in.fecn);
    EXPECT_EQ(out.becn, in.becn);
    EXPECT_EQ(out.resv6, in.resv6);
    EXPECT_EQ(out.pkey, in.pkey);
    EXPECT_EQ(out.qpn, in.qpn);
    EXPECT_EQ(out.psn, in.psn);
    if (f & WEFT_OP_DETH) {
        EXPECT_EQ(out.qkey, in.qkey);
        EXPECT_EQ(out.src_qpn, in.src_qpn);
    }
    if (f & (WEFT_OP_RETH | WEFT_OP_ATOMIC_ETH)) {
        EXPECT_EQ(out.va, in.va);
    }
    if (f & (WEFT_OP_RETH | WEFT_OP_ATOMIC_ETH | WEFT_OP_IETH)) {
        EXPECT_EQ(out.rkey, in.rkey);
    }
    if (f & WEFT_OP_RETH) {
        EXPECT_EQ(out.dmalen, in.dmalen);
    }
    if (f & WEFT_OP_ATOMIC_ETH) {
        EXPECT_EQ(out.swap_add, in.swap_add);
        EXPECT_EQ(out.compare, in.compare);
    }
    if (f & WEFT_OP_ATOMIC_ACK_ETH) {
        EXPECT_EQ(out.orig, in.orig);
    }
    if (f & WEFT_OP_AETH) {
        EXPECT_EQ(out.syndrome, in.syndrome);
        EXPECT_EQ(out.msn, in.msn);
    }
    if (f & WEFT_OP_IMM) {
        EXPECT_EQ(out.imm, in.imm);
    }
}

TEST(Headers, WhatIsBuiltIsParsedAgain) {
    Rng rng(2);
    for (int round = 0; round < 200; ++round) {
        for (const u8 opcode : known_opcodes()) {
            const weft_pkt in = random_packet(rng, opcode);
            const Bytes payload(in.op->flags & WEFT_OP_PAYLOAD ? pick(rng, 0, 64) : 0, 0x5a);
            weft_pkt out{};
            SCOPED_TRACE(in.op->name);
            ASSERT_EQ(parse(out, to_wire(in, payload)), WEFT_DROP_NONE);
            expect_same(in, out);
            EXPECT_EQ(out.hdr_len, in.op->hdr_len);
            EXPECT_EQ(out.payload_len, payload.size());
            EXPECT_EQ(out.pad, (4 - payload.size() % 4) % 4);
        }
    }
}

TEST(Headers, EveryTruncationOfEveryOpcodeIsRefused) {
    Rng rng(3);
    for (const u8 opcode : known_opcodes()) {
        const Bytes wire = to_wire(random_packet(rng, opcode), {});
        for (std::size_t len = 0; len < wire.size(); ++len) {
            weft_pkt pkt{};
            EXPECT_EQ(parse(pkt, Bytes(wire.begin(), wire.begin() + len)), WEFT_DROP_TRUNCATED)
                << weft_opcode_info(opcode)->name << " at " << len;
        }
    }
}

// With payload a cut can leave a well-formed packet that is shorter, but not one of odd length.
TEST(Headers, TruncatedPayloadKeepsItsPad) {
    Rng rng(4);
    for (const u8 opcode : known_opcodes()) {
        const weft_pkt in = random_packet(rng, opcode);
        if (!(in.op->flags & WEFT_OP_PAYLOAD))
            continue;
        for (std::size_t payload = 1; payload <= 16; ++payload) {
            const Bytes wire = to_wire(in, Bytes(payload, 1));
            for (std::size_t len = 0; len < wire.size(); ++len) {
                weft_pkt pkt{};
                const weft_drop drop = parse(pkt, Bytes(wire.begin(), wire.begin() + len));
                if (drop == WEFT_DROP_NONE) {
                    EXPECT_EQ(len % 4, 0U);
                    EXPECT_GE(len, in.op->hdr_len + weft_pad(payload) + 1U + WEFT_ICRC_LEN - 1U);
                    EXPECT_EQ(pkt.payload_len,
                              len - in.op->hdr_len - weft_pad(payload) - WEFT_ICRC_LEN);
                }
            }
        }
    }
}

TEST(Headers, ReadsNoMoreThanItsHeaders) {
    Rng rng(5);
    for (const u8 opcode : known_opcodes()) {
        const weft_pkt in = random_packet(rng, opcode);
        const Bytes payload(in.op->flags & WEFT_OP_PAYLOAD ? 1024 : 0, 1);
        const Bytes wire = to_wire(in, payload);
        const Exact headers(wire, std::min<std::size_t>(wire.size(), WEFT_HDR_MAX));
        weft_pkt pkt{};
        EXPECT_EQ(weft_pkt_parse(&pkt, headers.data(), wire.size()), WEFT_DROP_NONE);
        EXPECT_EQ(pkt.payload_len, payload.size());
    }
}

TEST(Headers, OnlyVersionZeroIsTaken) {
    Bytes wire = to_wire(weft::test::packet(WEFT_RC | WEFT_SEND_ONLY, 1), {});
    weft_pkt pkt{};
    for (u8 version = 1; version < 16; ++version) {
        wire[1] = version;
        EXPECT_EQ(parse(pkt, wire), WEFT_DROP_VERSION);
    }
    wire[1] = 0;
    EXPECT_EQ(parse(pkt, wire), WEFT_DROP_NONE);
}

TEST(Headers, UnknownOpcodesAreRefused) {
    Bytes wire(64, 0);
    weft_pkt pkt{};
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        wire[0] = static_cast<u8>(opcode);
        EXPECT_EQ(parse(pkt, wire) == WEFT_DROP_OPCODE, weft_opcode_info(wire[0]) == nullptr);
    }
}

TEST(Headers, PayloadOnlyWhereTheOpcodeHasOne) {
    Rng rng(6);
    for (const u8 opcode : known_opcodes()) {
        weft_pkt in = random_packet(rng, opcode);
        in.syndrome = WEFT_SYNDROME_ACK; // of a sequence NAK see the tests of Sack
        Bytes wire = to_wire(in, {});
        wire.insert(wire.end(), 4, 0);
        weft_pkt pkt{};
        EXPECT_EQ(parse(pkt, wire),
                  in.op->flags & WEFT_OP_PAYLOAD ? WEFT_DROP_NONE : WEFT_DROP_LENGTH)
            << in.op->name;
    }
}

TEST(Headers, PadIsExactlyWhatThePayloadNeeds) {
    const weft_pkt in = weft::test::packet(WEFT_RC | WEFT_SEND_ONLY, 1);
    for (std::size_t rest = 0; rest <= 12; ++rest) {
        for (std::size_t pad = 0; pad < 4; ++pad) {
            Bytes wire = to_wire(in, {});
            wire.insert(wire.end(), rest, 0);
            wire[1] = static_cast<u8>(pad << 4);
            weft_pkt pkt{};
            weft_drop expected = WEFT_DROP_LENGTH;
            if (rest < pad)
                expected = WEFT_DROP_TRUNCATED;
            else if (rest % 4 == 0 && (pad == 0 || rest > 0))
                expected = WEFT_DROP_NONE;
            EXPECT_EQ(parse(pkt, wire), expected) << "rest " << rest << " pad " << pad;
        }
    }
}

} // namespace
