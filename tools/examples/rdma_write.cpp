// SPDX-License-Identifier: MIT
// One-sided WRITE: a client fills the memory of a server whose process does not run.
//
//   rdma_write server
//   rdma_write client ADDRESS --stop
//
// The server registers a buffer of zeros and tells the client its address and key while the
// connection is made. From then on its CPU is not needed: with --stop the client stops the server's
// process, writes 'X' into every byte, and checks that the bytes changed while the process's run
// time and context switches did not. Then it lets the server go on, which checks each byte itself.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <endian.h>
#include <fmt/core.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include "process.h"

namespace {

using weft::Error;
using weft::Result;
using weft::Status;

struct Options {
    std::string address;
    std::string port = "7471";
    size_t bytes = 1 << 20;
    bool stop = false;
};

// What a client needs to write into the server's buffer; big endian, in the CM's private data.
struct Invitation {
    uint64_t address;
    uint32_t rkey;
    uint32_t bytes;
    uint32_t pid;
} __attribute__((packed));

template <auto release>
struct Release {
    template <typename T>
    void operator()(T* handle) const {
        release(handle);
    }
};
using AddressInfo = std::unique_ptr<rdma_addrinfo, Release<rdma_freeaddrinfo>>;
using Endpoint = std::unique_ptr<rdma_cm_id, Release<rdma_destroy_ep>>;
using Region = std::unique_ptr<ibv_mr, Release<rdma_dereg_mr>>;

Error failed(const std::string& what) {
    const int code = errno;
    return {code, fmt::format("{}: {}", what, std::strerror(code))};
}

// Listens if there is no address.
Result<Endpoint> make_endpoint(const Options& options) {
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_flags = options.address.empty() ? RAI_PASSIVE : 0;
    const char* address = options.address.empty() ? nullptr : options.address.c_str();
    rdma_addrinfo* found = nullptr;
    if (rdma_getaddrinfo(address, options.port.c_str(), &hints, &found) != 0)
        return failed("looking up " + options.address);
    const AddressInfo info(found);

    ibv_qp_init_attr attributes{};
    attributes.cap.max_send_wr = attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
    rdma_cm_id* id = nullptr;
    if (rdma_create_ep(&id, info.get(), nullptr, &attributes) != 0)
        return failed(options.address.empty() ? "listening"
                                              : "no RDMA device leads to " + options.address);
    return Endpoint(id);
}

std::string start_of(const std::vector<char>& buffer) {
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(8, buffer.size()); i++)
        text += fmt::format("{:02x} ", static_cast<unsigned char>(buffer[i]));
    return text + "...";
}

Status serve(const Options& options) {
    auto listener = make_endpoint(options);
    if (!listener)
        return listener.error();
    if (rdma_listen(listener->get(), 1) != 0)
        return failed("listening");
    fmt::print("server: process {} listens on port {}\n", getpid(), options.port);
    std::fflush(stdout);

    rdma_cm_id* accepted = nullptr;
    if (rdma_get_request(listener->get(), &accepted) != 0)
        return failed("waiting for a client");
    const Endpoint id(accepted);
    std::vector<char> buffer(options.bytes, 0);
    const Region region(rdma_reg_write(id.get(), buffer.data(), buffer.size()));
    if (!region)
        return failed("registering the buffer");
    fmt::print("server: {} bytes are  {}\n", buffer.size(), start_of(buffer));
    std::fflush(stdout);

    Invitation invitation{htobe64(reinterpret_cast<uint64_t>(buffer.data())), htobe32(region->rkey),
                          htobe32(static_cast<uint32_t>(buffer.size())),
                          htobe32(static_cast<uint32_t>(getpid()))};
    rdma_conn_param parameters{};
    parameters.private_data = &invitation;
    parameters.private_data_len = sizeof(invitation);
    if (rdma_accept(id.get(), &parameters) != 0)
        return failed("accepting");

    // Nothing more to do than to wait for the end: no receive is posted, no completion comes.
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(id->channel, &event) != 0)
        return failed("waiting for the end");
    const auto why = event->event;
    rdma_ack_cm_event(event);
    if (why != RDMA_CM_EVENT_DISCONNECTED)
        return Error{EPROTO, fmt::format("unexpected event {}", rdma_event_str(why))};

    const auto written = std::count(buffer.begin(), buffer.end(), 'X');
    fmt::print("server: now they are  {}  {} of {} bytes are 'X'\n", start_of(buffer), written,
               buffer.size());
    if (static_cast<size_t>(written) != buffer.size())
        return Error{EIO, "the buffer is not what the client wrote"};
    return weft::ok();
}

// Writes 'X' over the whole of the server's buffer and waits for the completion.
Status write_all(rdma_cm_id* id, const Invitation& to) {
    std::vector<char> source(to.bytes, 'X');
    const Region region(rdma_reg_msgs(id, source.data(), source.size()));
    if (!region)
        return failed("registering the source");
    if (rdma_post_write(id, nullptr, source.data(), source.size(), region.get(), IBV_SEND_SIGNALED,
                        to.address, to.rkey) != 0)
        return failed("posting the WRITE");
    ibv_wc completion{};
    if (rdma_get_send_comp(id, &completion) != 1)
        return failed("waiting for the completion");
    if (completion.status != IBV_WC_SUCCESS)
        return Error{
            EIO, fmt::format("the WRITE completed with: {}", ibv_wc_status_str(completion.status))};
    fmt::print("client: WRITE of {} bytes completed\n", to.bytes);
    return weft::ok();
}

// The same with the server's process stopped; compares what the scheduler and its memory show.
Status write_while_stopped(rdma_cm_id* id, const Invitation& to) {
    const auto pid = static_cast<pid_t>(to.pid);
    auto stopped = Stopped::stop(pid, "rdma_write");
    if (!stopped)
        return stopped.error();
    auto before = run_time(pid);
    if (!before)
        return before.error();
    fmt::print("client: the server's process {} is stopped; it has run {} ns, with {} context "
               "switches\n",
               pid, before->on_cpu_ns, before->context_switches);

    if (auto status = write_all(id, to); !status)
        return status;

    auto memory = read_memory(pid, to.address, to.bytes);
    if (!memory)
        return memory.error();
    auto after = run_time(pid);
    if (!after)
        return after.error();
    const auto written = std::count(memory->begin(), memory->end(), 'X');
    fmt::print("client: {} of {} bytes of its memory are 'X'; it has run {} ns, with {} context "
               "switches\n",
               written, to.bytes, after->on_cpu_ns, after->context_switches);
    if (written != to.bytes)
        return Error{EIO, "the server's memory is not what was written"};
    if (*after != *before)
        return Error{EIO, "the server's process ran meanwhile"};
    fmt::print("client: the server did not run; now it goes on\n");
    return weft::ok();
}

Status connect_and_write(const Options& options) {
    auto id = make_endpoint(options);
    if (!id)
        return id.error();
    rdma_conn_param parameters{};
    parameters.retry_count = 7;
    if (rdma_connect(id->get(), &parameters) != 0)
        return failed("connecting to " + options.address);
    const auto& connection = (*id)->event->param.conn;
    if (connection.private_data_len < sizeof(Invitation))
        return Error{EPROTO, options.address + " is no rdma_write server"};
    Invitation to{};
    std::memcpy(&to, connection.private_data, sizeof(to));
    to = {be64toh(to.address), be32toh(to.rkey), be32toh(to.bytes), be32toh(to.pid)};

    auto status = options.stop ? write_while_stopped(id->get(), to) : write_all(id->get(), to);
    if (rdma_disconnect(id->get()) != 0 && status)
        return failed("disconnecting");
    return status;
}

int run(int argc, char** argv) {
    Options options;
    CLI::App app("A one-sided WRITE into the memory of a server that does not run.", "rdma_write");
    app.require_subcommand(1);
    auto* server =
        app.add_subcommand("server", "offer a buffer of zeros, wait until it is written");
    server->add_option("--bytes", options.bytes, "size of the buffer")
        ->check(CLI::Range(size_t{1}, size_t{1} << 30))
        ->capture_default_str();
    auto* client = app.add_subcommand("client", "write 'X' over a server's buffer");
    client->add_option("ADDRESS", options.address, "of the server")->required();
    client->add_flag("--stop", options.stop,
                     "stop the server's process meanwhile (same machine, any network namespace)");
    for (auto* command : {server, client})
        command->add_option("--port", options.port, "port of rdma_cm")->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    const auto status = *server ? serve(options) : connect_and_write(options);
    if (!status) {
        fmt::print(stderr, "rdma_write: {}\n", status.error().text);
        return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fputs(error.what(), stderr);
        return 1;
    }
}
