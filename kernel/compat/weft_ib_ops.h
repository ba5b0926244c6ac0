/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ib_device_ops members whose name or arguments changed; a driver writes the newest form:
 *
 *   int create(struct ib_cq *, const struct ib_cq_init_attr *, struct uverbs_attr_bundle *);
 *   int create_user(the same);            the bundle is never NULL
 *   int resize_user(struct ib_cq *, unsigned int cqe, struct ib_udata *);
 *   struct ib_mr *reg_user(struct ib_pd *, u64 start, u64 length, u64 virt, int access,
 *                          struct ib_dmah *, struct ib_udata *);
 *
 *   WEFT_IB_CQ_OPS(create, create_user, resize_user);
 *   WEFT_IB_MR_OPS(reg_user);
 *   static const struct ib_device_ops ops = { …, WEFT_IB_CQ_INIT(create, create_user,
 *                                             resize_user), WEFT_IB_MR_INIT(reg_user) };
 *
 * The first two make adapters for older kernels, the INIT forms name what the kernel calls.
 */
#ifndef WEFT_COMPAT_IB_OPS_H
#define WEFT_COMPAT_IB_OPS_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#ifdef WEFT_HAVE_IB_CREATE_USER_CQ

#define WEFT_COMPAT_CREATE_CQ(create, create_user)
#define WEFT_COMPAT_CREATE_CQ_INIT(create, create_user) \
	.create_cq = create, .create_user_cq = create_user

#else

#ifdef WEFT_HAVE_IB_CREATE_CQ_ATTRS
#define weft_compat_cq_arg struct uverbs_attr_bundle
#define weft_compat_cq_attrs(arg) (arg)
#else
#define weft_compat_cq_arg struct ib_udata
#define weft_compat_cq_attrs(arg) rdma_udata_to_uverbs_attr_bundle(arg)
#endif

#define WEFT_COMPAT_CREATE_CQ(create, create_user)					\
	static int weft_compat_create_cq(struct ib_cq *cq,				\
					 const struct ib_cq_init_attr *attr,		\
					 weft_compat_cq_arg *arg)			\
	{										\
		return arg ? create_user(cq, attr, weft_compat_cq_attrs(arg)) :		\
			     create(cq, attr, NULL);					\
	}
#define WEFT_COMPAT_CREATE_CQ_INIT(create, create_user) .create_cq = weft_compat_create_cq

#endif

#ifdef WEFT_HAVE_IB_RESIZE_USER_CQ

#define WEFT_COMPAT_RESIZE_CQ(resize_user)
#define WEFT_COMPAT_RESIZE_CQ_INIT(resize_user) .resize_user_cq = resize_user

#else

/* Older kernels resize from the kernel too, without udata; newer ones never do. */
#define WEFT_COMPAT_RESIZE_CQ(resize_user)						\
	static int weft_compat_resize_cq(struct ib_cq *cq, int cqe,			\
					 struct ib_udata *udata)			\
	{										\
		if (cqe < 0)								\
			return -EINVAL;							\
		return udata ? resize_user(cq, cqe, udata) : -EOPNOTSUPP;		\
	}
#define WEFT_COMPAT_RESIZE_CQ_INIT(resize_user) .resize_cq = weft_compat_resize_cq

#endif

#define WEFT_IB_CQ_OPS(create, create_user, resize_user)	\
	WEFT_COMPAT_CREATE_CQ(create, create_user)		\
	WEFT_COMPAT_RESIZE_CQ(resize_user)			\
	static_assert(1)
#define WEFT_IB_CQ_INIT(create, create_user, resize_user)	\
	WEFT_COMPAT_CREATE_CQ_INIT(create, create_user),	\
	WEFT_COMPAT_RESIZE_CQ_INIT(resize_user)

#ifdef WEFT_HAVE_IB_REG_USER_MR_DMAH

#define WEFT_IB_MR_OPS(reg_user) \
	static_assert(1)
#define WEFT_IB_MR_INIT(reg_user) .reg_user_mr = reg_user

#else

struct ib_dmah;

#define WEFT_IB_MR_OPS(reg_user)							\
	static struct ib_mr *weft_compat_reg_user_mr(struct ib_pd *pd, u64 start,	\
						     u64 length, u64 virt, int access,	\
						     struct ib_udata *udata)		\
	{										\
		return reg_user(pd, start, length, virt, access, NULL, udata);		\
	}										\
	static_assert(1)
#define WEFT_IB_MR_INIT(reg_user) .reg_user_mr = weft_compat_reg_user_mr

#endif

#endif /* WEFT_COMPAT_IB_OPS_H */
