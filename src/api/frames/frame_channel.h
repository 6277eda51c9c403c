// What the messages of one connection of the local socket mean (docs/protocol.md): requests and commands, told apart by
// their ids, any number at once; or, for people, one prompt on each line. Field reading, admission and generation are
// those of the HTTP routes. Owned by its connection; loop thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/core/answer.h"
#include "api/core/node.h"
#include "api/frames/frame_json.h"
#include "api/session/sessions.h"
#include "base/limits.h"
#include "net/frame_connection.h"

namespace chasqui {

class FrameChannel final : public net::FrameHandler {
 public:
  // Requests and commands of one connection at once.
  static constexpr std::size_t kOpenMax = kSizeLimit<"frame_requests">;

  FrameChannel(Node& node, net::FrameConnection& connection, Caller caller)
      : node_(node), connection_(connection), caller_(std::move(caller)) {}

  net::Awaitable<void> frame(std::string body) override;
  net::Awaitable<void> line(std::string text) override;
  void broken(const Error& error) override { say_error("null", error); }
  void gone() override;

 private:
  using Busy = net::FrameConnection::Busy;
  using Held = net::FrameConnection::Held;
  struct Open;
  class Sink;

  net::Awaitable<FrameHead> read_head_in_pool(std::string& body);
  void dispatch(FrameHead head, std::string body);
  void cancel(const std::string& id);
  Result<std::string> answer_at_once(const FrameHead& head);
  SessionCall call_of(const FrameHead& head, std::string body);

  // `held`: until the body was read.
  net::Awaitable<void> generate(Busy busy, Held held, FrameHead head, std::string body,
                                std::unique_ptr<AnswerWriter> writer);
  net::Awaitable<Result<ServedModel*>> model_of(const FrameHead& head, std::string& body, bool computes);
  net::Awaitable<Result<Answer>> prepare(ServedModel& served, const FrameHead& head, std::string body,
                                         std::optional<SessionUse>& use, Permit& permit);
  net::Awaitable<void> deliver(Open& open, ServedModel& served, const FrameHead& head, Answer answer, Permit permit);
  // True when it is the last event of the request. `text` is what has been said to one that does not stream.
  bool say_event(const FrameHead& head, AnswerWriter& writer, const Event& event, std::string& text);
  net::Awaitable<void> run_command(Busy busy, Held held, FrameHead head, std::string body);

  void say_result(const std::string& id, const Result<std::string>& result);
  void say_error(std::string_view id, const Error& error);
  bool for_people() const { return connection_.mode() != net::FrameScanner::Mode::frames; }

  Node& node_;
  net::FrameConnection& connection_;
  const Caller caller_;
  std::map<std::string, Open*> open_;  // by id
};

}  // namespace chasqui
