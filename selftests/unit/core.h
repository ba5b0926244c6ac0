// SPDX-License-Identifier: GPL-2.0
// The core's C headers for C++ tests. gtest comes first, as the core's shims define macros.
#pragma once

#include <gtest/gtest.h>

#include <weft/types.h>

extern "C" {
#include <weft/ack.h>
#include <weft/board.h>
#include <weft/bth.h>
#include <weft/completer.h>
#include <weft/icrc.h>
#include <weft/opcode.h>
#include <weft/peer.h>
#include <weft/placement.h>
#include <weft/psn.h>
#include <weft/psn_set.h>
#include <weft/requester.h>
#include <weft/responder.h>
#include <weft/rtt.h>
#include <weft/sack.h>
#include <weft/steering.h>
}
