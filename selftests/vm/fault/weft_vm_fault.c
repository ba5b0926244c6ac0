// SPDX-License-Identifier: GPL-2.0
/* Plants one fault per load, so that the VM runner's judgement can be tested. */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

static char *what = "none";
module_param(what, charp, 0444);
MODULE_PARM_DESC(what, "none, kasan, lockdep or leak");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void read_after_free(void)
{
	char *block = kmalloc(64, GFP_KERNEL);

	if (!block)
		return;
	kfree(block);
	pr_info("read %d\n", READ_ONCE(block[8]));
}

static void lock_both(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

/* Several, since a stale word on a stack may still point to one of them. */
static void lose_memory(void)
{
	void *block;
	int i;

	for (i = 0; i < 16; i++) {
		block = kmalloc(1000, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(block);
	}
}

static int __init weft_vm_fault_init(void)
{
	if (!strcmp(what, "kasan"))
		read_after_free();
	if (!strcmp(what, "lockdep")) {
		lock_both(&first, &second);
		lock_both(&second, &first);
	}
	if (!strcmp(what, "leak"))
		lose_memory();
	return 0;
}

static void __exit weft_vm_fault_exit(void)
{
}

module_init(weft_vm_fault_init);
module_exit(weft_vm_fault_exit);
MODULE_AUTHOR("The Weft project");
MODULE_DESCRIPTION("Planted faults for the tests of the VM runner");
MODULE_LICENSE("GPL");
