// SPDX-License-Identifier: MIT
// The family weft_ib as C++ types.
#include <weft/ib.h>

#include <cerrno>

#include <fmt/core.h>

namespace weft {
namespace {

Link to_link(const Reply& reply) {
    Link link;
    link.name = reply.string(WEFT_IB_A_LINK_NAME);
    link.netdev = reply.string(WEFT_IB_A_LINK_NETDEV);
    link.ifindex = reply.u32(WEFT_IB_A_LINK_IFINDEX);
    link.rx_queues = reply.u32(WEFT_IB_A_LINK_RX_QUEUES);
    link.rx_wait = std::chrono::microseconds(reply.u32(WEFT_IB_A_LINK_RX_USECS));
    link.rx_frames = reply.u32(WEFT_IB_A_LINK_RX_FRAMES);
    link.icrc = static_cast<weft_ib_icrc>(reply.u32(WEFT_IB_A_LINK_ICRC));
    link.shortcut = static_cast<weft_ib_shortcut>(reply.u32(WEFT_IB_A_LINK_SHORTCUT));
    link.gsi = static_cast<weft_ib_gsi>(reply.u32(WEFT_IB_A_LINK_GSI));
    link.provider = static_cast<weft_ib_provider>(reply.u32(WEFT_IB_A_LINK_PROVIDER));
    link.qps = reply.u32(WEFT_IB_A_LINK_NUM_QPS);
    link.placement = static_cast<weft_ib_placement>(reply.u32(WEFT_IB_A_LINK_PLACEMENT));
    return link;
}

RxQueue to_queue(const Reply& reply) {
    RxQueue queue;
    queue.ifindex = reply.u32(WEFT_IB_A_QUEUE_IFINDEX);
    queue.index = reply.u32(WEFT_IB_A_QUEUE_INDEX);
    queue.cpu = reply.u32(WEFT_IB_A_QUEUE_CPU);
    queue.packets = reply.u64(WEFT_IB_A_QUEUE_PACKETS);
    queue.bytes = reply.u64(WEFT_IB_A_QUEUE_BYTES);
    queue.polls = reply.u64(WEFT_IB_A_QUEUE_POLLS);
    queue.moderated = reply.u64(WEFT_IB_A_QUEUE_MODERATED);
    queue.drops = reply.u64(WEFT_IB_A_QUEUE_DROPS);
    queue.qp_services = reply.u64(WEFT_IB_A_QUEUE_QP_SERVICES);
    return queue;
}

Refusal to_refusal(const Reply& reply) {
    Refusal refusal;
    refusal.name = reply.string(WEFT_IB_A_REFUSAL_NAME);
    refusal.netdev = reply.string(WEFT_IB_A_REFUSAL_NETDEV);
    refusal.error = static_cast<int>(reply.u32(WEFT_IB_A_REFUSAL_ERROR));
    refusal.text = reply.string(WEFT_IB_A_REFUSAL_TEXT);
    return refusal;
}

// A value that no attribute can carry is sent as the largest, which the kernel refuses by name.
uint32_t usecs(std::chrono::microseconds wait) {
    constexpr auto most = std::chrono::microseconds(UINT32_MAX);
    return wait.count() < 0 || wait > most ? UINT32_MAX : static_cast<uint32_t>(wait.count());
}

} // namespace

Result<Ib> Ib::open() {
    auto netlink = Netlink::open(WEFT_IB_FAMILY_NAME, WEFT_IB_FAMILY_VERSION);
    if (!netlink)
        return netlink.error();
    return Ib(std::move(*netlink));
}

Result<std::vector<Link>> Ib::links() {
    std::vector<Link> links;
    auto status = netlink_.send(Request(WEFT_IB_CMD_LINK_GET, true),
                                [&](const Reply& reply) { links.push_back(to_link(reply)); });
    if (!status)
        return status.error();
    return links;
}

Result<Link> Ib::find(std::string_view name) {
    auto all = links();
    if (!all)
        return all.error();
    for (const Link& link : *all)
        if (link.name == name)
            return link;
    for (const Link& link : *all)
        if (link.netdev == name)
            return link;
    return Error{ENODEV, fmt::format("{0}: no such Weft link in this network namespace (weft link "
                                     "show lists them; rdma link add {0} type weft netdev DEV "
                                     "makes one)",
                                     name)};
}

Status Ib::set(const Link& link, const LinkSettings& settings) {
    Request request(WEFT_IB_CMD_LINK_SET);
    request.u32(WEFT_IB_A_LINK_IFINDEX, link.ifindex);
    if (settings.rx_queues)
        request.u32(WEFT_IB_A_LINK_RX_QUEUES, *settings.rx_queues);
    if (settings.rx_wait)
        request.u32(WEFT_IB_A_LINK_RX_USECS, usecs(*settings.rx_wait));
    if (settings.rx_frames)
        request.u32(WEFT_IB_A_LINK_RX_FRAMES, *settings.rx_frames);
    if (settings.icrc)
        request.u32(WEFT_IB_A_LINK_ICRC, *settings.icrc);
    if (settings.shortcut)
        request.u32(WEFT_IB_A_LINK_SHORTCUT, *settings.shortcut);
    if (settings.placement)
        request.u32(WEFT_IB_A_LINK_PLACEMENT, *settings.placement);

    auto status = netlink_.send(std::move(request), [](const Reply&) {});
    if (!status)
        return Error{status.error().code, fmt::format("{}: {}", link.name, status.error().text)};
    return ok();
}

Result<std::vector<RxQueue>> Ib::queues(const Link* link) {
    std::vector<RxQueue> queues;
    Request request(WEFT_IB_CMD_QUEUE_GET, true);
    if (link)
        request.u32(WEFT_IB_A_QUEUE_IFINDEX, link->ifindex);
    auto status = netlink_.send(std::move(request),
                                [&](const Reply& reply) { queues.push_back(to_queue(reply)); });
    if (!status)
        return status.error();
    return queues;
}

Result<std::optional<Refusal>> Ib::last_refusal() {
    std::optional<Refusal> refusal;
    auto status = netlink_.send(Request(WEFT_IB_CMD_REFUSAL_GET),
                                [&](const Reply& reply) { refusal = to_refusal(reply); });
    if (!status && status.error().code != ENODATA)
        return status.error();
    return refusal;
}

} // namespace weft
