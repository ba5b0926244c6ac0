// SPDX-License-Identifier: MIT
// A value or the reason why there is none.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace weft {

struct Error {
    int code = 0;     // errno
    std::string text; // what failed, on what, and what to do; no full stop, no line end
};

template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value)
        : state_(std::move(value)) {}
    Result(Error error)
        : state_(std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    // Only with a value.
    T& operator*() { return *std::get_if<0>(&state_); }
    const T& operator*() const { return *std::get_if<0>(&state_); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    // Only without one.
    Error& error() { return *std::get_if<1>(&state_); }
    const Error& error() const { return *std::get_if<1>(&state_); }

private:
    std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;
inline Status ok() {
    return std::monostate{};
}

} // namespace weft
