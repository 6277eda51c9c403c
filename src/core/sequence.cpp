#include "core/sequence.h"

#include <algorithm>

namespace chasqui {

TokenCount Sequence::cells_max() const { return prompt_tokens() + std::max<TokenCount>(request_->max_tokens - 1, 0); }

Usage Sequence::usage(TimePoint now) const {
  Usage usage;
  usage.prompt = prompt_tokens();
  usage.completion = generated_;
  const bool started = slot_.valid();
  usage.queue = (started ? started_ : now) - request_->arrival;
  if (started) usage.prefill = (generated_ > 0 ? first_token_ : now) - started_;
  if (generated_ > 0) usage.decode = now - first_token_;
  return usage;
}

void Sequence::start(SlotId slot, TimePoint now) {
  CHECK(state_ == State::waiting);
  state_ = State::prefilling;
  slot_ = slot;
  started_ = now;
}

void Sequence::computed_rows(TokenCount rows) {
  CHECK(state_ == State::prefilling || state_ == State::decoding);
  computed_ += rows;
  if (state_ == State::prefilling && prompt_left() == 0) state_ = State::decoding;
  CHECK(computed_ <= prompt_tokens() + generated_);
}

void Sequence::add_token(Token token, TimePoint now) {
  CHECK(state_ == State::decoding);
  if (generated_ == 0) first_token_ = now;
  ++generated_;
  last_token_ = token;
}

void Sequence::finish() {
  CHECK(state_ != State::finished);
  state_ = State::finished;
}

}  // namespace chasqui
