// SPDX-License-Identifier: GPL-2.0
/* Counters of a device, as `rdma statistic` and sysfs show them. */
#include <rdma/ib_verbs.h>

#include "counters.h"
#include "device.h"

static const struct rdma_stat_desc weft_counter_descs[] = {
#define X(counter) { .name = #counter },
	WEFT_COUNTERS(X)
#undef X
};

u64 weft_counter_read(const struct weft_counters __percpu *counters, enum weft_counter which)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)->v[which]);
	return sum;
}

struct rdma_hw_stats *weft_alloc_hw_port_stats(struct ib_device *ib_dev, u32 port)
{
	static_assert(ARRAY_SIZE(weft_counter_descs) == WEFT_NUM_COUNTERS);

	return rdma_alloc_hw_stats_struct(weft_counter_descs, WEFT_NUM_COUNTERS,
					  0); /* cheap to read: no cache */
}

int weft_get_hw_stats(struct ib_device *ib_dev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct weft_dev *dev = weft_from_ibdev(ib_dev);
	int i;

	if (port != WEFT_PORT || !stats)
		return -EINVAL;
	for (i = 0; i < WEFT_NUM_COUNTERS; i++)
		stats->value[i] = weft_counter_read(dev->counters, i);
	return WEFT_NUM_COUNTERS;
}
