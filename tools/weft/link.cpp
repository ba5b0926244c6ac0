// SPDX-License-Identifier: MIT
// weft link: links, their settings and queues, as text or JSON.
#include "link.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <weft/ib.h>

namespace weft::cli {
namespace {

using nlohmann::ordered_json;

const char* name_of(weft_ib_icrc icrc) {
    return icrc == WEFT_IB_ICRC_ALWAYS ? "always" : "auto";
}
const char* name_of(weft_ib_shortcut on) {
    return on == WEFT_IB_SHORTCUT_ON ? "on" : "off";
}
const char* name_of(weft_ib_placement placement) {
    return placement == WEFT_IB_PLACEMENT_EARLY ? "early" : "ordered";
}
const char* name_of(weft_ib_gsi gsi) {
    return gsi == WEFT_IB_GSI_RDMA_RXE ? "rdma_rxe" : "own";
}
const char* name_of(weft_ib_provider by) {
    return by == WEFT_IB_PROVIDER_RXE ? "rxe" : "none";
}

ordered_json to_json(const Link& link) {
    return {{"name", link.name},
            {"netdev", link.netdev},
            {"ifindex", link.ifindex},
            {"rx_queues", link.rx_queues},
            {"rx_usecs", link.rx_wait.count()},
            {"rx_frames", link.rx_frames},
            {"icrc", name_of(link.icrc)},
            {"shortcut", name_of(link.shortcut)},
            {"placement", name_of(link.placement)},
            {"gsi", name_of(link.gsi)},
            {"provider", name_of(link.provider)},
            {"qps", link.qps}};
}

ordered_json to_json(const RxQueue& queue) {
    return {{"index", queue.index},     {"cpu", queue.cpu},
            {"packets", queue.packets}, {"bytes", queue.bytes},
            {"polls", queue.polls},     {"moderated", queue.moderated},
            {"drops", queue.drops},     {"qp_services", queue.qp_services}};
}

std::string to_text(const Link& link) {
    return fmt::format("{} netdev {} rx-queues {} rx-usecs {} rx-frames {} icrc {} shortcut {} "
                       "placement {} gsi {} provider {} qps {}\n",
                       link.name, link.netdev, link.rx_queues, link.rx_wait.count(), link.rx_frames,
                       name_of(link.icrc), name_of(link.shortcut), name_of(link.placement),
                       name_of(link.gsi), name_of(link.provider), link.qps);
}

std::string to_text(const std::vector<RxQueue>& queues) {
    constexpr auto row = "    {:>5} {:>4} {:>12} {:>15} {:>10} {:>10} {:>8} {:>12}\n";
    std::string text = fmt::format(row, "queue", "cpu", "packets", "bytes", "polls", "moderated",
                                   "drops", "qp-services");
    for (const RxQueue& queue : queues)
        text += fmt::format(row, queue.index, queue.cpu, queue.packets, queue.bytes, queue.polls,
                            queue.moderated, queue.drops, queue.qp_services);
    return text;
}

std::string dump(const ordered_json& json) {
    return json.dump(4) + "\n";
}

Error usage(std::string text) {
    return {EINVAL, std::move(text)};
}

std::optional<uint32_t> to_number(std::string_view word) {
    uint32_t value = 0;
    const char* end = word.data() + word.size();
    const auto [rest, code] = std::from_chars(word.data(), end, value);
    if (code != std::errc() || rest != end)
        return std::nullopt;
    return value;
}

// One word pair of `weft link set`.
Status parse(std::string_view name, std::string_view value, LinkSettings& settings) {
    if (name == "icrc") {
        if (value != "auto" && value != "always")
            return usage(fmt::format("icrc is auto or always, not '{}'", value));
        settings.icrc = value == "always" ? WEFT_IB_ICRC_ALWAYS : WEFT_IB_ICRC_AUTO;
        return ok();
    }
    if (name == "shortcut") {
        if (value != "on" && value != "off")
            return usage(fmt::format("shortcut is on or off, not '{}'", value));
        settings.shortcut = value == "on" ? WEFT_IB_SHORTCUT_ON : WEFT_IB_SHORTCUT_OFF;
        return ok();
    }
    if (name == "placement") {
        if (value != "ordered" && value != "early")
            return usage(fmt::format("placement is ordered or early, not '{}'", value));
        settings.placement = value == "early" ? WEFT_IB_PLACEMENT_EARLY : WEFT_IB_PLACEMENT_ORDERED;
        return ok();
    }
    if (name != "rx-queues" && name != "rx-usecs" && name != "rx-frames")
        return usage(fmt::format("unknown setting '{}': one of rx-queues, rx-usecs, rx-frames, "
                                 "icrc, shortcut, placement",
                                 name));
    const auto number = to_number(value);
    if (!number)
        return usage(fmt::format("{} takes a number, not '{}'", name, value));
    if (name == "rx-queues")
        settings.rx_queues = number;
    else if (name == "rx-usecs")
        settings.rx_wait = std::chrono::microseconds(*number);
    else
        settings.rx_frames = number;
    return ok();
}

Result<LinkSettings> parse(const std::vector<std::string>& words) {
    LinkSettings settings;
    if (words.empty())
        return usage("nothing to set: rx-queues N, rx-usecs N, rx-frames N, icrc auto|always, "
                     "shortcut on|off, placement ordered|early");
    for (size_t i = 0; i < words.size(); i += 2) {
        if (i + 1 == words.size())
            return usage(fmt::format("'{}' has no value", words[i]));
        if (auto status = parse(words[i], words[i + 1], settings); !status)
            return status.error();
    }
    return settings;
}

} // namespace

Result<std::string> run(const LinkShow& command) {
    auto ib = Ib::open();
    if (!ib)
        return ib.error();
    std::vector<Link> links;
    if (command.device.empty()) {
        auto all = ib->links();
        if (!all)
            return all.error();
        links = std::move(*all);
    } else {
        auto link = ib->find(command.device);
        if (!link)
            return link.error();
        links.push_back(std::move(*link));
    }

    std::map<uint32_t, std::vector<RxQueue>> queues; // by ifindex
    if (command.stats) {
        auto all = ib->queues(command.device.empty() ? nullptr : &links.front());
        if (!all)
            return all.error();
        for (const RxQueue& queue : *all)
            queues[queue.ifindex].push_back(queue);
    }

    std::string text;
    ordered_json json = ordered_json::array();
    for (const Link& link : links) {
        text += to_text(link);
        json.push_back(to_json(link));
        if (!command.stats)
            continue;
        text += to_text(queues[link.ifindex]);
        json.back()["queues"] = ordered_json::array();
        for (const RxQueue& queue : queues[link.ifindex])
            json.back()["queues"].push_back(to_json(queue));
    }
    return command.json ? dump(json) : text;
}

Result<std::string> run(const LinkSet& command) {
    auto settings = parse(command.words);
    if (!settings)
        return settings.error();
    auto ib = Ib::open();
    if (!ib)
        return ib.error();
    auto link = ib->find(command.device);
    if (!link)
        return link.error();
    if (auto status = ib->set(*link, *settings); !status) {
        // EINVAL is the sign of wrong usage here; the kernel's own is a refusal.
        Error error = status.error();
        error.code = error.code == EINVAL ? ERANGE : error.code;
        return error;
    }
    if (!command.json)
        return std::string();
    auto now = ib->find(command.device);
    if (!now)
        return now.error();
    return dump(to_json(*now));
}

Result<std::string> run(const LinkWhy& command) {
    auto ib = Ib::open();
    if (!ib)
        return ib.error();
    auto last = ib->last_refusal();
    if (!last)
        return last.error();
    const auto& refusal = *last;
    if (command.json) {
        if (!refusal)
            return dump(nullptr);
        return dump({{"name", refusal->name},
                     {"netdev", refusal->netdev},
                     {"errno", refusal->error},
                     {"reason", refusal->text}});
    }
    if (!refusal)
        return std::string("no link was refused since weft_ib was loaded\n");
    return fmt::format("{} on {}: {} ({})\n", refusal->name, refusal->netdev, refusal->text,
                       std::strerror(refusal->error));
}

} // namespace weft::cli
