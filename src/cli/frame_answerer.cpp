#include "cli/frame_answerer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_writer.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

constexpr int kLookMs = 50;  // … whether somebody wants to stop
constexpr std::size_t kFrameMax = 64 << 20;

Error broken(const std::string& what) { return {ErrorCode::unavailable, what, {}}; }

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::int64_t number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

const json::object& part_of(const json::object& object, std::string_view name) {
  static const json::object kEmpty;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kEmpty;
}

// One connection, one question at a time.
class FrameLine {
 public:
  FrameLine() = default;
  ~FrameLine() { close(); }
  FrameLine(const FrameLine&) = delete;
  FrameLine& operator=(const FrameLine&) = delete;

  Result<void> open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    received_.clear();
  }
  Result<void> send(const std::string& body);
  // The next event; an empty object when there was none for kLookMs.
  Result<json::object> next();

 private:
  bool whole_frame() const { return received_.size() >= 4 && received_.size() >= 4 + length(); }
  std::size_t length() const;

  int fd_ = -1;
  std::string received_;
};

Result<void> FrameLine::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid_field("--socket", "--socket: the path must have 1 to " +
                                         std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return broken(std::strerror(errno));
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {};
  const int why = errno;
  close();
  const bool nobody = why == ENOENT || why == ECONNREFUSED;
  return broken(nobody ? "nobody listens at " + path : path + ": " + std::strerror(why));
}

Result<void> FrameLine::send(const std::string& body) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(body.size() >> shift & 0xff);
  frame += body;
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return broken(std::string("the server has gone: ") + std::strerror(errno));
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::size_t FrameLine::length() const {
  std::size_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(received_[i]);
  return length;
}

Result<json::object> FrameLine::next() {
  if (!whole_frame()) {
    pollfd ready{fd_, POLLIN, 0};
    const int seen = ::poll(&ready, 1, kLookMs);
    if (seen == 0 || (seen < 0 && errno == EINTR)) return json::object();
    char piece[16384];
    const ssize_t n = ::recv(fd_, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) return json::object();
    if (n <= 0) return broken("the server has closed the connection");
    received_.append(piece, static_cast<std::size_t>(n));
  }
  if (received_.size() >= 4 && length() > kFrameMax) return broken("the server does not speak frames");
  if (!whole_frame()) return json::object();
  boost::system::error_code error;
  json::value event = json::parse(std::string_view(received_).substr(4, length()), error);
  received_.erase(0, 4 + length());
  if (error || !event.is_object()) return broken("the server does not speak frames");
  return std::move(event.get_object());
}

class FrameAnswerer final : public Answerer {
 public:
  FrameAnswerer(std::string path, const AnswerSettings& settings) : path_(std::move(path)), settings_(settings) {}

  Result<void> learn_name();
  std::string model_name() const override { return model_; }
  Result<AnswerReport> answer(const Conversation& conversation, const AnswerSinks& sinks) override;

 private:
  std::string body(const Conversation& conversation) const;
  Result<void> read(const AnswerSinks& sinks, AnswerReport& report, TimePoint begin);

  const std::string path_;
  const AnswerSettings settings_;
  const RealClock clock_;
  FrameLine line_;
  std::string model_;
};

Result<void> FrameAnswerer::learn_name() {
  if (auto open = line_.open(path_); !open) return open;
  if (auto sent = line_.send(R"({"id":0,"event":"props"})"); !sent) return sent;
  const TimePoint late = clock_.now() + seconds(10);
  while (clock_.now() < late) {
    const Result<json::object> event = line_.next();
    if (!event) return event.error();
    if (event->empty()) continue;
    if (text_of(*event, "event") == "error") return broken(text_of(*event, "message"));
    model_ = text_of(part_of(*event, "result"), "model_alias");
    return {};
  }
  return broken(path_ + " does not answer");
}

std::string FrameAnswerer::body(const Conversation& conversation) const {
  std::string text;
  JsonWriter w(text);
  w.begin_object();
  w.field("id", 1);
  w.key("messages");
  w.begin_array();
  for (const ChatMessage& m : conversation.messages()) {
    w.begin_object();
    w.field("role", m.role);
    w.field("content", m.content);
    w.end_object();
  }
  w.end_array();
  if (settings_.temperature) w.field("temperature", *settings_.temperature);
  if (settings_.max_tokens) w.field("max_tokens", *settings_.max_tokens);
  if (settings_.seed) w.field("seed", *settings_.seed);
  w.end_object();
  return text;
}

Result<AnswerReport> FrameAnswerer::answer(const Conversation& conversation, const AnswerSinks& sinks) {
  AnswerReport report;
  const TimePoint begin = clock_.now();
  if (!line_.is_open()) {
    if (auto open = line_.open(path_); !open) return open.error();
  }
  Result<void> done = line_.send(body(conversation));
  if (done) done = read(sinks, report, begin);
  if (!done) {
    if (done.error().code == ErrorCode::unavailable) line_.close();  // the next question tries again
    return done.error();
  }
  report.total_s = to_seconds(clock_.now() - begin);
  return report;
}

// Until the request's own end: what comes after a cancel belongs to it, too.
Result<void> FrameAnswerer::read(const AnswerSinks& sinks, AnswerReport& report, TimePoint begin) {
  for (;;) {
    if (!report.stopped && sinks.stopped()) {
      report.stopped = true;
      if (auto sent = line_.send(R"({"id":1,"event":"cancel"})"); !sent) return sent;
    }
    const Result<json::object> event = line_.next();
    if (!event) return event.error();
    const std::string kind = text_of(*event, "event");
    if (kind == "token" && !report.stopped) {
      const std::string text = text_of(*event, "text");
      if (report.first_token_s == 0) report.first_token_s = to_seconds(clock_.now() - begin);
      report.text += text;
      if (!text.empty()) sinks.text(text);
    }
    if (kind == "error") return Error{ErrorCode::model_failure, text_of(*event, "message"), {}};
    if (kind != "eos") continue;
    const json::object& usage = part_of(*event, "usage");
    report.finish_reason = text_of(*event, "reason");
    report.prompt_tokens = number_of(usage, "prompt_tokens");
    report.completion_tokens = number_of(usage, "completion_tokens");
    report.cached_tokens = number_of(part_of(usage, "prompt_tokens_details"), "cached_tokens");
    return {};
  }
}

}  // namespace

Result<AnswererPtr> open_frames(const std::string& path, const AnswerSettings& settings) {
  auto answerer = std::make_unique<FrameAnswerer>(path, settings);
  if (auto known = answerer->learn_name(); !known) return known.error();
  return AnswererPtr(std::move(answerer));
}

}  // namespace chasqui::cli
