/* SPDX-License-Identifier: GPL-2.0 */
/* hrtimer_setup() for kernels that set the handler by hand. */
#ifndef WEFT_COMPAT_LINUX_HRTIMER_H
#define WEFT_COMPAT_LINUX_HRTIMER_H

#include_next <linux/hrtimer.h>

#ifndef WEFT_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#ifndef WEFT_HAVE_HRTIMER_UPDATE_FUNCTION
static inline void hrtimer_update_function(struct hrtimer *timer,
					   enum hrtimer_restart (*function)(struct hrtimer *))
{
	timer->function = function;
}
#endif

#endif /* WEFT_COMPAT_LINUX_HRTIMER_H */
