// SPDX-License-Identifier: GPL-2.0
// The opcode table against a list written by hand from the standard's.
#include "support.h"

#include <map>
#include <string>

namespace {

struct Expected {
    const char* name;
    unsigned hdr_len;
};

const std::map<unsigned, Expected> expected = {
    {0x00, {"RC_SEND_FIRST", 12}},
    {0x01, {"RC_SEND_MIDDLE", 12}},
    {0x02, {"RC_SEND_LAST", 12}},
    {0x03, {"RC_SEND_LAST_IMM", 16}},
    {0x04, {"RC_SEND_ONLY", 12}},
    {0x05, {"RC_SEND_ONLY_IMM", 16}},
    {0x06, {"RC_WRITE_FIRST", 28}},
    {0x07, {"RC_WRITE_MIDDLE", 12}},
    {0x08, {"RC_WRITE_LAST", 12}},
    {0x09, {"RC_WRITE_LAST_IMM", 16}},
    {0x0a, {"RC_WRITE_ONLY", 28}},
    {0x0b, {"RC_WRITE_ONLY_IMM", 32}},
    {0x0c, {"RC_READ_REQUEST", 28}},
    {0x0d, {"RC_READ_RESPONSE_FIRST", 16}},
    {0x0e, {"RC_READ_RESPONSE_MIDDLE", 12}},
    {0x0f, {"RC_READ_RESPONSE_LAST", 16}},
    {0x10, {"RC_READ_RESPONSE_ONLY", 16}},
    {0x11, {"RC_ACKNOWLEDGE", 16}},
    {0x12, {"RC_ATOMIC_ACKNOWLEDGE", 24}},
    {0x13, {"RC_COMPARE_SWAP", 40}},
    {0x14, {"RC_FETCH_ADD", 40}},
    {0x16, {"RC_SEND_LAST_INV", 16}},
    {0x17, {"RC_SEND_ONLY_INV", 16}},
    {0x1d, {"RC_ATOMIC_WRITE", 28}},
    {0x20, {"UC_SEND_FIRST", 12}},
    {0x21, {"UC_SEND_MIDDLE", 12}},
    {0x22, {"UC_SEND_LAST", 12}},
    {0x23, {"UC_SEND_LAST_IMM", 16}},
    {0x24, {"UC_SEND_ONLY", 12}},
    {0x25, {"UC_SEND_ONLY_IMM", 16}},
    {0x26, {"UC_WRITE_FIRST", 28}},
    {0x27, {"UC_WRITE_MIDDLE", 12}},
    {0x28, {"UC_WRITE_LAST", 12}},
    {0x29, {"UC_WRITE_LAST_IMM", 16}},
    {0x2a, {"UC_WRITE_ONLY", 28}},
    {0x2b, {"UC_WRITE_ONLY_IMM", 32}},
    {0x64, {"UD_SEND_ONLY", 20}},
    {0x65, {"UD_SEND_ONLY_IMM", 24}},
};

TEST(Opcode, TableIsTheStandards) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const auto* info = weft_opcode_info(static_cast<u8>(opcode));
        const auto wanted = expected.find(opcode);
        if (wanted == expected.end()) {
            EXPECT_EQ(info, nullptr) << "opcode " << opcode;
            continue;
        }
        ASSERT_NE(info, nullptr) << "opcode " << opcode;
        EXPECT_STREQ(info->name, wanted->second.name);
        EXPECT_EQ(info->hdr_len, wanted->second.hdr_len) << info->name;
    }
}

// The name says what a packet is; so must the flags.
TEST(Opcode, FlagsFollowFromTheName) {
    for (const u8 opcode : weft::test::known_opcodes()) {
        const auto* info = weft_opcode_info(opcode);
        const std::string name = info->name;
        const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
        const auto flag = [&](unsigned long f) { return (info->flags & f) != 0; };
        const bool response = has("RESPONSE") || has("ACKNOWLEDGE");
        const bool several = has("FIRST") || has("MIDDLE") || has("LAST");
        const bool send = has("SEND");
        const bool atomic_write = has("ATOMIC_WRITE");
        const bool write = has("_WRITE_") && !atomic_write;

        SCOPED_TRACE(name);
        EXPECT_EQ(flag(WEFT_OP_RESPONSE), response);
        EXPECT_EQ(flag(WEFT_OP_REQUEST), !response);
        EXPECT_EQ(flag(WEFT_OP_START), has("FIRST") || !several);
        EXPECT_EQ(flag(WEFT_OP_END), has("LAST") || !several);
        EXPECT_EQ(flag(WEFT_OP_SEND), send);
        EXPECT_EQ(flag(WEFT_OP_WRITE), write);
        EXPECT_EQ(flag(WEFT_OP_READ), has("READ_"));
        EXPECT_EQ(flag(WEFT_OP_ATOMIC), has("SWAP") || has("ADD") || has("ATOMIC_ACK"));
        EXPECT_EQ(flag(WEFT_OP_ATOMIC_WRITE), atomic_write);
        EXPECT_EQ(flag(WEFT_OP_RECV_WQE), (send && flag(WEFT_OP_END)) || (write && has("IMM")));
        EXPECT_EQ(flag(WEFT_OP_PAYLOAD), send || write || atomic_write || has("READ_RESPONSE"));
        EXPECT_EQ(flag(WEFT_OP_DETH), has("UD_"));
        EXPECT_EQ(flag(WEFT_OP_IMM), has("IMM"));
        EXPECT_EQ(flag(WEFT_OP_IETH), has("INV"));
        EXPECT_EQ(flag(WEFT_OP_AETH), response && !has("MIDDLE"));
        EXPECT_EQ(flag(WEFT_OP_ATOMIC_ACK_ETH), has("ATOMIC_ACK"));
        EXPECT_EQ(flag(WEFT_OP_ATOMIC_ETH), has("SWAP") || has("ADD"));
        EXPECT_EQ(flag(WEFT_OP_RETH),
                  (write && flag(WEFT_OP_START)) || atomic_write || has("READ_REQUEST"));
    }
}

TEST(Opcode, NothingIsLongerThanHeaderMax) {
    for (const u8 opcode : weft::test::known_opcodes())
        EXPECT_LE(weft_opcode_info(opcode)->hdr_len, WEFT_HDR_MAX);
}

} // namespace
