// SPDX-License-Identifier: MIT
// weft: configures and shows what has no standard tool. The only place that prints and exits.
#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "link.h"

namespace {

enum ExitCode { exit_done = 0, exit_refused = 1, exit_usage = 2 };

constexpr auto footer =
    "Exit codes: 0 done, 1 refused or failed (the reason is on stderr), 2 wrong usage.\n"
    "See weft(8), weft-link(8).";

int report(const weft::Result<std::string>& result) {
    if (!result) {
        fmt::print(stderr, "weft: {}\n", result.error().text);
        return result.error().code == EINVAL ? exit_usage : exit_refused;
    }
    fmt::print("{}", *result);
    return std::fflush(stdout) == 0 ? exit_done : exit_refused;
}

int run(int argc, char** argv) {
    CLI::App app(
        "Configures and shows what has no standard tool in Weft, a RoCEv2 NIC in software.",
        "weft");
    app.set_version_flag("-V,--version", "weft " WEFT_VERSION);
    app.footer(footer);
    app.require_subcommand(1);

    weft::cli::LinkShow show;
    weft::cli::LinkSet set;
    weft::cli::LinkWhy why;
    std::optional<weft::Result<std::string>> result;

    auto* link = app.add_subcommand("link", "RDMA links of weft_ib");
    link->footer("Links are made by: rdma link add NAME type weft netdev DEV");
    link->require_subcommand(1);

    auto* show_command = link->add_subcommand("show", "settings of one link or of all");
    show_command->add_option("DEV", show.device, "RDMA device, or its netdev");
    show_command->add_flag("-s,--stats", show.stats, "with the counters of each receive queue");
    show_command->add_flag("-j,--json", show.json, "as JSON");
    show_command->callback([&] { result = weft::cli::run(show); });

    auto* set_command = link->add_subcommand("set", "change settings, all that are given or none");
    set_command->add_option("DEV", set.device, "RDMA device, or its netdev")->required();
    set_command->add_option("SETTING VALUE", set.words,
                            "rx-queues N, rx-usecs N, rx-frames N, icrc auto|always, "
                            "shortcut on|off, placement ordered|early");
    set_command->add_flag("-j,--json", set.json, "print the link's new settings as JSON");
    set_command->callback([&] { result = weft::cli::run(set); });

    auto* why_command = link->add_subcommand("why", "why the last `rdma link add` was refused");
    why_command->add_flag("-j,--json", why.json, "as JSON");
    why_command->callback([&] { result = weft::cli::run(why); });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_done : exit_usage;
    }
    return report(*result);
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fputs("weft: ", stderr);
        std::fputs(error.what(), stderr);
        std::fputs("\n", stderr);
        return exit_refused;
    }
}
