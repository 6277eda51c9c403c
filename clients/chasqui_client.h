// A client of Chasqui's local socket (docs/protocol.md) for C++ programs: this header and Boost.JSON. One thread at a
// time. Any number of requests may run at once on one connection: start() sends one, next() gives the next event of
// any of them, events_of() those of one. Faults of the connection and `error` events are exceptions.
//
//   chasqui::Client client("/run/chasqui.sock");
//   client.generate({{"prompt", "Once"}}, [](const boost::json::object& event) { … return true; });
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace chasqui {

// An `error` event.
class ClientError : public std::runtime_error {
 public:
  explicit ClientError(boost::json::object event)
      : std::runtime_error(member(event, "code") + ": " + member(event, "message")), event_(std::move(event)) {}

  const boost::json::object& event() const { return event_; }  // code, message, param, retry_after_ms

 private:
  static std::string member(const boost::json::object& event, std::string_view name) {
    const boost::json::value* value = event.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
  }

  boost::json::object event_;
};

class Client {
 public:
  using Event = boost::json::object;
  // Gets each event, the last one included; false cancels the request.
  using OnEvent = std::function<bool(const Event&)>;

  explicit Client(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (fd_ < 0) fail(path);
    if (path.size() >= sizeof address.sun_path) {
      ::close(fd_);
      throw std::invalid_argument("the path of the socket is too long: " + path);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const int error = errno;
      ::close(fd_);
      errno = error;
      fail(path);
    }
  }
  // Cancels what still runs.
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends a request or command (the members of its frame, without the id) and gives its id.
  std::int64_t start(Event message) {
    const std::int64_t id = ++last_id_;
    message["id"] = id;
    waiting_[id];
    send(message);
    return id;
  }

  void cancel(std::int64_t id) { send({{"id", id}, {"event", "cancel"}}); }

  // The next event of any request that start() has begun.
  Event next() {
    for (auto& [id, events] : waiting_) {
      if (!events.empty()) return take(id, events);
    }
    return given(receive());
  }

  // All events of one request.
  void events_of(std::int64_t id, const OnEvent& on_event) {
    bool cancelled = false;
    for (bool over = false; !over;) {
      const Event event = next_of(id);
      over = is_end(event);
      if (event.at("event") == "error") throw ClientError(event);
      if (!on_event(event) && !over && !std::exchange(cancelled, true)) cancel(id);
    }
  }

  void generate(Event request, const OnEvent& on_event) { events_of(start(std::move(request)), on_event); }

  // What a command gives: health, metrics, props, session.create …
  boost::json::value command(std::string_view name, Event message = {}) {
    message["event"] = name;
    boost::json::value result;
    generate(std::move(message), [&result](const Event& event) {
      if (event.contains("result")) result = event.at("result");
      return true;
    });
    return result;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  static bool is_end(const Event& event) {
    const boost::json::value& kind = event.at("event");
    return kind == "eos" || kind == "error" || kind == "result";
  }

  void send(const Event& message) {
    const std::string body = boost::json::serialize(message);
    std::string frame;
    for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(body.size() >> shift & 0xff);
    frame += body;
    for (std::string_view rest = frame; !rest.empty();) {
      const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR) fail("cannot send");
      if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  Event receive() {
    need(4);
    std::size_t length = 0;
    for (int i = 3; i >= 0; --i)
      length = length << 8 | static_cast<unsigned char>(received_[static_cast<std::size_t>(i)]);
    need(4 + length);
    Event event = boost::json::parse(std::string_view(received_).substr(4, length)).as_object();
    received_.erase(0, 4 + length);
    if (event.at("id").is_null()) throw ClientError(std::move(event));  // about a frame that could not be read
    return event;
  }

  // Until so many bytes are here.
  void need(std::size_t size) {
    char piece[65536];
    while (received_.size() < size) {
      const ssize_t n = ::recv(fd_, piece, sizeof piece, 0);
      if (n == 0) throw std::runtime_error("the server has closed the connection");
      if (n < 0 && errno != EINTR) fail("cannot receive");
      if (n > 0) received_.append(piece, static_cast<std::size_t>(n));
    }
  }

  Event next_of(std::int64_t id) {
    for (;;) {
      if (const auto found = waiting_.find(id); found != waiting_.end() && !found->second.empty()) {
        return take(id, found->second);
      }
      Event event = receive();
      const auto about = event.at("id").to_number<std::int64_t>();
      if (about == id) return given(std::move(event));
      waiting_[about].push_back(std::move(event));  // of another request, for later
    }
  }

  Event take(std::int64_t id, std::deque<Event>& events) {
    Event event = std::move(events.front());
    events.pop_front();
    if (is_end(event)) waiting_.erase(id);  // with `events`
    return event;
  }

  // An end that is given out is the last event of its request. One that waits has others before it.
  Event given(Event event) {
    if (is_end(event)) waiting_.erase(event.at("id").to_number<std::int64_t>());
    return event;
  }

  const int fd_;
  std::int64_t last_id_ = 0;
  std::string received_;
  std::map<std::int64_t, std::deque<Event>> waiting_;  // events that were not taken yet
};

}  // namespace chasqui
