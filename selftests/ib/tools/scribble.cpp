// SPDX-License-Identifier: MIT
// A hostile owner of rings: one thread scribbles over the rings that stock librxe shares with the
// kernel, another rings doorbells meanwhile.
//
// usage: weft_scribble DEVICE GID-INDEX SECONDS SEED
//
// Two kinds of scribbling take turns: noise over whole rings, and work requests that look right but
// for some fields. Doorbells go to the kernel directly, since librxe itself trusts its rings. When
// a QP is in error it is reset and connected anew. Around the registered memory there is memory
// that no work request may reach: exit code 1 if a byte of it has changed.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr size_t page = 4096;
constexpr size_t registered_bytes = 16 * page;
constexpr size_t canary_bytes = 16 * page;
constexpr std::uint8_t canary = 0xa5;
// Of struct rxe_queue_buf: the indices, and where the slots begin.
constexpr size_t producer_at = 128, consumer_at = 256, slots_at = 384;

struct Ring {
    std::span<std::uint8_t> bytes;
};

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(2);
}

// Canary, registered memory, canary; one mapping.
struct Memory {
    std::uint8_t* all = nullptr;
    static constexpr size_t size = registered_bytes + 2 * canary_bytes;

    Memory() {
        void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            die("mmap");
        all = static_cast<std::uint8_t*>(at);
        std::memset(all, canary, size);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { munmap(all, size); }

    [[nodiscard]] std::uint8_t* mine() const { return all + canary_bytes; }
    [[nodiscard]] bool intact() const {
        const auto untouched = [](std::uint8_t byte) { return byte == canary; };
        return std::all_of(all, all + canary_bytes, untouched) &&
               std::all_of(mine() + registered_bytes, all + size, untouched);
    }
};

// Everything that this process has mapped of the uverbs device.
std::vector<Ring> find_rings() {
    std::vector<Ring> rings;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/uverbs") == std::string::npos &&
            line.find("infiniband") == std::string::npos)
            continue;
        if (line.find("rw-s") == std::string::npos)
            continue;
        std::istringstream words(line);
        std::uintptr_t from = 0;
        std::uintptr_t to = 0;
        char dash = 0;
        words >> std::hex >> from >> dash >> to;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what the file gives
        rings.push_back({{reinterpret_cast<std::uint8_t*>(from), to - from}});
    }
    return rings;
}

struct Verbs {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_mr* mr = nullptr;
    ibv_cq* cq = nullptr;
    ibv_srq* srq = nullptr;
    std::array<ibv_qp*, 3> qps = {}; // RC with an SRQ, RC, UD; each is connected to itself
    ibv_ah* ah = nullptr;
    ibv_gid gid = {};
    int gid_index = 0;
};

ibv_context* open_device(const char* name) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ibv_context* context = nullptr;
    for (int i = 0; list && i < count; i++)
        if (std::string(ibv_get_device_name(list[i])) == name)
            context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    return context;
}

ibv_ah_attr path_to_self(const Verbs& v) {
    ibv_ah_attr path = {};
    path.is_global = 1;
    path.grh.dgid = v.gid;
    path.grh.sgid_index = static_cast<std::uint8_t>(v.gid_index);
    path.grh.hop_limit = 64;
    path.port_num = 1;
    return path;
}

// From any state to RTS, connected to itself. A failure is part of the game.
void revive(const Verbs& v, ibv_qp* qp) {
    const bool datagrams = qp->qp_type == IBV_QPT_UD;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RESET;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = 0x1234;
    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ibv_modify_qp(qp, &attr,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                      (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr = path_to_self(v);
    ibv_modify_qp(qp, &attr,
                  datagrams ? IBV_QP_STATE
                            : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 8;
    attr.retry_cnt = attr.rnr_retry = 1;
    ibv_modify_qp(qp, &attr,
                  datagrams ? IBV_QP_STATE | IBV_QP_SQ_PSN
                            : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

ibv_qp* make_qp(const Verbs& v, ibv_qp_type type, ibv_srq* srq) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = v.cq;
    init.srq = srq;
    init.qp_type = type;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 32,
                .max_recv_wr = 32,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64};
    return ibv_create_qp(v.pd, &init);
}

// One proper work request of each kind, so that the rings hold what the scribbler starts from.
void post_examples(const Verbs& v, ibv_qp* qp) {
    ibv_sge sge = {
        .addr = reinterpret_cast<std::uintptr_t>(v.mr->addr), .length = 3000, .lkey = v.mr->lkey};
    ibv_recv_wr recv = {.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad_recv = nullptr;
    if (qp->srq)
        ibv_post_srq_recv(qp->srq, &recv, &bad_recv);
    else
        ibv_post_recv(qp, &recv, &bad_recv);
    for (const auto opcode :
         {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
        ibv_send_wr wr = {};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        if (qp->qp_type == IBV_QPT_UD) {
            wr.opcode = IBV_WR_SEND;
            wr.wr.ud = {.ah = v.ah, .remote_qpn = qp->qp_num, .remote_qkey = 0x1234};
            sge.length = 500;
        } else if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            sge.length = 8;
            wr.wr.atomic.remote_addr = sge.addr;
            wr.wr.atomic.rkey = v.mr->rkey;
        } else {
            wr.wr.rdma = {.remote_addr = sge.addr + 4096, .rkey = v.mr->rkey};
        }
        ibv_send_wr* bad = nullptr;
        ibv_post_send(qp, &wr, &bad);
    }
}

void open_all(Verbs& v, const char* device, int gid_index, const Memory& memory) {
    v.context = open_device(device);
    v.gid_index = gid_index;
    if (!v.context || ibv_query_gid(v.context, 1, gid_index, &v.gid))
        die("device");
    v.pd = ibv_alloc_pd(v.context);
    v.mr = ibv_reg_mr(v.pd, memory.mine(), registered_bytes,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC);
    v.cq = ibv_create_cq(v.context, 256, nullptr, nullptr, 0);
    ibv_srq_init_attr srq = {.srq_context = nullptr,
                             .attr = {.max_wr = 32, .max_sge = 4, .srq_limit = 0}};
    v.srq = ibv_create_srq(v.pd, &srq);
    ibv_ah_attr path = path_to_self(v);
    v.ah = ibv_create_ah(v.pd, &path);
    v.qps = {make_qp(v, IBV_QPT_RC, v.srq), make_qp(v, IBV_QPT_RC, nullptr),
             make_qp(v, IBV_QPT_UD, nullptr)};
    if (!v.mr || !v.cq || !v.srq || !v.ah ||
        std::any_of(v.qps.begin(), v.qps.end(), [](ibv_qp* qp) { return !qp; }))
        die("verbs objects");
    for (ibv_qp* qp : v.qps) {
        revive(v, qp);
        post_examples(v, qp);
    }
}

// What librxe writes after it has filled the ring; the kernel then looks into the ring.
void doorbell(const Verbs& v, const ibv_qp* qp) {
    struct {
        ib_uverbs_cmd_hdr head;
        ib_uverbs_post_send post;
    } command = {};
    ib_uverbs_post_send_resp answer = {};
    command.head = {.command = IB_USER_VERBS_CMD_POST_SEND,
                    .in_words = sizeof(command) / 4,
                    .out_words = sizeof(answer) / 4};
    command.post.response = reinterpret_cast<std::uintptr_t>(&answer);
    command.post.qp_handle = qp->handle;
    command.post.wqe_size = sizeof(ibv_send_wr);
    if (write(v.context->cmd_fd, &command, sizeof(command)) < 0)
        return; // the QP is in error, or the kernel refuses what it has read: both are fine
}

class Scribbler {
public:
    Scribbler(const Verbs& v, std::uint64_t seed)
        : rings_(find_rings())
        , random_(seed) {
        // Values that are right somewhere are worse than noise.
        const auto address = reinterpret_cast<std::uintptr_t>(v.mr->addr);
        likely_ = {0,
                   1,
                   2,
                   31,
                   32,
                   33,
                   0x7fffffff,
                   0x80000000,
                   0xffffffff,
                   v.mr->lkey,
                   v.mr->rkey,
                   static_cast<std::uint32_t>(address),
                   static_cast<std::uint32_t>(address >> 32),
                   registered_bytes,
                   registered_bytes + 1,
                   v.qps[0]->qp_num,
                   v.qps[2]->qp_num,
                   v.ah->handle,
                   512,
                   4096};
        for (const Ring& ring : rings_)
            images_.emplace_back(ring.bytes.begin(), ring.bytes.end());
    }

    [[nodiscard]] size_t rings() const { return rings_.size(); }

    void once() {
        const size_t which = random_() % rings_.size();
        const auto bytes = rings_[which].bytes;
        switch (random_() % 8) {
        case 0:
            for (int i = 0; i < 64; i++)
                put(bytes, random_() % (bytes.size() - 4), static_cast<std::uint32_t>(random_()));
            break;
        case 1:
            put(bytes, producer_at, pick());
            put(bytes, consumer_at, pick());
            break;
        default:
            plausible(which);
        }
    }

private:
    // The proper image with a few fields changed, and one slot more to look at.
    void plausible(size_t which) {
        const auto bytes = rings_[which].bytes;
        const auto& image = images_[which];
        std::copy(image.begin() + slots_at, image.end(), bytes.begin() + slots_at);
        for (auto left = random_() % 4; left; left--)
            put(bytes,
                slots_at +
                    random_() % (std::min<size_t>(bytes.size(), 2048) - slots_at - 4) / 4 * 4,
                pick());
        std::uint32_t producer = 0;
        std::memcpy(&producer, &bytes[producer_at], 4);
        put(bytes, producer_at, (producer + 1) % 32);
    }

    std::uint32_t pick() {
        return random_() % 4 ? likely_[random_() % likely_.size()]
                             : static_cast<std::uint32_t>(random_());
    }

    static void put(std::span<std::uint8_t> bytes, size_t at, std::uint32_t value) {
        std::memcpy(&bytes[at], &value, sizeof(value));
    }

    std::vector<Ring> rings_;
    std::vector<std::vector<std::uint8_t>> images_;
    std::vector<std::uint32_t> likely_;
    std::mt19937_64 random_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: weft_scribble DEVICE GID-INDEX SECONDS SEED\n", stderr);
        return 2;
    }
    const Memory memory;
    Verbs v;
    open_all(v, argv[1], std::atoi(argv[2]), memory);
    Scribbler scribbler(v, std::strtoull(argv[4], nullptr, 10));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
    std::atomic<bool> done = false;
    std::uint64_t scribbles = 0;
    std::thread writer([&] {
        for (; !done; scribbles++)
            scribbler.once();
    });
    std::uint64_t doorbells = 0;
    for (; std::chrono::steady_clock::now() < end; doorbells++) {
        ibv_qp* qp = v.qps[doorbells % v.qps.size()];
        if (doorbells % 16 < v.qps.size())
            revive(v, qp);
        doorbell(v, qp);
    }
    done = true;
    writer.join();
    std::printf("%zu rings, %llu scribbles, %llu doorbells\n", scribbler.rings(),
                static_cast<unsigned long long>(scribbles),
                static_cast<unsigned long long>(doorbells));
    if (scribbler.rings() < 6) {
        std::fputs("fewer rings than QPs, CQ and SRQ have\n", stderr);
        return 2;
    }
    // No clean-up: the end of a process must free all of it.
    if (!memory.intact()) {
        std::fputs("memory that was never registered has changed\n", stderr);
        return 1;
    }
    return 0;
}
