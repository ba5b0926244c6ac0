// SPDX-License-Identifier: GPL-2.0
// Two peers made of the core alone, over a network that loses, doubles and delays: every request is
// complete exactly once and in order, with its data, and atomics have been executed once.
//
// The peers stand for a driver: they hold the memory, the queues and the timers that the core has
// not, and go by its verdicts only. A step is: one packet of the requester, one packet of each
// direction delivered.
#include "support.h"

#include <deque>
#include <map>
#include <optional>

namespace {

using weft::test::Bytes;
using weft::test::chance;
using weft::test::mtus;
using weft::test::pick;
using weft::test::Rng;
using weft::test::to_wire;

struct Faults {
    unsigned loss;
    unsigned duplicate;
    unsigned rnr;
    unsigned reorder;
};

struct Request {
    weft_wr wr;
    u32 len;
    u32 first_psn;
    u32 last_psn;
    u32 resp_psn;
    u64 va;
    Bytes data;   // SEND, WRITE: what is sent; READ: what has come
    u64 orig = 0; // atomics: the response
};

u8 memory_byte(u64 va) {
    return static_cast<u8>(va * 0x9d + (va >> 8));
}

// One direction: packets as bytes, so that builder and parser take part.
class Wire {
public:
    Wire(Rng& rng, const Faults& faults)
        : rng_(rng)
        , faults_(faults) {}

    void send(const weft_pkt& pkt, const Bytes& payload) {
        if (chance(rng_, faults_.loss))
            return;
        const Bytes wire = to_wire(pkt, payload);
        packets_.push_back(wire);
        if (chance(rng_, faults_.duplicate))
            packets_.push_back(wire);
        if (packets_.size() > 1 && chance(rng_, faults_.reorder))
            std::swap(packets_[packets_.size() - 1], packets_[packets_.size() - 2]);
    }

    bool empty() const { return packets_.empty(); }

    // Parsed into @pkt, the payload returned.
    std::optional<Bytes> receive(weft_pkt& pkt) {
        if (packets_.empty())
            return std::nullopt;
        const Bytes wire = packets_.front();
        packets_.pop_front();
        EXPECT_EQ(weft_pkt_parse(&pkt, wire.data(), wire.size()), WEFT_DROP_NONE);
        return Bytes(wire.begin() + pkt.hdr_len, wire.begin() + pkt.hdr_len + pkt.payload_len);
    }

private:
    Rng& rng_;
    Faults faults_;
    std::deque<Bytes> packets_;
};

class Responder {
public:
    Responder(Rng& rng, const Faults& faults, u32 mtu, u32 psn, Wire& out)
        : rng_(rng)
        , faults_(faults)
        , mtu_(mtu)
        , out_(out) {
        st_.epsn = psn;
    }

    void handle(const weft_pkt& pkt, const Bytes& payload) {
        const weft_resp_result r = weft_resp_check(&st_, WEFT_RC, mtu_, &pkt);
        switch (r.verdict) {
        case WEFT_RESP_OK:
            if ((pkt.op->flags & WEFT_OP_RECV_WQE) && chance(rng_, faults_.rnr)) {
                st_.nak_pending = true;
                return acknowledge(pkt.psn, weft_syndrome_rnr(1));
            }
            weft_resp_accept(&st_, mtu_, &pkt);
            return execute(pkt, payload);
        case WEFT_RESP_DUPLICATE:
            return replay(pkt);
        case WEFT_RESP_NAK:
            EXPECT_EQ(r.nak, WEFT_NAK_PSN_SEQUENCE) << pkt.op->name;
            return acknowledge(st_.epsn, weft_syndrome_nak(r.nak));
        case WEFT_RESP_DROP:
            return;
        }
    }

    std::vector<Bytes> messages; // of SEND and WRITE, in the order of their ends
    u64 counter = 0;             // target of the atomics
    u64 word = 0;                // target of the ATOMIC_WRITEs

private:
    void execute(const weft_pkt& pkt, const Bytes& payload) {
        const u32 flags = pkt.op->flags;
        if (flags & WEFT_OP_READ)
            return answer_read(pkt);
        if (flags & WEFT_OP_ATOMIC) {
            results_[pkt.psn] = counter;
            if (pkt.opcode == WEFT_FETCH_ADD)
                counter += pkt.swap_add;
            else if (counter == pkt.compare)
                counter = pkt.swap_add;
            return answer_atomic(pkt.psn);
        }
        if (flags & WEFT_OP_ATOMIC_WRITE) {
            memcpy(&word, payload.data(), 8);
            return answer_atomic_write(pkt.psn);
        }
        if (flags & WEFT_OP_START)
            open_.clear();
        open_.insert(open_.end(), payload.begin(), payload.end());
        if (flags & WEFT_OP_END)
            messages.push_back(open_);
        if (pkt.ackreq)
            acknowledge(pkt.psn, WEFT_SYNDROME_ACK);
    }

    void replay(const weft_pkt& pkt) {
        if (pkt.op->flags & WEFT_OP_READ)
            return answer_read(pkt);
        if (pkt.op->flags & WEFT_OP_ATOMIC)
            return answer_atomic(pkt.psn);
        if (pkt.op->flags & WEFT_OP_ATOMIC_WRITE)
            return answer_atomic_write(pkt.psn);
        acknowledge(weft_psn_add(st_.epsn, WEFT_PSN_MASK), WEFT_SYNDROME_ACK);
    }

    weft_pkt response(u8 opcode, u32 psn, u8 syndrome) {
        weft_pkt pkt = weft::test::packet(opcode, psn);
        pkt.syndrome = syndrome;
        pkt.msn = st_.msn;
        return pkt;
    }

    void acknowledge(u32 psn, u8 syndrome) {
        out_.send(response(WEFT_ACKNOWLEDGE, psn, syndrome), {});
    }

    void answer_atomic(u32 psn) {
        weft_pkt pkt = response(WEFT_ATOMIC_ACKNOWLEDGE, psn, WEFT_SYNDROME_ACK);
        ASSERT_TRUE(results_.contains(psn));
        pkt.orig = results_[psn];
        out_.send(pkt, {});
    }

    void answer_atomic_write(u32 psn) {
        out_.send(response(WEFT_READ_RESPONSE_ONLY, psn, WEFT_SYNDROME_ACK), {});
    }

    void answer_read(const weft_pkt& request) {
        const u32 count = weft_wr_psn_count(WEFT_WR_READ, request.dmalen, mtu_);
        for (u32 i = 0; i < count; ++i) {
            const bool last = i + 1 == count;
            const u8 opcode = i == 0 ? (last ? WEFT_READ_RESPONSE_ONLY : WEFT_READ_RESPONSE_FIRST)
                                     : (last ? WEFT_READ_RESPONSE_LAST : WEFT_READ_RESPONSE_MIDDLE);
            Bytes payload(last ? request.dmalen - i * mtu_ : mtu_);
            for (std::size_t b = 0; b < payload.size(); ++b)
                payload[b] = memory_byte(request.va + u64{i} * mtu_ + b);
            out_.send(response(opcode, weft_psn_add(request.psn, i), WEFT_SYNDROME_ACK), payload);
        }
    }

    Rng& rng_;
    Faults faults_;
    u32 mtu_;
    Wire& out_;
    weft_resp_state st_{};
    Bytes open_;
    std::map<u32, u64> results_;
};

class Requester {
public:
    Requester(u32 mtu, u32 psn, Wire& out)
        : mtu_(mtu)
        , out_(out)
        , send_psn_(psn)
        , end_psn_(psn) {}

    void post(Request request) {
        request.first_psn = end_psn_;
        end_psn_ = weft_psn_add(end_psn_, weft_wr_psn_count(request.wr, request.len, mtu_));
        request.last_psn = weft_psn_add(end_psn_, WEFT_PSN_MASK);
        request.resp_psn = request.first_psn;
        queue_.push_back(request);
    }

    bool done() const { return queue_.empty(); }
    bool idle() const { return send_psn_ == end_psn_; }

    // The packet at the cursor. A READ takes the cursor behind its responses.
    void transmit() {
        for (const Request& request : queue_) {
            if (idle() || weft_psn_before(request.last_psn, send_psn_))
                continue;
            const u32 offset =
                weft_req_offset_of_psn(request.wr, request.first_psn, send_psn_, mtu_, request.len);
            const weft_segment seg =
                weft_req_segment(WEFT_RC, request.wr, request.len, offset, mtu_);
            weft_pkt pkt = weft::test::packet(seg.opcode, send_psn_);
            const bool read = request.wr == WEFT_WR_READ;
            pkt.ackreq = weft_req_want_ack(&seg, true, send_psn_, 4);
            pkt.va = request.va + (read ? offset : 0);
            pkt.dmalen = request.len - (read ? offset : 0);
            pkt.swap_add = request.len; // any value that differs from one to the next
            pkt.compare = request.va;
            const Bytes payload(request.data.begin() + (read ? 0 : offset),
                                request.data.begin() + (read ? 0 : offset + seg.payload_len));
            out_.send(pkt, payload);
            send_psn_ = read ? weft_psn_add(request.last_psn, 1) : weft_psn_add(send_psn_, 1);
            if (weft_psn_before(highest_psn(), send_psn_))
                highest_ = send_psn_;
            return;
        }
    }

    void handle(const weft_pkt& pkt, const Bytes& payload) {
        while (!queue_.empty()) {
            Request& oldest = queue_.front();
            const weft_comp_wqe wqe = {oldest.wr,       oldest.first_psn, oldest.last_psn,
                                       oldest.resp_psn, oldest.len,       mtu_};
            const weft_comp_result r = weft_comp_step(&wqe, highest_psn(), &pkt);
            switch (r.verdict) {
            case WEFT_COMP_DROP:
                return;
            case WEFT_COMP_PROGRESS:
                resent_ = false;
                return;
            case WEFT_COMP_READ_DATA:
            case WEFT_COMP_READ_LAST:
                EXPECT_EQ(oldest.data.size(), weft_psn_diff(pkt.psn, oldest.first_psn) * u64{mtu_});
                oldest.data.insert(oldest.data.end(), payload.begin(), payload.end());
                oldest.resp_psn = weft_psn_add(pkt.psn, 1);
                resent_ = false;
                if (r.verdict == WEFT_COMP_READ_LAST)
                    complete();
                return;
            case WEFT_COMP_ATOMIC:
                oldest.orig = pkt.orig;
                complete();
                return;
            case WEFT_COMP_NEXT:
                complete();
                break;
            case WEFT_COMP_RETRY:
                if (r.implied && resent_)
                    return;
                resent_ = r.implied;
                send_psn_ = r.resume_psn;
                return;
            case WEFT_COMP_RNR:
                EXPECT_EQ(r.rnr_code, 1);
                send_psn_ = r.resume_psn;
                return;
            default:
                FAIL() << "verdict " << r.verdict << " on " << pkt.op->name;
            }
        }
    }

    // Nothing is under way and nothing to send: the timer of the oldest request runs out.
    void time_out() {
        send_psn_ = queue_.front().resp_psn;
        resent_ = false;
    }

    std::vector<Request> completed;

private:
    u32 highest_psn() const { return highest_.value_or(send_psn_); }

    void complete() {
        // What is acknowledged need not be sent again.
        const u32 behind = weft_psn_add(queue_.front().last_psn, 1);
        if (weft_psn_before(send_psn_, behind))
            send_psn_ = behind;
        completed.push_back(queue_.front());
        queue_.pop_front();
        resent_ = false;
    }

    u32 mtu_;
    Wire& out_;
    u32 send_psn_;
    u32 end_psn_;
    std::optional<u32> highest_;
    bool resent_ = false;
    std::deque<Request> queue_;
};

Request random_request(Rng& rng, u32 mtu) {
    Request request{};
    request.wr = static_cast<weft_wr>(pick(rng, 0, WEFT_WR_COUNT - 1));
    const bool fixed = request.wr > WEFT_WR_READ;
    request.len = static_cast<u32>(fixed ? 8 : pick(rng, 0, 3) * mtu + pick(rng, 0, 1) * 37);
    request.va = pick(rng, 0, request.wr == WEFT_WR_COMPARE_SWAP ? 3 : 1000) * 8;
    if (request.wr != WEFT_WR_READ)
        for (u32 i = 0; i < request.len; ++i)
            request.data.push_back(static_cast<u8>(rng()));
    return request;
}

void run(unsigned seed, const Faults& faults) {
    Rng rng(seed);
    const u32 mtu = mtus[pick(rng, 0, 1)];
    const auto psn = static_cast<u32>(WEFT_PSN_MASK - pick(rng, 0, 40));
    Wire there(rng, faults);
    Wire back(rng, faults);
    Requester requester(mtu, psn, there);
    Responder responder(rng, faults, mtu, psn, back);
    std::vector<Request> posted;
    for (int i = 0; i < 40; ++i) {
        posted.push_back(random_request(rng, mtu));
        requester.post(posted.back());
    }

    unsigned steps = 0;
    for (; !requester.done() && steps < 200000; ++steps) {
        weft_pkt pkt{};
        if (!requester.idle())
            requester.transmit();
        else if (there.empty() && back.empty())
            requester.time_out();
        if (chance(rng, 70))
            if (const auto payload = there.receive(pkt))
                responder.handle(pkt, *payload);
        if (chance(rng, 70))
            if (const auto payload = back.receive(pkt))
                requester.handle(pkt, *payload);
    }
    ASSERT_TRUE(requester.done()) << "still not complete after " << steps << " steps";

    ASSERT_EQ(requester.completed.size(), posted.size());
    std::size_t message = 0;
    u64 counter = 0;
    u64 word = 0;
    for (std::size_t i = 0; i < posted.size(); ++i) {
        const Request& was = posted[i];
        const Request& is = requester.completed[i];
        ASSERT_EQ(is.wr, was.wr) << "order";
        switch (was.wr) {
        case WEFT_WR_READ:
            ASSERT_EQ(is.data.size(), was.len);
            for (u32 b = 0; b < was.len; ++b)
                ASSERT_EQ(is.data[b], memory_byte(was.va + b));
            break;
        case WEFT_WR_FETCH_ADD:
            ASSERT_EQ(is.orig, counter);
            counter += was.len;
            break;
        case WEFT_WR_COMPARE_SWAP:
            ASSERT_EQ(is.orig, counter);
            if (counter == was.va)
                counter = was.len;
            break;
        case WEFT_WR_ATOMIC_WRITE:
            memcpy(&word, was.data.data(), 8);
            break;
        default:
            ASSERT_LT(message, responder.messages.size());
            ASSERT_EQ(responder.messages[message++], was.data) << "request " << i;
        }
    }
    EXPECT_EQ(message, responder.messages.size()) << "no message twice";
    EXPECT_EQ(responder.counter, counter) << "every atomic once";
    EXPECT_EQ(responder.word, word);
}

void run_all(const Faults& faults) {
    for (unsigned seed = 0; seed < 150 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        run(seed, faults);
    }
}

TEST(Model, PerfectNetwork) {
    run_all({0, 0, 0, 0});
}
TEST(Model, Loss) {
    run_all({10, 0, 0, 0});
}
TEST(Model, HeavyLoss) {
    run_all({40, 0, 0, 0});
}
TEST(Model, Duplicates) {
    run_all({0, 30, 0, 0});
}
TEST(Model, ReceiverNotReady) {
    run_all({0, 0, 30, 0});
}
TEST(Model, Reordering) {
    run_all({0, 0, 0, 20});
}
TEST(Model, Everything) {
    run_all({15, 10, 20, 10});
}

} // namespace
