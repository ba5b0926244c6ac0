// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink family weft_ib: settings and queues of links, and why the last one was refused.
 *
 * Everything runs under RTNL, which keeps weft_links, each link's queues and its settings as they
 * are. A socket sees the links whose netdev is in its network namespace; the name of an RDMA device
 * may change while it is read, which gives the old name, the new one or a mixture, terminated.
 *
 * Dumps resume after the ifindex (and queue) that came last: links that come or go between two
 * parts are shown or not, all others exactly once.
 */
#include <linux/rtnetlink.h>
#include <net/genetlink.h>
#include <net/sock.h>
#include <weft/weft_ib.h>

#include "link.h"
#include "rx.h"

struct weft_dump_cursor {
	int ifindex; /* of the last link that is done; 0: none is */
	unsigned int queue; /* next one of the link after it */
};

/* What link-set is to change; starts as what is. */
struct weft_link_settings {
	struct weft_dev_cfg cfg;
	u32 num_rxq;
};

static struct genl_family weft_genl_family;

static int weft_link_ifindex(const struct weft_dev *dev, struct net *net)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);

	if (!netdev || dev->unregistering || !net_eq(dev_net(netdev), net))
		return 0;
	return netdev->ifindex;
}

/* The link in @net with the smallest ifindex above @after. */
static struct weft_dev *weft_link_next(struct net *net, int after, int *ifindex)
{
	struct weft_dev *dev, *next = NULL;

	list_for_each_entry(dev, &weft_links, node) {
		int index = weft_link_ifindex(dev, net);

		if (index > after && (!next || index < *ifindex)) {
			next = dev;
			*ifindex = index;
		}
	}
	return next;
}

/* The link that a request names by @name, @ifindex or both. */
static struct weft_dev *weft_link_lookup(struct net *net, const struct nlattr *name,
					 const struct nlattr *ifindex,
					 struct netlink_ext_ack *extack)
{
	struct weft_dev *dev;

	if (!name && !ifindex) {
		NL_SET_ERR_MSG(extack, "a link is named by name or by ifindex");
		return ERR_PTR(-EINVAL);
	}
	list_for_each_entry(dev, &weft_links, node) {
		u32 index = weft_link_ifindex(dev, net);

		if (!index || (ifindex && index != nla_get_u32(ifindex)))
			continue;
		if (!name || !nla_strcmp(name, dev->ib_dev.name))
			return dev;
	}
	NL_SET_ERR_MSG_ATTR(extack, name ?: ifindex,
			    "no such Weft link in this network namespace");
	return ERR_PTR(-ENODEV);
}

/* --- link-get --- */

static int weft_link_fill(struct sk_buff *skb, u32 portid, u32 seq, int flags,
			  const struct weft_dev *dev)
{
	const struct net_device *netdev = rtnl_dereference(dev->netdev);
	const struct weft_dev_cfg *cfg = &dev->cfg;
	void *header;

	header = genlmsg_put(skb, portid, seq, &weft_genl_family, flags, WEFT_IB_CMD_LINK_GET);
	if (!header)
		return -EMSGSIZE;
	if (nla_put_string(skb, WEFT_IB_A_LINK_NAME, dev->ib_dev.name) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_IFINDEX, netdev->ifindex) ||
	    nla_put_string(skb, WEFT_IB_A_LINK_NETDEV, netdev->name) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_RX_QUEUES, dev->num_rxq) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_RX_USECS, cfg->rx_mod.usecs) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_RX_FRAMES, cfg->rx_mod.frames) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_ICRC,
			cfg->icrc_always ? WEFT_IB_ICRC_ALWAYS : WEFT_IB_ICRC_AUTO) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_SHORTCUT,
			cfg->shortcut ? WEFT_IB_SHORTCUT_ON : WEFT_IB_SHORTCUT_OFF) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_GSI,
			dev->gsi_refused ? WEFT_IB_GSI_RDMA_RXE : WEFT_IB_GSI_OWN) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_PROVIDER,
			weft_dev_has_stock_provider(dev) ? WEFT_IB_PROVIDER_RXE :
							   WEFT_IB_PROVIDER_NONE) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_NUM_QPS, atomic_read(&dev->num_qp)) ||
	    nla_put_u32(skb, WEFT_IB_A_LINK_PLACEMENT,
			cfg->place_early ? WEFT_IB_PLACEMENT_EARLY : WEFT_IB_PLACEMENT_ORDERED)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static int weft_link_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct weft_dev *dev;
	struct sk_buff *skb;
	int err;

	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;

	rtnl_lock();
	dev = weft_link_lookup(genl_info_net(info), info->attrs[WEFT_IB_A_LINK_NAME],
			       info->attrs[WEFT_IB_A_LINK_IFINDEX], info->extack);
	err = PTR_ERR_OR_ZERO(dev);
	if (!err)
		err = weft_link_fill(skb, info->snd_portid, info->snd_seq, 0, dev);
	rtnl_unlock();

	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return genlmsg_reply(skb, info);
}

static int weft_link_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct weft_dump_cursor *cursor = (void *)cb->ctx;
	struct net *net = sock_net(cb->skb->sk);
	struct weft_dev *dev;
	int ifindex, err = 0;

	rtnl_lock();
	while (!err && (dev = weft_link_next(net, cursor->ifindex, &ifindex))) {
		err = weft_link_fill(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				     NLM_F_MULTI, dev);
		if (!err)
			cursor->ifindex = ifindex;
	}
	rtnl_unlock();
	return skb->len ?: err;
}

/* --- queue-get --- */

static int weft_queue_fill(struct sk_buff *skb, const struct netlink_callback *cb,
			   const struct weft_dev *dev, int ifindex, unsigned int index)
{
	const struct weft_rxq *rxq = &dev->rxq[index];
	const struct weft_rxq_stats *stats = &rxq->stats;
	const struct {
		int attr;
		u64 value;
	} counters[] = {
		{ WEFT_IB_A_QUEUE_PACKETS, READ_ONCE(stats->packets) },
		{ WEFT_IB_A_QUEUE_BYTES, READ_ONCE(stats->bytes) },
		{ WEFT_IB_A_QUEUE_POLLS, READ_ONCE(stats->polls) },
		{ WEFT_IB_A_QUEUE_MODERATED, READ_ONCE(stats->moderated) },
		{ WEFT_IB_A_QUEUE_DROPS, READ_ONCE(stats->drops) },
		{ WEFT_IB_A_QUEUE_QP_SERVICES, READ_ONCE(stats->qp_services) },
	};
	void *header;
	int i;

	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			     &weft_genl_family, NLM_F_MULTI, WEFT_IB_CMD_QUEUE_GET);
	if (!header)
		return -EMSGSIZE;
	if (nla_put_string(skb, WEFT_IB_A_QUEUE_NAME, dev->ib_dev.name) ||
	    nla_put_u32(skb, WEFT_IB_A_QUEUE_IFINDEX, ifindex) ||
	    nla_put_u32(skb, WEFT_IB_A_QUEUE_INDEX, index) ||
	    nla_put_u32(skb, WEFT_IB_A_QUEUE_CPU, READ_ONCE(rxq->cpu)))
		goto cancel;
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (nla_put_u64_64bit(skb, counters[i].attr, counters[i].value,
				      WEFT_IB_A_QUEUE_PAD))
			goto cancel;
	genlmsg_end(skb, header);
	return 0;

cancel:
	genlmsg_cancel(skb, header);
	return -EMSGSIZE;
}

/* The queues of a link from the cursor on. */
static int weft_queues_fill(struct sk_buff *skb, struct netlink_callback *cb,
			    const struct weft_dev *dev, int ifindex)
{
	struct weft_dump_cursor *cursor = (void *)cb->ctx;
	int err;

	for (; cursor->queue < dev->num_rxq; cursor->queue++) {
		err = weft_queue_fill(skb, cb, dev, ifindex, cursor->queue);
		if (err)
			return err;
	}
	cursor->ifindex = ifindex;
	cursor->queue = 0;
	return 0;
}

static const struct nla_policy weft_queue_get_policy[WEFT_IB_A_QUEUE_IFINDEX + 1] = {
	[WEFT_IB_A_QUEUE_NAME] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[WEFT_IB_A_QUEUE_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
};

static int weft_queue_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *attrs[WEFT_IB_A_QUEUE_IFINDEX + 1];
	struct weft_dump_cursor *cursor = (void *)cb->ctx;
	struct net *net = sock_net(cb->skb->sk);
	struct weft_dev *dev;
	int ifindex, err;

	err = genlmsg_parse(cb->nlh, &weft_genl_family, attrs, WEFT_IB_A_QUEUE_IFINDEX,
			    weft_queue_get_policy, cb->extack);
	if (err)
		return err;

	rtnl_lock();
	if (attrs[WEFT_IB_A_QUEUE_NAME] || attrs[WEFT_IB_A_QUEUE_IFINDEX]) {
		dev = weft_link_lookup(net, attrs[WEFT_IB_A_QUEUE_NAME],
				       attrs[WEFT_IB_A_QUEUE_IFINDEX], cb->extack);
		if (IS_ERR(dev))
			err = PTR_ERR(dev);
		else if (!cursor->ifindex)
			err = weft_queues_fill(skb, cb, dev, weft_link_ifindex(dev, net));
	} else {
		while (!err && (dev = weft_link_next(net, cursor->ifindex, &ifindex)))
			err = weft_queues_fill(skb, cb, dev, ifindex);
	}
	rtnl_unlock();
	return skb->len ?: err;
}

/* --- link-set --- */

static int weft_setting_refuse(struct genl_info *info, int attr, const char *text)
{
	NL_SET_BAD_ATTR(info->extack, info->attrs[attr]);
	if (info->extack)
		info->extack->_msg = text;
	return -ERANGE;
}

static int weft_settings_parse_rx(struct genl_info *info, struct weft_link_settings *to)
{
	struct nlattr **attrs = info->attrs;

	if (attrs[WEFT_IB_A_LINK_RX_QUEUES])
		to->num_rxq = nla_get_u32(attrs[WEFT_IB_A_LINK_RX_QUEUES]);
	if (attrs[WEFT_IB_A_LINK_RX_USECS])
		to->cfg.rx_mod.usecs = nla_get_u32(attrs[WEFT_IB_A_LINK_RX_USECS]);
	if (attrs[WEFT_IB_A_LINK_RX_FRAMES])
		to->cfg.rx_mod.frames = nla_get_u32(attrs[WEFT_IB_A_LINK_RX_FRAMES]);

	if (!to->num_rxq || to->num_rxq > WEFT_IB_RX_QUEUES_MAX)
		return weft_setting_refuse(info, WEFT_IB_A_LINK_RX_QUEUES,
					   "rx-queues is 1 to " __stringify(WEFT_IB_RX_QUEUES_MAX));
	if (to->cfg.rx_mod.usecs > WEFT_IB_RX_USECS_MAX)
		return weft_setting_refuse(info, WEFT_IB_A_LINK_RX_USECS,
					   "rx-usecs is 0 to " __stringify(WEFT_IB_RX_USECS_MAX));
	if (to->cfg.rx_mod.frames > WEFT_IB_RX_FRAMES_MAX)
		return weft_setting_refuse(info, WEFT_IB_A_LINK_RX_FRAMES,
					   "rx-frames is 0 to " __stringify(WEFT_IB_RX_FRAMES_MAX));
	if (to->cfg.rx_mod.frames > 1 && !to->cfg.rx_mod.usecs) {
		NL_SET_ERR_MSG(info->extack,
			       "rx-frames above 1 needs rx-usecs, or the last packets would wait for ever");
		return -EINVAL;
	}
	return 0;
}

static int weft_settings_parse(struct genl_info *info, struct weft_link_settings *to)
{
	const struct nlattr *icrc = info->attrs[WEFT_IB_A_LINK_ICRC];
	const struct nlattr *shortcut = info->attrs[WEFT_IB_A_LINK_SHORTCUT];
	const struct nlattr *placement = info->attrs[WEFT_IB_A_LINK_PLACEMENT];

	if (!icrc && !shortcut && !placement && !info->attrs[WEFT_IB_A_LINK_RX_QUEUES] &&
	    !info->attrs[WEFT_IB_A_LINK_RX_USECS] && !info->attrs[WEFT_IB_A_LINK_RX_FRAMES]) {
		NL_SET_ERR_MSG(info->extack, "nothing to set");
		return -EINVAL;
	}
	if (icrc) {
		if (nla_get_u32(icrc) > WEFT_IB_ICRC_ALWAYS)
			return weft_setting_refuse(info, WEFT_IB_A_LINK_ICRC,
						   "icrc is 0 (auto) or 1 (always)");
		to->cfg.icrc_always = nla_get_u32(icrc) == WEFT_IB_ICRC_ALWAYS;
	}
	if (shortcut) {
		if (nla_get_u32(shortcut) > WEFT_IB_SHORTCUT_ON)
			return weft_setting_refuse(info, WEFT_IB_A_LINK_SHORTCUT,
						   "shortcut is 0 (off) or 1 (on)");
		to->cfg.shortcut = nla_get_u32(shortcut) == WEFT_IB_SHORTCUT_ON;
	}
	if (placement) {
		if (nla_get_u32(placement) > WEFT_IB_PLACEMENT_EARLY)
			return weft_setting_refuse(info, WEFT_IB_A_LINK_PLACEMENT,
						   "placement is 0 (ordered) or 1 (early)");
		to->cfg.place_early = nla_get_u32(placement) == WEFT_IB_PLACEMENT_EARLY;
	}
	return weft_settings_parse_rx(info, to);
}

/* What can fail comes first, so that a refusal changes nothing. */
static int weft_settings_apply(struct weft_dev *dev, const struct weft_link_settings *to,
			       struct netlink_ext_ack *extack)
{
	int err;

	if (to->num_rxq != dev->num_rxq) {
		err = weft_rx_resize(dev, to->num_rxq);
		if (err) {
			NL_SET_ERR_MSG(extack, "the receive queues could not be changed");
			return err;
		}
	}
	WRITE_ONCE(dev->cfg.rx_mod.usecs, to->cfg.rx_mod.usecs);
	WRITE_ONCE(dev->cfg.rx_mod.frames, to->cfg.rx_mod.frames);
	WRITE_ONCE(dev->cfg.icrc_always, to->cfg.icrc_always);
	WRITE_ONCE(dev->cfg.shortcut, to->cfg.shortcut);
	WRITE_ONCE(dev->cfg.place_early, to->cfg.place_early);
	return 0;
}

static int weft_link_set_doit(struct sk_buff *request, struct genl_info *info)
{
	struct weft_link_settings settings;
	struct weft_dev *dev;
	int err;

	BUILD_BUG_ON(WEFT_IB_RX_QUEUES_MAX != WEFT_MAX_RX_QUEUES);
	BUILD_BUG_ON(WEFT_IB_RX_FRAMES_MAX > WEFT_RXQ_LIMIT);

	rtnl_lock();
	dev = weft_link_lookup(genl_info_net(info), info->attrs[WEFT_IB_A_LINK_NAME],
			       info->attrs[WEFT_IB_A_LINK_IFINDEX], info->extack);
	err = PTR_ERR_OR_ZERO(dev);
	if (err)
		goto unlock;
	settings.cfg = dev->cfg;
	settings.num_rxq = dev->num_rxq;
	err = weft_settings_parse(info, &settings);
	if (!err)
		err = weft_settings_apply(dev, &settings, info->extack);
unlock:
	rtnl_unlock();
	return err;
}

/* --- refusal-get --- */

static int weft_refusal_fill(struct sk_buff *skb, struct genl_info *info,
			     const struct weft_refusal *refusal)
{
	void *header;

	header = genlmsg_put_reply(skb, info, &weft_genl_family, 0, WEFT_IB_CMD_REFUSAL_GET);
	if (!header)
		return -EMSGSIZE;
	if (nla_put_string(skb, WEFT_IB_A_REFUSAL_NAME, refusal->name) ||
	    nla_put_string(skb, WEFT_IB_A_REFUSAL_NETDEV, refusal->netdev) ||
	    nla_put_u32(skb, WEFT_IB_A_REFUSAL_ERROR, -refusal->error) ||
	    nla_put_string(skb, WEFT_IB_A_REFUSAL_TEXT, refusal->text))
		return -EMSGSIZE;
	genlmsg_end(skb, header);
	return 0;
}

static int weft_refusal_get_doit(struct sk_buff *request, struct genl_info *info)
{
	struct weft_refusal refusal;
	struct sk_buff *skb;
	int err;

	if (!weft_link_last_refusal(&refusal)) {
		NL_SET_ERR_MSG(info->extack, "no link was refused since weft_ib was loaded");
		return -ENODATA;
	}
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	err = weft_refusal_fill(skb, info, &refusal);
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return genlmsg_reply(skb, info);
}

/* --- the family --- */

static const struct nla_policy weft_link_get_policy[WEFT_IB_A_LINK_IFINDEX + 1] = {
	[WEFT_IB_A_LINK_NAME] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[WEFT_IB_A_LINK_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* Values are checked in weft_settings_parse(), which can say what is allowed. */
static const struct nla_policy weft_link_set_policy[WEFT_IB_A_LINK_PLACEMENT + 1] = {
	[WEFT_IB_A_LINK_NAME] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[WEFT_IB_A_LINK_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[WEFT_IB_A_LINK_RX_QUEUES] = { .type = NLA_U32 },
	[WEFT_IB_A_LINK_RX_USECS] = { .type = NLA_U32 },
	[WEFT_IB_A_LINK_RX_FRAMES] = { .type = NLA_U32 },
	[WEFT_IB_A_LINK_ICRC] = { .type = NLA_U32 },
	[WEFT_IB_A_LINK_SHORTCUT] = { .type = NLA_U32 },
	[WEFT_IB_A_LINK_PLACEMENT] = { .type = NLA_U32 },
};

/* Links are added by the host's administrator alone; their settings belong to their namespace's. */
static const struct genl_ops weft_genl_ops[] = {
	{
		.cmd = WEFT_IB_CMD_LINK_GET,
		.doit = weft_link_get_doit,
		.dumpit = weft_link_get_dumpit,
		.policy = weft_link_get_policy,
		.maxattr = ARRAY_SIZE(weft_link_get_policy) - 1,
	},
	{
		.cmd = WEFT_IB_CMD_LINK_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.doit = weft_link_set_doit,
		.policy = weft_link_set_policy,
		.maxattr = ARRAY_SIZE(weft_link_set_policy) - 1,
	},
	{
		.cmd = WEFT_IB_CMD_QUEUE_GET,
		.dumpit = weft_queue_get_dumpit,
		.policy = weft_queue_get_policy,
		.maxattr = ARRAY_SIZE(weft_queue_get_policy) - 1,
	},
	{
		.cmd = WEFT_IB_CMD_REFUSAL_GET,
		.flags = GENL_ADMIN_PERM,
		.doit = weft_refusal_get_doit,
	},
};

static struct genl_family weft_genl_family __ro_after_init = {
	.name = WEFT_IB_FAMILY_NAME,
	.version = WEFT_IB_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = weft_genl_ops,
	.n_ops = ARRAY_SIZE(weft_genl_ops),
};

int weft_netlink_init(void)
{
	BUILD_BUG_ON(sizeof(struct weft_dump_cursor) > sizeof_field(struct netlink_callback, ctx));

	return genl_register_family(&weft_genl_family);
}

void weft_netlink_uninit(void)
{
	genl_unregister_family(&weft_genl_family);
}
