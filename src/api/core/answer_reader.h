// Reads the events of one answer into its parts, for the writers of all chat protocols, and remembers the whole. Calls
// get their ids here. One for each answer; loop thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "model/answer_parser.h"

namespace chasqui {

struct SpokenCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text; cut short where the answer was
};

class AnswerReader {
 public:
  // Null: the answer is content as it stands.
  explicit AnswerReader(AnswerFormatPtr format)
      : format_(std::move(format)), parser_(format_ ? format_->make_parser() : nullptr) {}

  // What the event adds, with the finished event also what was held back. Valid until the next call.
  std::span<const AnswerDelta> read(const Event& event);

  const std::string& content() const { return content_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::vector<SpokenCall>& calls() const { return calls_; }
  // Tokens of the reasoning, its marks included.
  TokenCount reasoning_tokens() const { return reasoning_tokens_; }

 private:
  void keep(AnswerDelta& delta);
  void count(const Event& event);

  const AnswerFormatPtr format_;
  const std::unique_ptr<AnswerParser> parser_;
  std::vector<AnswerDelta> deltas_;
  std::string content_;
  std::string reasoning_;
  std::vector<SpokenCall> calls_;
  bool reasoning_last_ = false;  // the last part was reasoning
  TokenCount undecided_ = 0;     // before the first part: marks are held back until it is certain what they begin
  TokenCount reasoning_tokens_ = 0;
};

}  // namespace chasqui
