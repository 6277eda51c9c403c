#include "publish/zmq_socket.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "publish/kv_events_config.h"

namespace chasqui::publish {
namespace {

// At the end, for what was sent last.
constexpr int kLingerMs = 250;
// Messages of one peer that wait to be read; with more, it has to wait. An XPUB socket empties this queue into one
// without a bound, as long as it is filled again meanwhile: measured with a peer that repeats its subscription without
// end, that one stays short with 4, and grows with 64 while the thread does something else.
constexpr int kReceiveQueue = 4;
// A peer that has vanished, or has left unread for so long what was sent, is cut off, with all that waits for it.
constexpr int kPingMs = 20'000;
constexpr int kPingTimeoutMs = 60'000;

Error bad_endpoint(const std::string& flag, const std::string& endpoint, const std::string& why) {
  return invalid_field(flag, flag + ' ' + endpoint + ": " + why);
}

}  // namespace

Result<std::unique_ptr<ZmqSocket>> ZmqSocket::open(ZmqContext& context, ZmqSocketKind kind, const std::string& endpoint,
                                                   const std::string& flag, int queue) {
  const ZmqLibrary& library = context.library;
  const Result<bool> server = listens(endpoint);
  if (!server) return bad_endpoint(flag, endpoint, server.error().message);
  void* const made = library.socket(context.get(), static_cast<int>(kind));
  if (made == nullptr) return bad_endpoint(flag, endpoint, library.text_of(library.last_error()));
  std::unique_ptr<ZmqSocket> out(new ZmqSocket(library, made));
  out->configure(kind, queue, endpoint.find('[') != std::string::npos);
  const int rc = *server ? library.bind(made, endpoint.c_str()) : library.connect(made, endpoint.c_str());
  if (rc != 0) return bad_endpoint(flag, endpoint, library.text_of(library.last_error()));
  std::array<char, 512> text{};
  std::size_t length = text.size();
  const int told = library.getsockopt(made, static_cast<int>(ZmqOption::endpoint), text.data(), &length);
  out->endpoint_ = told == 0 ? text.data() : endpoint;
  return out;
}

void ZmqSocket::configure(ZmqSocketKind kind, int queue, bool ipv6) {
  const auto set = [this](ZmqOption option, auto value) {
    library_.setsockopt(socket_, static_cast<int>(option), &value, sizeof(value));
  };
  set(ZmqOption::linger, kLingerMs);
  set(ZmqOption::frame_bytes, static_cast<std::int64_t>(kFrameBytes));
  set(ZmqOption::send_queue, queue);
  set(ZmqOption::receive_queue, kReceiveQueue);
  set(ZmqOption::ping_interval, kPingMs);
  set(ZmqOption::ping_timeout, kPingTimeoutMs);
  set(ZmqOption::ping_lifetime, kPingTimeoutMs);
  set(ZmqOption::unsent_timeout, kPingTimeoutMs);
  if (ipv6) set(ZmqOption::ipv6, 1);
  set(kind == ZmqSocketKind::xpub ? ZmqOption::all_subscriptions : ZmqOption::never_drop, 1);
}

ZmqSocket::~ZmqSocket() { library_.close(socket_); }

std::optional<std::vector<std::string>> ZmqSocket::receive() {
  std::vector<std::string> frames;
  for (int more = 1; more != 0;) {
    ZmqMessage message;
    library_.message_init(&message);
    if (library_.message_receive(&message, socket_, kZmqDontWait) < 0) {
      library_.message_close(&message);
      return std::nullopt;  // frames come together, so it is the first
    }
    if (frames.size() < kFrames) {
      frames.emplace_back(static_cast<const char*>(library_.message_data(&message)), library_.message_size(&message));
    }
    library_.message_close(&message);
    std::size_t size = sizeof(more);
    if (library_.getsockopt(socket_, static_cast<int>(ZmqOption::more), &more, &size) != 0) more = 0;
  }
  return frames;
}

ZmqSent ZmqSocket::send(std::initializer_list<std::string_view> frames) {
  for (const std::string_view& frame : frames) {
    const int more = &frame + 1 != frames.end() ? kZmqSendMore : 0;
    if (library_.send(socket_, frame.data(), frame.size(), more | kZmqDontWait) < 0) {
      return library_.last_error() == EAGAIN ? ZmqSent::full : ZmqSent::gone;
    }
  }
  return ZmqSent::yes;
}

}  // namespace chasqui::publish
