// SPDX-License-Identifier: MIT
// Another process of this machine, by signals and /proc.
#include "process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/core.h>
#include <sys/uio.h>

namespace {

weft::Error failure(pid_t pid, const std::string& what, int code) {
    return {code, fmt::format("process {}: {}: {}", pid, what, std::strerror(code))};
}

std::string proc(pid_t pid, const char* file) {
    return fmt::format("/proc/{}/{}", pid, file);
}

// The letter after the name in parentheses, which may itself contain any of them.
char state_of(pid_t pid) {
    std::string line;
    std::ifstream stat(proc(pid, "stat"));
    std::getline(stat, line);
    const size_t end = line.rfind(')');
    return end != std::string::npos && end + 2 < line.size() ? line[end + 2] : '?';
}

} // namespace

weft::Result<RunTime> run_time(pid_t pid) {
    RunTime time;
    std::ifstream schedstat(proc(pid, "schedstat"));
    if (!(schedstat >> time.on_cpu_ns))
        return failure(pid, "schedstat", ENOENT);

    std::ifstream status(proc(pid, "status"));
    int found = 0;
    for (std::string word; status >> word;) {
        uint64_t count = 0;
        if (word != "voluntary_ctxt_switches:" && word != "nonvoluntary_ctxt_switches:")
            continue;
        status >> count;
        time.context_switches += count;
        found++;
    }
    if (found != 2)
        return failure(pid, "status", ENOENT);
    return time;
}

weft::Result<std::vector<char>> read_memory(pid_t pid, uint64_t address, size_t bytes) {
    std::vector<char> memory(bytes);
    const iovec here{memory.data(), bytes};
    const iovec there{reinterpret_cast<void*>(address), bytes}; // NOLINT: an address of its own
    const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got != static_cast<ssize_t>(bytes))
        return failure(pid, "reading its memory", got < 0 ? errno : EFAULT);
    return memory;
}

weft::Result<Stopped> Stopped::stop(pid_t pid, const std::string& name) {
    using namespace std::chrono_literals;

    std::string comm;
    std::ifstream file(proc(pid, "comm"));
    std::getline(file, comm);
    if (comm != name)
        return weft::Error{
            ESRCH, fmt::format("process {} is not {}: is the server on this machine?", pid, name)};
    if (kill(pid, SIGSTOP) != 0)
        return failure(pid, "SIGSTOP", errno);
    Stopped stopped(pid);
    for (int tries = 0; state_of(pid) != 'T'; tries++) {
        if (tries == 5000)
            return failure(pid, "does not stop", ETIMEDOUT);
        std::this_thread::sleep_for(1ms);
    }
    return stopped;
}

Stopped::~Stopped() {
    if (pid_)
        kill(pid_, SIGCONT);
}
