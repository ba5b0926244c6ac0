// SPDX-License-Identifier: GPL-2.0
/* The face of weft_core.ko: what it is and what it offers to Weft's drivers. */
#include <linux/module.h>
#include <weft/ack.h>
#include <weft/bth.h>
#include <weft/completer.h>
#include <weft/icrc.h>
#include <weft/opcode.h>
#include <weft/requester.h>
#include <weft/responder.h>
#include <weft/steering.h>

EXPORT_SYMBOL_GPL(weft_pkt_parse);
EXPORT_SYMBOL_GPL(weft_pkt_build);
EXPORT_SYMBOL_GPL(weft_icrc_v4);
EXPORT_SYMBOL_GPL(weft_icrc_v6);
EXPORT_SYMBOL_GPL(weft_opcode_info);
EXPORT_SYMBOL_GPL(weft_syndrome_kind);
EXPORT_SYMBOL_GPL(weft_rnr_timer_ns);
EXPORT_SYMBOL_GPL(weft_ack_timeout_ns);
EXPORT_SYMBOL_GPL(weft_wr_is_rd_atomic);
EXPORT_SYMBOL_GPL(weft_wr_allowed);
EXPORT_SYMBOL_GPL(weft_wr_psn_count);
EXPORT_SYMBOL_GPL(weft_req_segment);
EXPORT_SYMBOL_GPL(weft_req_offset_of_psn);
EXPORT_SYMBOL_GPL(weft_req_want_ack);
EXPORT_SYMBOL_GPL(weft_comp_step);
EXPORT_SYMBOL_GPL(weft_resp_check);
EXPORT_SYMBOL_GPL(weft_resp_accept);
EXPORT_SYMBOL_GPL(weft_rss_default_key);
EXPORT_SYMBOL_GPL(weft_toeplitz);
EXPORT_SYMBOL_GPL(weft_rss_hash_v4);
EXPORT_SYMBOL_GPL(weft_rss_hash_v6);
EXPORT_SYMBOL_GPL(weft_rss_indir_default);
EXPORT_SYMBOL_GPL(weft_moderation_delay);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Weft project");
MODULE_DESCRIPTION("Weft protocol core: RoCEv2 headers, transport rules, steering");
MODULE_VERSION(WEFT_VERSION);
