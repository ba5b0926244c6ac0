/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The udata helpers of newer kernels: a request may be shorter or longer than the kernel's
 * structure as long as what is missing was optional and what is extra is zero; a response
 * is cut to the user's buffer, and a longer buffer is filled with zeros.
 */
#ifndef WEFT_COMPAT_RDMA_UVERBS_IOCTL_H
#define WEFT_COMPAT_RDMA_UVERBS_IOCTL_H

#include <rdma/ib_verbs.h>
#include_next <rdma/uverbs_ioctl.h>

#ifndef WEFT_HAVE_IB_UDATA_HELPERS
#include <linux/uaccess.h>

static inline int _ib_copy_validate_udata_in(struct ib_udata *udata, void *req, size_t size,
					     size_t least)
{
	int err;

	if (udata->inlen < least)
		return -EINVAL;
	if (!size) {
		err = check_zeroed_user(udata->inbuf, udata->inlen);
		return err < 0 ? err : err ? 0 : -EOPNOTSUPP;
	}
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

static inline int _ib_respond_udata(struct ib_udata *udata, const void *resp, size_t size)
{
	size_t copied = min(size, udata->outlen);

	if (copied && copy_to_user(udata->outbuf, resp, copied))
		return -EFAULT;
	if (udata->outlen > copied &&
	    clear_user(udata->outbuf + copied, udata->outlen - copied))
		return -EFAULT;
	return 0;
}

#define ib_copy_validate_udata_in(udata, req, end_member)	\
	_ib_copy_validate_udata_in(udata, &(req), sizeof(req),	\
				   offsetofend(typeof(req), end_member))
#define ib_respond_udata(udata, resp) _ib_respond_udata(udata, &(resp), sizeof(resp))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	return udata && udata->inlen ? _ib_copy_validate_udata_in(udata, NULL, 0, 0) : 0;
}

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	return udata && udata->outlen ? _ib_respond_udata(udata, NULL, 0) : 0;
}
#endif

#endif /* WEFT_COMPAT_RDMA_UVERBS_IOCTL_H */
