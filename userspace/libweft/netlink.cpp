// SPDX-License-Identifier: MIT
// Generic netlink by libnl, with the extended acknowledgement that libnl itself leaves unread.
#include <weft/netlink.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

namespace weft {
namespace {

constexpr int max_attribute = 63;

struct Exchange {
    const std::function<void(const Reply&)>* on_reply = nullptr;
    bool finished = false;
    bool interrupted = false; // the kernel's list changed between two parts of a dump
    Error error;
};

std::string errno_text(int code) {
    return std::generic_category().message(code);
}

// The text that the kernel put behind an acknowledgement's fixed part, if it did.
std::string extack_text(nlmsghdr* header, size_t fixed_bytes) {
    if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
        return {};
    const size_t offset = NLMSG_HDRLEN + NLMSG_ALIGN(fixed_bytes);
    if (header->nlmsg_len <= offset)
        return {};
    auto* first = reinterpret_cast<nlattr*>(reinterpret_cast<char*>(header) + offset);
    const nlattr* text =
        nla_find(first, static_cast<int>(header->nlmsg_len - offset), NLMSGERR_ATTR_MSG);
    if (!text)
        return {};
    const auto* chars = static_cast<const char*>(nla_data(text));
    return {chars, strnlen(chars, static_cast<size_t>(nla_len(text)))};
}

void fail(Exchange& exchange, int code, std::string text) {
    exchange.finished = true;
    exchange.error.code = code;
    exchange.error.text = text.empty() ? errno_text(code) : std::move(text);
}

int on_valid(nl_msg* message, void* context) {
    auto& exchange = *static_cast<Exchange*>(context);
    std::array<nlattr*, max_attribute + 1> attributes{};
    if (genlmsg_parse(nlmsg_hdr(message), 0, attributes.data(), max_attribute, nullptr) == 0)
        (*exchange.on_reply)(Reply(attributes.data(), max_attribute));
    return NL_OK;
}

int on_ack(nl_msg* /*message*/, void* context) {
    static_cast<Exchange*>(context)->finished = true;
    return NL_STOP;
}

// A dump ends with an error number of its own, which is 0 when all went well.
int on_finish(nl_msg* message, void* context) {
    auto& exchange = *static_cast<Exchange*>(context);
    nlmsghdr* header = nlmsg_hdr(message);
    int code = 0;
    if (nlmsg_datalen(header) >= static_cast<int>(sizeof(code)))
        std::memcpy(&code, nlmsg_data(header), sizeof(code));
    exchange.finished = true;
    if (code < 0)
        fail(exchange, -code, extack_text(header, sizeof(code)));
    return NL_STOP;
}

int on_interrupted(nl_msg* /*message*/, void* context) {
    static_cast<Exchange*>(context)->interrupted = true;
    return NL_OK;
}

int on_error(sockaddr_nl* /*from*/, nlmsgerr* error, void* context) {
    auto* header = reinterpret_cast<nlmsghdr*>(reinterpret_cast<char*>(error) - NLMSG_HDRLEN);
    fail(*static_cast<Exchange*>(context), -error->error, extack_text(header, sizeof(*error)));
    return NL_STOP;
}

} // namespace

void Request::Free::operator()(nl_msg* message) const {
    nlmsg_free(message);
}

Request::Request(uint8_t command, bool dump)
    : command_(command)
    , dump_(dump)
    , message_(nlmsg_alloc()) {
    if (message_)
        genlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, 0, 0, 0, command_, 0);
}

Request& Request::u32(int attribute, uint32_t value) {
    if (message_ && nla_put_u32(message_.get(), attribute, value) < 0)
        message_.reset();
    return *this;
}

Request& Request::string(int attribute, std::string_view value) {
    if (message_ && nla_put_string(message_.get(), attribute, std::string(value).c_str()) < 0)
        message_.reset();
    return *this;
}

const nlattr* Reply::find(int attribute) const {
    return attribute <= max_ ? attributes_[attribute] : nullptr;
}

uint32_t Reply::u32(int attribute) const {
    const nlattr* found = find(attribute);
    return found && nla_len(found) >= 4 ? nla_get_u32(found) : 0;
}

uint64_t Reply::u64(int attribute) const {
    const nlattr* found = find(attribute);
    return found && nla_len(found) >= 8 ? nla_get_u64(found) : 0;
}

std::string Reply::string(int attribute) const {
    const nlattr* found = find(attribute);
    if (!found)
        return {};
    const auto* chars = static_cast<const char*>(nla_data(found));
    return {chars, strnlen(chars, static_cast<size_t>(nla_len(found)))};
}

void Netlink::Close::operator()(nl_sock* socket) const {
    nl_socket_free(socket);
}

Netlink::Netlink(std::unique_ptr<nl_sock, Close> socket, int family, int version)
    : socket_(std::move(socket))
    , family_(family)
    , version_(version) {}

Result<Netlink> Netlink::open(const char* family, int version) {
    std::unique_ptr<nl_sock, Close> socket(nl_socket_alloc());
    if (!socket)
        return Error{ENOMEM, "netlink: no memory for a socket"};
    if (int code = genl_connect(socket.get()); code < 0)
        return Error{EIO, fmt::format("netlink: {}", nl_geterror(code))};

    const int on = 1;
    const int fd = nl_socket_get_fd(socket.get());
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    // Errors then come without a copy of the request, so that the kernel's text has a fixed place.
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));

    const int id = genl_ctrl_resolve(socket.get(), family);
    if (id < 0)
        return Error{ENOENT, fmt::format("the kernel has no netlink family {0}: is the module "
                                         "loaded (modprobe {0})?",
                                         family)};
    return Netlink(std::move(socket), id, version);
}

Status Netlink::send(Request request, const std::function<void(const Reply&)>& on_reply) {
    if (!request.message_)
        return Error{ENOMEM, "netlink: the request does not fit a message"};
    nlmsghdr* header = nlmsg_hdr(request.message_.get());
    header->nlmsg_type = static_cast<uint16_t>(family_);
    header->nlmsg_flags =
        static_cast<uint16_t>(NLM_F_REQUEST | (request.dump_ ? NLM_F_DUMP : NLM_F_ACK));
    genlmsg_hdr(header)->version = static_cast<uint8_t>(version_);

    Exchange exchange;
    exchange.on_reply = &on_reply;
    std::unique_ptr<nl_cb, void (*)(nl_cb*)> callbacks(nl_cb_alloc(NL_CB_DEFAULT), nl_cb_put);
    if (!callbacks)
        return Error{ENOMEM, "netlink: no memory"};
    nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &exchange);
    nl_cb_set(callbacks.get(), NL_CB_ACK, NL_CB_CUSTOM, on_ack, &exchange);
    nl_cb_set(callbacks.get(), NL_CB_FINISH, NL_CB_CUSTOM, on_finish, &exchange);
    nl_cb_set(callbacks.get(), NL_CB_DUMP_INTR, NL_CB_CUSTOM, on_interrupted, &exchange);
    nl_cb_err(callbacks.get(), NL_CB_CUSTOM, on_error, &exchange);

    if (int code = nl_send_auto(socket_.get(), request.message_.get()); code < 0)
        return Error{EIO, fmt::format("netlink: {}", nl_geterror(code))};
    while (!exchange.finished) {
        const int code = nl_recvmsgs(socket_.get(), callbacks.get());
        if (code < 0 && !exchange.finished)
            return Error{EIO, fmt::format("netlink: {}", nl_geterror(code))};
    }
    if (exchange.error.code)
        return exchange.error;
    if (exchange.interrupted)
        return Error{EAGAIN, "the list changed while it was read: try again"};
    return ok();
}

} // namespace weft
