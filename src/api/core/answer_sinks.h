// Where the text of an answer goes as it comes, in place of a coroutine that is resumed for each token: see TextSink.
// In the frame of the coroutine that delivers the answer; loop thread only.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "api/core/answer.h"
#include "api/core/generation.h"
#include "base/limits.h"
#include "net/exchange.h"

namespace chasqui {

// What a writer throws is for the coroutine.
class AnswerSink : public TextSink {
 public:
  bool text(Event& event, std::string& out) final;
  // Throws what a writer has thrown.
  void check() const;

 protected:
  // False as text().
  virtual bool say(Event& event, std::string& out) = 0;

 private:
  std::exception_ptr failure_;
};

// Of a stream: frames, straight to the connection while that takes them.
class StreamSink final : public AnswerSink {
 public:
  StreamSink(net::HttpExchange& exchange, AnswerWriter& writer, TimePoint begin)
      : exchange_(exchange), writer_(writer), said_at_(begin) {}

  bool flush(std::string& out, TimePoint now) override;
  // When the client last got something, from here or from the coroutine.
  TimePoint said_at() const { return said_at_; }
  void said(TimePoint now) { said_at_ = now; }

 private:
  bool say(Event& event, std::string& out) override;

  net::HttpExchange& exchange_;
  AnswerWriter& writer_;
  TimePoint said_at_;
};

// Of an answer that does not stream: everything is remembered until the end, unless it becomes too much.
class WholeSink final : public AnswerSink {
 public:
  WholeSink(AnswerWriter& writer, std::vector<Collected>& answers) : writer_(writer), answers_(answers) {}

  void take(Event& event);
  // About how long the body will be, but for what it repeats of the request.
  std::size_t bytes() const { return bytes_; }
  bool too_large() const { return bytes_ > kSizeLimit<"whole_answer_bytes">; }

  bool flush(std::string&, TimePoint) override { return true; }

 private:
  bool say(Event& event, std::string& out) override;

  AnswerWriter& writer_;
  std::vector<Collected>& answers_;
  std::size_t bytes_ = 0;
};

enum class Drained {
  events,   // they have been taken, and Answer::before_end has been awaited where the last one came
  silence,  // none came until then
  ended,    // `gone`: nothing is to be delivered any more, and the request ends with its Generation
};

// The one way to wait for what an answer says next: text goes past to `sink`, where there is one, the rest to `events`.
net::Awaitable<Drained> drain_events(Generation& generation, const Answer& answer, TimePoint until, AnswerSink* sink,
                                     std::function<bool()> gone, std::vector<Event>& events);

}  // namespace chasqui
