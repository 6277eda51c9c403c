#include "api/core/answer_reader.h"

#include "base/random_id.h"

namespace chasqui {

std::span<const AnswerDelta> AnswerReader::read(const Event& event) {
  deltas_.clear();
  if (parser_ == nullptr) {
    if (!event.text.empty()) deltas_.emplace_back().text = event.text;
  } else {
    if (!event.text.empty()) parser_->push(event.text, deltas_);
    if (event.kind == Event::Kind::finished) parser_->finish(deltas_);
  }
  for (AnswerDelta& delta : deltas_) keep(delta);
  count(event);
  return deltas_;
}

// A token belongs to the part that was the last when it came.
void AnswerReader::count(const Event& event) {
  if (event.kind != Event::Kind::text) return;
  undecided_ += event.tokens;
  if (!deltas_.empty()) reasoning_last_ = deltas_.back().kind == AnswerDelta::Kind::reasoning;
  if (reasoning_last_) reasoning_tokens_ += undecided_;
  if (reasoning_last_ || !deltas_.empty()) undecided_ = 0;
}

void AnswerReader::keep(AnswerDelta& delta) {
  switch (delta.kind) {
    case AnswerDelta::Kind::content: content_ += delta.text; break;
    case AnswerDelta::Kind::reasoning: reasoning_ += delta.text; break;
    case AnswerDelta::Kind::call_begin:
      if (delta.id.empty()) delta.id = random_id("call_");
      calls_.push_back({delta.id, delta.name, {}});
      break;
    case AnswerDelta::Kind::call_arguments: calls_[delta.call].arguments += delta.text; break;
  }
}

}  // namespace chasqui
