// SPDX-License-Identifier: MIT
// WRITEs over any number of QPs and threads, and what each of them costs.
//
//   weft_bench_stream --socket PATH DEVICE GID-INDEX                     serves one client, asleep
//   weft_bench_stream --socket PATH --client [OPTIONS] DEVICE GID-INDEX  prints one JSON record
//
// A thread has a CQ and --qps QPs, and posts to them in turn, with --depth requests in flight among
// all of them. The two ends meet at a Unix socket, which no network namespace hides. The server
// compares its memory with what was written last. With --memory nothing is written: the record says
// what the kernel holds for each QP.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <map>
#include <thread>
#include <type_traits>

#include <getopt.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs.h"

namespace {

using namespace weft::bench;

constexpr auto usage =
    "usage: weft_bench_stream --socket PATH DEVICE GID-INDEX\n"
    "       weft_bench_stream --socket PATH --client [--bytes B] [--messages M] [--depth D] [--qps "
    "N]\n"
    "           [--threads T] [--seconds S] [--timeout CODE] [--retry R] [--events] [--memory]\n"
    "           DEVICE GID-INDEX\n";

// The client's wishes; the server gets them as they are.
struct Options {
    std::uint64_t messages = 1000;
    std::uint32_t bytes = 65536, depth = 16, qps = 1, threads = 1;
    std::uint32_t seconds = 0; // 0: until all messages are done
    std::uint8_t timeout = 14, retry = 7, mtu = IBV_MTU_4096;
    std::uint8_t events = 0, memory = 0;
};

struct CommandLine {
    std::string path, device;
    int gid_index = 0;
    bool client = false;
    Options options;
};

// Where a thread's messages go.
struct Target {
    std::uint64_t address;
    std::uint32_t rkey;
};

// A connected socket that carries plain values.
class Wire {
public:
    explicit Wire(int fd)
        : fd_(fd) {}
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;
    ~Wire() { close(fd_); }

    template <typename T>
    void put(const std::vector<T>& values) const {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* at = reinterpret_cast<const char*>(values.data());
        for (size_t left = values.size() * sizeof(T); left;) {
            const ssize_t done = ::write(fd_, at, left);
            if (done <= 0)
                die("the other end");
            at += done;
            left -= static_cast<size_t>(done);
        }
    }
    template <typename T>
    std::vector<T> take(size_t count) const {
        static_assert(std::is_trivially_copyable_v<T>);
        std::vector<T> values(count);
        auto* at = reinterpret_cast<char*>(values.data());
        for (size_t left = count * sizeof(T); left;) {
            const ssize_t done = ::read(fd_, at, left);
            if (done <= 0) {
                std::fputs("the other end is gone\n", stderr);
                std::exit(1);
            }
            at += done;
            left -= static_cast<size_t>(done);
        }
        return values;
    }

private:
    int fd_;
};

sockaddr_un socket_address(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

int connect_to(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = socket_address(path);
    if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)))
        die(path);
    return fd;
}

int accept_at(const std::string& path) {
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = socket_address(path);
    unlink(path.c_str());
    if (listener < 0 ||
        bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ||
        listen(listener, 1))
        die(path);
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0)
        die(path);
    close(listener);
    unlink(path.c_str());
    return fd;
}

std::uint8_t pattern(size_t at) {
    return static_cast<std::uint8_t>(at * 31 + at / 251 + 1);
}

// One thread's things at either end.
struct Lane {
    Lane(const Device& device, const Options& options, bool sends)
        : buffer(device, options.bytes)
        , completions(device, static_cast<int>(options.depth) + 16, sends && options.events) {
        if (sends)
            for (size_t i = 0; i < buffer.memory.size(); i++)
                buffer.memory[i] = pattern(i);
    }

    void open(const Device& device, const Options& options) {
        for (std::uint32_t i = 0; i < options.qps; i++)
            qps.emplace_back(device, completions, Depth{.send = room(options), .recv = 1});
    }

    // Requests that one QP may have in flight.
    static std::uint32_t room(const Options& options) {
        return (options.depth + options.qps - 1) / options.qps;
    }

    Buffer buffer;
    Completions completions;
    std::vector<Qp> qps;
};

using Lanes = std::deque<Lane>;

Lanes make_lanes(const Device& device, const Options& options, bool sends) {
    Lanes lanes;
    for (std::uint32_t i = 0; i < options.threads; i++)
        lanes.emplace_back(device, options, sends);
    return lanes;
}

// Both ends at once; each waits until the other one has connected, too.
void open_and_connect(const Wire& wire, const Device& device, const Options& options,
                      Lanes& lanes) {
    std::vector<Peer> mine;
    for (Lane& lane : lanes) {
        lane.open(device, options);
        for (const Qp& qp : lane.qps)
            mine.push_back(qp.me());
    }
    wire.put(mine);
    const auto peers = wire.take<Peer>(mine.size());
    const Agreed agreed = {.mtu = static_cast<ibv_mtu>(options.mtu),
                           .timeout = options.timeout,
                           .retry = options.retry};
    size_t next = 0;
    for (const Lane& lane : lanes)
        for (const Qp& qp : lane.qps)
            qp.connect(peers[next++], agreed);
    wire.put(std::vector<char>{1});
    wire.take<char>(1);
}

int serve(const CommandLine& line) {
    const Device device(line.device.c_str(), line.gid_index);
    const Wire wire(accept_at(line.path));
    wire.put(std::vector{device.mtu});
    const Options options = wire.take<Options>(1).front();
    Lanes lanes = make_lanes(device, options, false);
    std::vector<Target> targets;
    for (const Lane& lane : lanes)
        targets.push_back({.address = lane.buffer.address(), .rkey = lane.buffer.mr->rkey});
    wire.put(targets);
    open_and_connect(wire, device, options, lanes);
    // Asleep until the client is done.
    wire.take<char>(1);
    char intact = 1;
    for (const Lane& lane : lanes)
        for (size_t i = 0; i < lane.buffer.memory.size(); i++)
            if (lane.buffer.memory[i] != pattern(i))
                intact = 0;
    wire.put(std::vector{intact});
    return 0;
}

// What a thread has to tell.
struct Outcome {
    std::uint64_t done = 0;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = 0;
    ibv_wc_status status = IBV_WC_SUCCESS;
};

// Posts to the QPs in turn while there is room, takes what has completed.
class Sender {
public:
    Sender(const Options& options, const Lane& lane, Target target)
        : options_(options)
        , lane_(lane)
        , target_(target)
        , in_flight_(lane.qps.size(), 0) {}

    Outcome run() {
        const std::uint64_t share = options_.messages / options_.threads;
        outcome_.first_ns = now_ns();
        const std::int64_t end = options_.seconds
                                     ? outcome_.first_ns + options_.seconds * INT64_C(1000000000)
                                     : std::numeric_limits<std::int64_t>::max();
        while (outcome_.done < share && outcome_.status == IBV_WC_SUCCESS) {
            while (posted_ < share && total_ < options_.depth &&
                   in_flight_[next_] < Lane::room(options_))
                post();
            take();
            if (outcome_.last_ns >= end)
                break;
        }
        return outcome_;
    }

private:
    void post() {
        lane_.qps[next_].write(lane_.buffer, options_.bytes, target_.address, target_.rkey, next_);
        in_flight_[next_]++;
        total_++;
        posted_++;
        next_ = (next_ + 1) % lane_.qps.size();
    }

    void take() {
        std::array<ibv_wc, 16> found = {};
        const int got = lane_.completions.wait(found);
        for (int i = 0; i < got; i++) {
            if (found[i].status != IBV_WC_SUCCESS) {
                outcome_.status = found[i].status;
                outcome_.last_ns = now_ns();
                return;
            }
            in_flight_[found[i].wr_id]--;
            total_--;
            outcome_.done++;
        }
        if (options_.seconds || outcome_.done == options_.messages / options_.threads)
            outcome_.last_ns = now_ns();
    }

    const Options& options_;
    const Lane& lane_;
    Target target_;
    std::vector<std::uint32_t> in_flight_; // by QP
    std::uint32_t total_ = 0;
    std::uint64_t posted_ = 0;
    size_t next_ = 0;
    Outcome outcome_;
};

// Of /proc/meminfo, in KiB.
std::map<std::string, std::int64_t> meminfo() {
    std::map<std::string, std::int64_t> found;
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::string rest;
    for (std::int64_t value = 0; file >> name >> value; std::getline(file, rest))
        found[name.substr(0, name.size() - 1)] = value;
    return found;
}

void print_memory(const Options& options, const std::map<std::string, std::int64_t>& before) {
    auto now = meminfo();
    const auto grown = [&](const char* name) { return (now[name] - before.at(name)) * 1024; };
    const std::int64_t qps = 2LL * options.qps * options.threads;
    std::int64_t sum = 0;
    std::printf("{\"qps\": %lld", static_cast<long long>(qps));
    for (const char* name : {"Slab", "VmallocUsed", "Percpu", "PageTables", "KernelStack"}) {
        sum += grown(name);
        std::printf(", \"%s\": %lld", name, static_cast<long long>(grown(name) / qps));
    }
    // The same from the other side: what is no longer free and no process's.
    const std::int64_t unfree = -grown("MemFree") - grown("AnonPages") - grown("Cached");
    std::printf(", \"unfree\": %lld, \"bytes_per_qp\": %lld}\n",
                static_cast<long long>(unfree / qps), static_cast<long long>(sum / qps));
}

// The threads begin together.
std::vector<Outcome> run_threads(const Options& options, const Lanes& lanes,
                                 const std::vector<Target>& targets) {
    std::vector<Outcome> outcomes(options.threads);
    if (options.threads == 1) {
        outcomes[0] = Sender(options, lanes[0], targets[0]).run();
        return outcomes;
    }
    std::atomic<bool> go = false;
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < options.threads; i++)
        threads.emplace_back([&, i] {
            go.wait(false);
            outcomes[i] = Sender(options, lanes[i], targets[i]).run();
        });
    go = true;
    go.notify_all();
    for (std::thread& thread : threads)
        thread.join();
    return outcomes;
}

int print_outcome(const Options& options, const std::vector<Outcome>& outcomes, bool intact) {
    Outcome all;
    for (const Outcome& one : outcomes) {
        all.done += one.done;
        all.first_ns = std::min(all.first_ns, one.first_ns);
        all.last_ns = std::max(all.last_ns, one.last_ns);
        if (one.status != IBV_WC_SUCCESS)
            all.status = one.status;
    }
    const double ns = static_cast<double>(std::max<std::int64_t>(all.last_ns - all.first_ns, 1));
    const auto done = static_cast<double>(all.done);
    std::printf("{\"messages\": %llu, \"bytes\": %u, \"qps\": %u, \"threads\": %u, \"depth\": %u, "
                "\"seconds\": %.6f, \"ns_per_message\": %.1f, \"mb_per_s\": %.3f, \"status\": "
                "\"%s\", \"intact\": %s}\n",
                static_cast<unsigned long long>(all.done), options.bytes, options.qps,
                options.threads, options.depth, ns / 1e9, ns / std::max(done, 1.0),
                done * options.bytes / 1048576 / (ns / 1e9), ibv_wc_status_str(all.status),
                intact ? "true" : "false");
    // A QP that gave up is a result, wrong bytes are none.
    return intact || all.done < options.threads ? 0 : 1;
}

int ask(const CommandLine& line) {
    Options options = line.options;
    const Device device(line.device.c_str(), line.gid_index);
    const Wire wire(connect_to(line.path));
    options.mtu = std::min<std::uint8_t>(device.mtu, wire.take<ibv_mtu>(1).front());
    wire.put(std::vector{options});
    const auto targets = wire.take<Target>(options.threads);
    Lanes lanes = make_lanes(device, options, true);
    const auto before = meminfo();
    open_and_connect(wire, device, options, lanes);
    if (options.memory) {
        print_memory(options, before);
        wire.put(std::vector<char>{1});
        wire.take<char>(1);
        return 0;
    }
    settle();
    const auto outcomes = run_threads(options, lanes, targets);
    wire.put(std::vector<char>{1});
    return print_outcome(options, outcomes, wire.take<char>(1).front());
}

bool read_option(int which, CommandLine& line) {
    Options& options = line.options;
    const auto value = [&](const char* name, std::uint64_t least, std::uint64_t most) {
        return number(name, optarg, least, most);
    };
    switch (which) {
    case 'p':
        line.path = optarg;
        break;
    case 'c':
        line.client = true;
        break;
    case 'b':
        options.bytes = value("--bytes", 1, 1U << 30);
        break;
    case 'm':
        options.messages = value("--messages", 1, UINT64_C(1) << 40);
        break;
    case 'd':
        options.depth = value("--depth", 1, 8192);
        break;
    case 'q':
        options.qps = value("--qps", 1, 16384);
        break;
    case 't':
        options.threads = value("--threads", 1, 64);
        break;
    case 's':
        options.seconds = value("--seconds", 1, 1000000);
        break;
    case 'o':
        options.timeout = value("--timeout", 0, 31);
        break;
    case 'r':
        options.retry = value("--retry", 0, 7);
        break;
    case 'e':
        options.events = 1;
        break;
    case 'M':
        options.memory = 1;
        break;
    default:
        return false;
    }
    return true;
}

// False: not understood.
bool read_line(int argc, char** argv, CommandLine& line) {
    static const std::array<option, 13> known = {{{"socket", 1, nullptr, 'p'},
                                                  {"client", 0, nullptr, 'c'},
                                                  {"bytes", 1, nullptr, 'b'},
                                                  {"messages", 1, nullptr, 'm'},
                                                  {"depth", 1, nullptr, 'd'},
                                                  {"qps", 1, nullptr, 'q'},
                                                  {"threads", 1, nullptr, 't'},
                                                  {"seconds", 1, nullptr, 's'},
                                                  {"timeout", 1, nullptr, 'o'},
                                                  {"retry", 1, nullptr, 'r'},
                                                  {"events", 0, nullptr, 'e'},
                                                  {"memory", 0, nullptr, 'M'},
                                                  {}}};
    for (int which = 0; (which = getopt_long(argc, argv, "", known.data(), nullptr)) != -1;)
        if (!read_option(which, line))
            return false;
    if (argc - optind != 2 || line.path.empty() || line.options.messages < line.options.threads)
        return false;
    line.device = argv[optind];
    line.gid_index = static_cast<int>(number("GID-INDEX", argv[optind + 1], 0, 255));
    return true;
}

} // namespace

int main(int argc, char** argv) {
    CommandLine line;
    if (!read_line(argc, argv, line)) {
        std::fputs(usage, stderr);
        return 2;
    }
    return line.client ? ask(line) : serve(line);
}
