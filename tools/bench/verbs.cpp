// SPDX-License-Identifier: MIT
// Owners of verbs objects for the measuring programs.
#include "verbs.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <poll.h>
#include <sys/mman.h>

namespace weft::bench {

void die(const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(1);
}

std::uint64_t number(const char* option, const char* text, std::uint64_t least,
                     std::uint64_t most) {
    std::uint64_t value = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    if (error != std::errc() || rest != end || value < least || value > most) {
        std::fprintf(stderr, "%s %s: a number from %llu to %llu\n", option, text,
                     static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
        std::exit(2);
    }
    return value;
}

std::int64_t now_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void settle() {
    if (mlockall(MCL_CURRENT))
        std::perror("mlockall: pages may be missing at first");
}

Device::Device(const char* name, int gid_index)
    : gid_index(gid_index) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count && !context; i++)
        if (std::string(ibv_get_device_name(list[i])) == name)
            context.reset(ibv_open_device(list[i]));
    if (list)
        ibv_free_device_list(list);
    if (!context)
        die(std::string("device ") + name);
    ibv_port_attr port = {};
    if (ibv_query_port(context.get(), 1, &port) || ibv_query_gid(context.get(), 1, gid_index, &gid))
        die(std::string("port 1 of ") + name);
    mtu = port.active_mtu;
    pd.reset(ibv_alloc_pd(context.get()));
    if (!pd)
        die("protection domain");
}

Buffer::Buffer(const Device& device, size_t bytes)
    : memory(bytes)
    , mr(ibv_reg_mr(device.pd.get(), memory.data(), bytes,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) {
    if (!mr)
        die("memory region");
}

Completions::Completions(const Device& device, int entries, bool events) {
    if (events) {
        channel.reset(ibv_create_comp_channel(device.context.get()));
        if (!channel)
            die("completion channel");
    }
    cq.reset(ibv_create_cq(device.context.get(), entries, nullptr, channel.get(), 0));
    if (!cq || (events && ibv_req_notify_cq(cq.get(), 0)))
        die("completion queue");
}

int Completions::poll(std::span<ibv_wc> into) const {
    const int got = ibv_poll_cq(cq.get(), static_cast<int>(into.size()), into.data());
    if (got < 0)
        die("polling");
    return got;
}

int Completions::wait(std::span<ibv_wc> into, int ms) const {
    const std::int64_t until = now_ns() + ms * INT64_C(1000000);
    for (;;) {
        if (const int got = poll(into))
            return got;
        if (ms >= 0 && now_ns() >= until)
            return 0;
        if (!channel)
            continue;
        pollfd ready = {.fd = channel->fd, .events = POLLIN, .revents = 0};
        if (::poll(&ready, 1, ms) <= 0)
            continue;
        ibv_cq* which = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(channel.get(), &which, &context))
            die("completion event");
        ibv_ack_cq_events(which, 1);
        // What comes from now on makes an event; what came before is found by the next poll.
        if (ibv_req_notify_cq(which, 0))
            die("arming");
    }
}

Qp::Qp(const Device& device, const Completions& completions, Depth depth)
    : device_(&device) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = completions.cq.get();
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = depth.send,
                .max_recv_wr = depth.recv,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_.reset(ibv_create_qp(device.pd.get(), &init));
    if (!qp_)
        die("queue pair");
}

Peer Qp::me() const {
    return {.gid = device_->gid, .qpn = qp_->qp_num, .psn = (qp_->qp_num * 7919) & 0xffffff};
}

void Qp::connect(const Peer& peer, const Agreed& agreed) const {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (ibv_modify_qp(qp_.get(), &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = agreed.mtu;
    attr.dest_qp_num = peer.qpn;
    attr.rq_psn = peer.psn;
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
    attr.min_rnr_timer = agreed.min_rnr;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device_->gid_index);
    attr.ah_attr.grh.hop_limit = 64;
    if (ibv_modify_qp(qp_.get(), &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        die("RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = me().psn;
    attr.timeout = agreed.timeout;
    attr.retry_cnt = agreed.retry;
    attr.rnr_retry = agreed.rnr_retry;
    if (ibv_modify_qp(qp_.get(), &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
        die("RTS");
}

void Qp::reset() const {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RESET;
    if (ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE))
        die("RESET");
}

namespace {

void post(ibv_qp* qp, ibv_send_wr& wr, const Buffer& from, std::uint32_t bytes) {
    ibv_sge piece = {.addr = from.address(), .length = bytes, .lkey = from.key()};
    ibv_send_wr* bad = nullptr;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    errno = ibv_post_send(qp, &wr, &bad);
    if (errno)
        die("posting");
}

} // namespace

void Qp::write(const Buffer& from, std::uint32_t bytes, std::uint64_t to, std::uint32_t rkey,
               std::uint64_t id) const {
    ibv_send_wr wr = {};
    wr.wr_id = id;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma = {.remote_addr = to, .rkey = rkey};
    post(qp_.get(), wr, from, bytes);
}

void Qp::send(const Buffer& from, std::uint32_t bytes) const {
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_SEND;
    post(qp_.get(), wr, from, bytes);
}

void Qp::recv(const Buffer& into) const {
    ibv_sge piece = {.addr = into.address(),
                     .length = static_cast<std::uint32_t>(into.memory.size()),
                     .lkey = into.key()};
    ibv_recv_wr wr = {};
    ibv_recv_wr* bad = nullptr;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    errno = ibv_post_recv(qp_.get(), &wr, &bad);
    if (errno)
        die("posting a receive");
}

} // namespace weft::bench
