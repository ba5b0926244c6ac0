// SPDX-License-Identifier: GPL-2.0
/* The face of weft_core.ko. Its functions are exported where they stand; it does nothing alone. */
#include <linux/module.h>

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Weft project");
MODULE_DESCRIPTION("Weft protocol core: RoCEv2 headers, transport rules, steering");
MODULE_VERSION(WEFT_VERSION);
