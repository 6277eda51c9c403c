// A sequence: the mutable execution state of one request inside one worker. Owned by the Scheduler, which alone
// changes it (one-writer); worker thread only.
//
//   waiting ──start()──▶ prefilling ──all but the next input computed──▶ decoding ──finish()──▶ finished
//      ▲                     │                                              │
//      └──────preempt()──────┴──────────────────────────────────────────────┘      finish() from anywhere
//
// Its tokens are the prompt and what was generated so far: `length` of them. The model holds the positions
// 0 … computed-1 in the slot. A token is sampled from the row of the last token, so there is always one left to compute
// until the end. A preempted sequence keeps its tokens; what the prefix cache does not have of them is computed again.
#pragma once

#include <vector>

#include "core/event.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

class Sequence {
 public:
  enum class State { waiting, prefilling, decoding, finished };

  explicit Sequence(RequestPtr request) : request_(std::move(request)) {}

  const Request& request() const { return *request_; }
  RequestId id() const { return request_->id; }
  State state() const { return state_; }
  bool decoding() const { return state_ == State::decoding; }
  bool prefilling() const { return state_ == State::prefilling; }
  SlotId slot() const { return slot_; }
  TokenCount length() const { return prompt_tokens() + generated(); }
  TokenCount computed() const { return computed_; }
  TokenCount left() const { return length() - computed_; }
  TokenCount generated() const { return static_cast<TokenCount>(generated_.size()); }
  const std::vector<Token>& generated_tokens() const { return generated_; }
  // REQUIRES: 0 ≤ position < length()
  Token token(TokenCount position) const;
  // The first `count` tokens, in place of what `out` held. REQUIRES: 0 ≤ count ≤ length()
  void copy_tokens(TokenCount count, std::vector<Token>& out) const;
  // When its last token was sampled; before the first, when it started.
  TimePoint last_token_at() const { return last_token_at_; }
  // When rows of it were last computed; before the first, when it got its slot.
  TimePoint last_rows_at() const { return last_rows_at_; }
  TimePoint started_at() const { return started_; }
  bool started() const { return started_ != kNever; }
  // Tokens of the prompt that it did not compute, since it started with them.
  TokenCount cached() const { return cached_; }
  std::int32_t preemptions() const { return preemptions_; }
  Usage usage(TimePoint now) const;
  // With Request::traced; chunks beyond kChunksMax are added to the last one.
  const std::vector<PrefillChunk>& chunks() const { return chunks_; }
  static constexpr std::size_t kChunksMax = 64;

  // REQUIRES: waiting.
  void start(SlotId slot, TimePoint now);
  // Its slot goes to somebody else. REQUIRES: prefilling or decoding.
  void preempt();
  // It goes on in another slot. REQUIRES: prefilling or decoding.
  void move(SlotId slot);
  // Its first tokens are in the model without having been computed again. REQUIRES: prefilling, nothing is computed.
  void restored(TokenCount tokens);
  // … but they were not brought there after all. REQUIRES: restored, and nothing computed since.
  void not_restored();
  // `rows` more positions are in the model. REQUIRES: prefilling or decoding.
  void computed_rows(TokenCount rows, TimePoint now);
  // The step that began then computed them, alone or together with others. REQUIRES: computed_rows() was just called.
  void took_part(TokenCount rows, bool shared, TimePoint began);
  // A token was sampled. REQUIRES: everything is computed.
  void add_token(Token token, TimePoint now);
  // The answer is as long as it may be.
  bool at_limit() const { return generated() >= request_->max_tokens; }
  void finish();

 private:
  TokenCount prompt_tokens() const { return static_cast<TokenCount>(request_->prompt.size()); }
  bool holds_slot() const { return state_ == State::prefilling || state_ == State::decoding; }

  const RequestPtr request_;
  State state_ = State::waiting;
  SlotId slot_;
  TokenCount computed_ = 0;
  TokenCount cached_ = 0;      // of the prompt, when the first rows of it were computed
  bool has_computed_ = false;  // rows of it, at any time
  std::vector<Token> generated_;
  std::vector<PrefillChunk> chunks_;
  std::int32_t preemptions_ = 0;
  std::int32_t steps_ = 0;
  std::int32_t shared_steps_ = 0;
  TimePoint started_ = kNever;
  TimePoint first_token_at_{};
  TimePoint last_token_at_{};
  TimePoint last_rows_at_{};
};

}  // namespace chasqui
