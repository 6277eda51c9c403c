#include "core/sequence.h"

#include <algorithm>

namespace chasqui {

Token Sequence::token(TokenCount position) const {
  DCHECK(position >= 0 && position < length());
  if (removed_ > 0 && position >= request_->keep) position += removed_;
  const TokenCount prompt = prompt_tokens();
  return position < prompt ? request_->prompt[static_cast<std::size_t>(position)]
                           : generated_[static_cast<std::size_t>(position - prompt)];
}

TokenCount Sequence::left_in_piece() const {
  TokenCount left = left_to_checkpoint();
  if (const MediaUnit* const unit = unit_from(request_->media, computed_)) {
    const TokenCount end = unit->begin > computed_ ? unit->begin : unit->begin + unit->positions;
    left = std::min(left, end - computed_);
  }
  return left;
}

TokenCount Sequence::left_to_checkpoint() const {
  const std::vector<TokenCount>& stops = request_->checkpoints;
  const auto next = std::upper_bound(stops.begin(), stops.end(), computed_);
  if (next != stops.end()) return *next - computed_;
  if (!request_->deterministic) return left();
  // What is computed again after a preemption is computed as it was before: the end of the prompt, then row by row.
  return computed_ < prompt_tokens() ? prompt_tokens() - computed_ : std::min(left(), 1);
}

bool Sequence::at_checkpoint() const {
  return std::binary_search(request_->checkpoints.begin(), request_->checkpoints.end(), computed_);
}

void Sequence::copy_tokens(TokenCount count, std::vector<Token>& out) const {
  DCHECK(count >= 0 && count <= length());
  if (removed_ > 0) {
    out.clear();
    for (TokenCount position = 0; position < count; ++position) out.push_back(token(position));
    return;
  }
  const TokenCount of_prompt = std::min(count, prompt_tokens());
  out.assign(request_->prompt.begin(), request_->prompt.begin() + of_prompt);
  out.insert(out.end(), generated_.begin(), generated_.begin() + (count - of_prompt));
}

void Sequence::copy_tokens_to_keep(std::vector<Token>& out) const {
  copy_tokens(computed_, out);
  std::fill(out.begin() + serves_others(), out.end(), kNoToken);
}

Usage Sequence::usage(TimePoint now) const {
  Usage usage;
  usage.prompt = prompt_tokens();
  usage.cached = cached();
  usage.completion = generated();
  usage.begun = static_cast<TokenCount>(request_->begun.size());
  usage.queue = (started() ? started_ : now) - request_->arrival;
  if (started()) usage.prefill = (has_spoken() ? first_token_at_ : now) - started_;
  if (has_spoken()) usage.decode = now - first_token_at_;
  usage.steps = steps_;
  usage.shared = shared_steps_;
  usage.preemptions = preemptions_;
  usage.cpu = cpu_;
  usage.joules = joules_;
  usage.draft_tokens = draft_tokens_;
  usage.accepted_tokens = accepted_tokens_;
  usage.forced_tokens = forced_tokens_;
  usage.media_encoded = media_encoded_;
  usage.media_reused = media_reused_;
  usage.truncated = removed_ > 0 || (request_->limited_by_context && at_limit());
  if (request_->tell_cache && started()) usage.cache = cache_use_;
  return usage;
}

void Sequence::start(SlotId slot, TimePoint now, bool holds_on) {
  CHECK(state_ == State::waiting);
  state_ = State::prefilling;
  slot_ = slot;
  last_rows_at_ = now;
  slot_since_ = now;
  holds_on_ = holds_on;
  if (started()) return;
  started_ = now;
  last_token_at_ = went_on_at_ = now;
}

void Sequence::preempt(TimePoint now) {
  CHECK(holds_slot());
  if (computed_ > 0) preempted_at_ = now;
  awaits_prefix_ = false;
  ordered_unit_ = kNone;
  state_ = State::waiting;
  slot_ = SlotId{};
  lost_rows_ = computed_;
  computed_ = 0;
  clean_ = kAll;
  if (!has_computed_) cached_ = 0;
  ++preemptions_;
}

void Sequence::move(SlotId slot) {
  CHECK(holds_slot());
  slot_ = slot;
}

void Sequence::await_prefix() {
  CHECK(prefilling() && computed_ == 0);
  awaits_prefix_ = true;
}

void Sequence::restored(TokenCount tokens) {
  CHECK(prefilling() && computed_ == 0 && tokens > 0 && tokens < length());
  awaits_prefix_ = false;
  computed_ = tokens;
  if (!has_computed_) cached_ = tokens;
  if (generated() > 0 && left() <= 1) state_ = State::decoding;
}

void Sequence::not_restored() {
  CHECK(holds_slot() && (computed_ > 0 || awaits_prefix_));
  awaits_prefix_ = false;
  state_ = State::prefilling;
  computed_ = 0;
  clean_ = kAll;
  if (has_computed_) return;
  cached_ = 0;
  cache_use_ = {.limit = CacheUse::Limit::refused, .known = cache_use_.known};
}

void Sequence::computed_rows(TokenCount rows, TimePoint now) {
  passed_ = 0;
  CHECK(holds_slot() && !awaits_prefix_ && !awaits_unit());
  last_rows_at_ = now;
  if (decoding()) went_on_at_ = now;
  has_computed_ = true;
  computed_ += rows;
  CHECK(computed_ <= length());
  if (generated() > 0 && left() <= 1) state_ = State::decoding;
}

void Sequence::took_part(TokenCount rows, bool shared, TimePoint began, Duration cpu, std::optional<double> joules) {
  ++steps_;
  cpu_ += cpu;
  if (joules) joules_ = joules_.value_or(0) + *joules;
  if (shared) ++shared_steps_;
  if (!request_->traced || has_spoken()) return;
  const PrefillChunk chunk{began - request_->arrival, last_rows_at_ - request_->arrival, rows};
  if (chunks_.size() < kChunksMax) return chunks_.push_back(chunk);
  chunks_.back().end = chunk.end;
  chunks_.back().tokens += rows;
}

void Sequence::add_token(Token token, TimePoint now) {
  CHECK(holds_slot() && left() == 0);
  if (!has_spoken()) first_token_at_ = now;
  last_token_at_ = went_on_at_ = now;
  generated_.push_back(token);
  state_ = State::decoding;
}

void Sequence::add_forced_token(Token token, TimePoint now) {
  CHECK(decoding());
  last_token_at_ = went_on_at_ = now;
  generated_.push_back(token);
  ++forced_tokens_;
}

bool Sequence::awaits_unit() const {
  if (ordered_unit_ == kNone || unit_ready_) return false;
  const MediaUnit* const unit = next_unit();
  return unit != nullptr && unit->begin == ordered_unit_;
}

const MediaUnit* Sequence::unit_to_order() const {
  if (request_->media == nullptr || !prefilling() || awaits_prefix_) return nullptr;
  const MediaUnit* const unit = unit_from(request_->media, computed_);
  return unit != nullptr && unit->begin != ordered_unit_ ? unit : nullptr;
}

void Sequence::order_unit(TokenCount begin) {
  CHECK(holds_slot());
  ordered_unit_ = begin;
  unit_ready_ = unit_fresh_ = false;
}

bool Sequence::unit_ready(TokenCount begin, bool fresh) {
  if (ordered_unit_ != begin || unit_ready_) return false;
  unit_ready_ = true;
  unit_fresh_ = fresh;
  return true;
}

void Sequence::began_unit(bool encoded) {
  ++(encoded || unit_fresh_ ? media_encoded_ : media_reused_);
  unit_fresh_ = false;
}

void Sequence::drafted(TokenCount checked, TokenCount accepted) {
  draft_tokens_ += checked;
  accepted_tokens_ += accepted;
}

TokenCount Sequence::to_remove() const {
  if (request_->shift_at == 0 || !decoding() || length() < request_->shift_at) return 0;
  const TokenCount behind = length() - 1 - request_->keep;
  const TokenCount wanted = std::clamp(request_->discard > 0 ? request_->discard : behind / 2, 1, behind - 1);
  return std::max(0, std::min(wanted, computed_ - 1 - request_->keep));
}

void Sequence::shift(TokenCount tokens) {
  CHECK(decoding() && tokens > 0 && request_->keep + tokens < computed_);
  removed_ += tokens;
  computed_ -= tokens;
  clean_ = std::min(clean_, request_->keep);
}

void Sequence::finish() {
  CHECK(state_ != State::finished);
  state_ = State::finished;
}

}  // namespace chasqui
