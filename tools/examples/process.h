// SPDX-License-Identifier: MIT
// Another process of this machine: stop it, see how much it ran, look into its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>
#include <weft/result.h>

// What the scheduler has counted for a process (its first thread).
struct RunTime {
    uint64_t on_cpu_ns = 0;
    uint64_t context_switches = 0; // voluntary and not

    bool operator==(const RunTime&) const = default;
};

weft::Result<RunTime> run_time(pid_t pid);

// Bytes of @pid's memory; needs the right to trace it.
weft::Result<std::vector<char>> read_memory(pid_t pid, uint64_t address, size_t bytes);

// Stopped from construction by stop() to the end of the object's life.
class Stopped {
public:
    // Waits until the process no longer runs. Refuses a process that is not named @name.
    static weft::Result<Stopped> stop(pid_t pid, const std::string& name);
    ~Stopped();
    Stopped(Stopped&& other) noexcept
        : pid_(other.pid_) {
        other.pid_ = 0;
    }
    Stopped& operator=(Stopped&&) = delete;

private:
    explicit Stopped(pid_t pid)
        : pid_(pid) {}
    pid_t pid_;
};
