// A sequence: the mutable execution state of one request inside one worker. Owned by the Scheduler, which alone
// changes it (one-writer); worker thread only.
//
//   waiting ──start()──▶ prefilling ──whole prompt computed──▶ decoding ──finish()──▶ finished
//      └────────────────────────finish() from anywhere──────────────────────────────▶
//
// What the model holds of it are the positions 0 … computed-1 of its slot: first the prompt, then every generated
// token but the last, which is the input of the next decode row.
#pragma once

#include "core/event.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

class Sequence {
 public:
  enum class State { waiting, prefilling, decoding, finished };

  explicit Sequence(RequestPtr request) : request_(std::move(request)) {}

  const Request& request() const { return *request_; }
  const RequestPtr& request_ptr() const { return request_; }
  RequestId id() const { return request_->id; }
  State state() const { return state_; }
  SlotId slot() const { return slot_; }
  TokenCount computed() const { return computed_; }
  TokenCount generated() const { return generated_; }
  TokenCount prompt_left() const { return prompt_tokens() - computed_; }
  // REQUIRES: decoding. The input of the next decode row.
  Token last_token() const { return last_token_; }
  // Cells that it can ever need: its prompt and all of its answer but the last token, which is never an input.
  TokenCount cells_max() const;
  Usage usage(TimePoint now) const;

  // REQUIRES: waiting.
  void start(SlotId slot, TimePoint now);
  // `rows` more positions are in the model. REQUIRES: prefilling or decoding.
  void computed_rows(TokenCount rows);
  // A token was sampled. REQUIRES: the prompt is computed.
  void add_token(Token token, TimePoint now);
  // The answer is as long as it may be.
  bool at_limit() const { return generated_ >= request_->max_tokens; }
  void finish();

 private:
  TokenCount prompt_tokens() const { return static_cast<TokenCount>(request_->prompt.size()); }

  const RequestPtr request_;
  State state_ = State::waiting;
  SlotId slot_;
  TokenCount computed_ = 0;
  TokenCount generated_ = 0;
  Token last_token_ = 0;
  TimePoint started_{};
  TimePoint first_token_{};
};

}  // namespace chasqui
