/* SPDX-License-Identifier: GPL-2.0 */
/* MODULE_IMPORT_NS() takes a string, as in kernels from 6.13 on. */
#ifndef WEFT_COMPAT_LINUX_MODULE_H
#define WEFT_COMPAT_LINUX_MODULE_H

#include_next <linux/module.h>

#ifndef WEFT_HAVE_MODULE_IMPORT_NS_STRING
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns) MODULE_INFO(import_ns, ns)
#endif

#endif /* WEFT_COMPAT_LINUX_MODULE_H */
