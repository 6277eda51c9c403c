#include "publish/zmq_socket.h"

#include <array>
#include <utility>

#include "publish/kv_events_config.h"

namespace chasqui::publish {
namespace {

// At the end, for what was sent last.
constexpr int kLingerMs = 250;

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
  const int yes = 1;
  library.setsockopt(made, static_cast<int>(ZmqOption::linger), &kLingerMs, sizeof(kLingerMs));
  library.setsockopt(made, static_cast<int>(ZmqOption::send_queue), &queue, sizeof(queue));
  if (endpoint.find('[') != std::string::npos) {
    library.setsockopt(made, static_cast<int>(ZmqOption::ipv6), &yes, sizeof(yes));
  }
  if (kind == ZmqSocketKind::xpub) {
    library.setsockopt(made, static_cast<int>(ZmqOption::all_subscriptions), &yes, sizeof(yes));
  }
  const int rc = *server ? library.bind(made, endpoint.c_str()) : library.connect(made, endpoint.c_str());
  if (rc != 0) return bad_endpoint(flag, endpoint, library.text_of(library.last_error()));
  std::array<char, 512> text{};
  std::size_t length = text.size();
  const int told = library.getsockopt(made, static_cast<int>(ZmqOption::endpoint), text.data(), &length);
  out->endpoint_ = told == 0 ? text.data() : endpoint;
  return out;
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
    frames.emplace_back(static_cast<const char*>(library_.message_data(&message)), library_.message_size(&message));
    library_.message_close(&message);
    std::size_t size = sizeof(more);
    if (library_.getsockopt(socket_, static_cast<int>(ZmqOption::more), &more, &size) != 0) more = 0;
  }
  return frames;
}

bool ZmqSocket::send(std::initializer_list<std::string_view> frames) {
  for (const std::string_view& frame : frames) {
    const int more = &frame + 1 != frames.end() ? kZmqSendMore : 0;
    if (library_.send(socket_, frame.data(), frame.size(), more | kZmqDontWait) < 0) return false;
  }
  return true;
}

}  // namespace chasqui::publish
