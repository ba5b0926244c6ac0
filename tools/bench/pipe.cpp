// SPDX-License-Identifier: MIT
// What the scheduler alone lets pass: two processes hand a byte to each other through pipes.
//
//   weft_bench_pipe MESSAGES
//
// Each sleeps until the other has written, as ib_send_lat -e does between its events, but with no
// RDMA in between. Prints one JSON record: half round trips in microseconds.
#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

namespace {

using namespace weft::bench;

struct Pipe {
    Pipe() {
        if (pipe(ends.data()))
            die("pipe");
    }
    void put() const {
        if (write(ends[1], "x", 1) != 1)
            die("write");
    }
    void get() const {
        char byte = 0;
        if (read(ends[0], &byte, 1) != 1)
            die("read");
    }
    std::array<int, 2> ends = {};
};

double percentile(const std::vector<double>& sorted, double part) {
    const auto last = static_cast<double>(sorted.size() - 1);
    return sorted[static_cast<size_t>(last * part)];
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: weft_bench_pipe MESSAGES\n", stderr);
        return 2;
    }
    const auto messages = number("MESSAGES", argv[1], 1, 100'000'000);
    std::vector<double> halves(messages);
    const Pipe there;
    const Pipe back;
    settle();
    const pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        for (std::uint64_t i = 0; i < messages; ++i) {
            there.get();
            back.put();
        }
        _exit(0);
    }
    for (double& half : halves) {
        const std::int64_t start = now_ns();
        there.put();
        back.get();
        half = static_cast<double>(now_ns() - start) / 2000;
    }
    waitpid(child, nullptr, 0);
    std::sort(halves.begin(), halves.end());
    std::printf("{\"messages\": %llu, \"typical_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
                "\"max_us\": %.2f}\n",
                static_cast<unsigned long long>(messages), percentile(halves, 0.5),
                percentile(halves, 0.99), percentile(halves, 0.999), halves.back());
    return 0;
}
