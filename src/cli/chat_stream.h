// The stream of an OpenAI-compatible chat completion: its bytes, in pieces of any size, become text, reasoning, usage
// and the reason of its end. One per answer; one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/answerer.h"

namespace chasqui::cli {

class ChatStream {
 public:
  // Both outlive it. Fills the report's text, tokens and finish_reason.
  ChatStream(const AnswerSinks& sinks, AnswerReport& report) : sinks_(sinks), report_(report) {}

  void feed(std::string_view bytes);
  bool done() const { return done_; }                      // [DONE] was seen
  const std::string& failure() const { return failure_; }  // what the server said instead of an answer

 private:
  static constexpr std::size_t kLineMax = 1 << 20;

  void take_line(std::string_view line);
  void take_json(std::string_view text);

  const AnswerSinks& sinks_;
  AnswerReport& report_;
  std::string kept_;  // the beginning of an incomplete line
  std::string failure_;
  bool done_ = false;
};

}  // namespace chasqui::cli
