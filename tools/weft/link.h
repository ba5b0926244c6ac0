// SPDX-License-Identifier: MIT
// weft link: what each subcommand prints.
#pragma once

#include <string>
#include <vector>

#include <weft/result.h>

namespace weft::cli {

struct LinkShow {
    std::string device; // empty: all
    bool stats = false;
    bool json = false;
};

struct LinkSet {
    std::string device;
    std::vector<std::string> words; // name and value in turn
    bool json = false;
};

struct LinkWhy {
    bool json = false;
};

// EINVAL stands for wrong usage.
Result<std::string> run(const LinkShow& command);
Result<std::string> run(const LinkSet& command);
Result<std::string> run(const LinkWhy& command);

} // namespace weft::cli
