// SPDX-License-Identifier: GPL-2.0
/* Moderation: when a queue with waiting frames fires. */
#include <weft/steering.h>

u64 weft_moderation_delay(const struct weft_moderation *mod, u32 pending, u64 age_ns)
{
	u64 wait_ns = (u64)mod->usecs * 1000;

	if (!mod->usecs && !mod->frames)
		return 0;
	if (mod->frames && pending >= mod->frames)
		return 0;
	if (!mod->usecs)
		return WEFT_MODERATION_NEVER;
	return age_ns < wait_ns ? wait_ns - age_ns : 0;
}
EXPORT_SYMBOL_GPL(weft_moderation_delay);
