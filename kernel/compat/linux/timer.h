/* SPDX-License-Identifier: GPL-2.0 */
/* timer_container_of() for kernels that call it from_timer(). */
#ifndef WEFT_COMPAT_LINUX_TIMER_H
#define WEFT_COMPAT_LINUX_TIMER_H

#include_next <linux/timer.h>

#ifndef WEFT_HAVE_TIMER_CONTAINER_OF
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

#endif /* WEFT_COMPAT_LINUX_TIMER_H */
