#include "sched/speculation.h"

#include <algorithm>
#include <utility>

namespace chasqui {
namespace {

// Another width must bring so many times the tokens a second: what is predicted is never quite right, and of many
// predictions the best is mostly one that is too good.
constexpr double kBetter = 1.03;
// Rows beyond the next smaller batch that was seen are taken to cost this share of those in it, until they are tried.
constexpr double kUnseenRow = 0.5;
// A step of another width than the one before takes longer, and so does the one that turns back. A width is expected to
// be kept for so many steps, which have to bring both in again.
constexpr double kSteady = 8;
// How much the newest turn says about the next.
constexpr double kNewestTurn = 0.25;
// A trial is so many steps of the same width, since in the first of them libllama builds its graph anew.
constexpr int kTrialSteps = 2;
// A draft model is taken to need this share of a step for a draft token until it has made one.
constexpr double kUnseenDraft = 0.1;
// Of a sequence it computes so many tokens before its draft tokens in any case, because after a step of which all draft
// tokens were accepted there are two that it has not seen: equally many of each sequence are computed in one pass.
constexpr TokenCount kNewest = 2;
// The acceptance rate that is expected before any draft token was checked.
constexpr double kPriorAcceptance = 0.5;
constexpr double kPriorModelAcceptance = 0.7;
// That is expected again after so many sequences without draft tokens: when draft tokens are never accepted, a few are
// checked in one of so many requests.
constexpr int kForgottenAfter = 16;
// Heads go on learning for so many steps after draft tokens have paid: they pay again soon, mostly. When they begin
// anew within an answer they draft badly before they know this much of it.
constexpr int kLearningSteps = 64;
constexpr TokenCount kKnownLeast = 16;
// Rows that a draft model reads in one step: at first, and at most.
constexpr TokenCount kFirstReading = 64;
constexpr TokenCount kReadingMost = 512;

}  // namespace

Speculation::Speculation(const SpeculationConfig& config)
    : config_(config),
      all_(config.draft_model ? kPriorModelAcceptance : kPriorAcceptance),
      learning_steps_(config.heads ? kLearningSteps : 0) {}

bool Speculation::Turn::ready() const {
  const TokenCount length = sequence->length();
  return draft->read >= length - kNewest && (draft->from == 0 || length - draft->from >= kKnownLeast);
}

bool Speculation::anyone_ready() const { return std::ranges::any_of(now_, &Turn::ready); }

Speculation::SequenceDraft& Speculation::draft_of(const Sequence& sequence) {
  const auto known = sequence_drafts_.find(sequence.id());
  if (known != sequence_drafts_.end()) return known->second;
  if (config_.draft_model && ++unasked_ > kForgottenAfter) {
    all_ = Acceptance(kPriorModelAcceptance);
    unasked_ = 0;
  }
  SequenceDraft& fresh = sequence_drafts_.try_emplace(sequence.id(), all_.chance(), config_.ngram).first->second;
  if (config_.heads && learns()) fresh.read = sequence.length();
  return fresh;
}

TokenCount Speculation::most(const Sequence& sequence, const Room& room) const {
  const Request& request = sequence.request();
  const TokenCount wanted = request.draft_tokens_max < 0 ? config_.draft_tokens_max : request.draft_tokens_max;
  return std::clamp(std::min({wanted, config_.draft_tokens_max, room.cells_per_slot - sequence.length(),
                              request.max_tokens - sequence.generated() - 1}),
                    0, kDraftTokensMost);
}

void Speculation::collect(std::span<const Sequence* const> decoding, const Room& room) {
  now_.clear();
  for (const Sequence* sequence : decoding) {
    SequenceDraft& draft = draft_of(*sequence);
    draft.checked = 0;
    draft.draft_tokens.clear();
    const TokenCount most = sequence->left() > 1 ? 0 : this->most(*sequence, room);
    if (most == 0) continue;
    if (config_.draft_model) {
      draft.draft_tokens.assign(static_cast<std::size_t>(most), 0);
    } else {
      draft.index.follow(*sequence);
      draft.index.draft(*sequence, most, draft.draft_tokens);
      if (config_.always)
        draft.draft_tokens.resize(static_cast<std::size_t>(most), sequence->token(sequence->length() - 1));
    }
    if (!draft.draft_tokens.empty()) now_.push_back({sequence, &draft});
  }
}

TokenCount Speculation::choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room) {
  now_.clear();
  after_trial_ = trial_;
  pays_ = checks_ = trial_ = false;
  previous_ = std::exchange(width_before_, room.width);
  turns_ = previous_ != room.width;
  if (!on() || decoding.empty()) return room.width;
  collect(decoding, room);
  TokenCount widest = 1;
  for (const Turn& turn : now_) widest = std::max(widest, 1 + static_cast<TokenCount>(turn.draft->draft_tokens.size()));
  TokenCount deepest = 0;
  for (const Sequence* sequence : decoding) {
    deepest = std::max(deepest, sequence->length());
    if (room.even) widest = std::min(widest, room.cells_per_slot - sequence->length() + 1);
  }
  if (now_.empty() || !times.known(Batch::Kind::decode)) return room.width;
  time_ = room.time;
  const TokenCount best = pick(static_cast<TokenCount>(decoding.size()), widest, deepest, times, room);
  // Rows that are there for forced tokens are no reason to draft.
  pays_ = best > room.width || (best > 1 && config_.draft_tokens_min > 0);
  if (config_.heads && pays_ && !trial_) learning_steps_ = kLearningSteps;
  for (const Turn& turn : now_) {
    if (config_.draft_model && !turn.ready()) continue;
    checks_ |= pays_;
    turn.draft->checked = pays_ ? std::min(best - 1, static_cast<TokenCount>(turn.draft->draft_tokens.size())) : 0;
  }
  const TokenCount width = checks_ ? std::max(best, room.width) : room.width;
  width_before_ = width;
  turns_ = width != previous_;
  return width;
}

// The width that is expected to bring most tokens a second; or, where there is time for trials, the one that may bring
// even more.
TokenCount Speculation::pick(TokenCount sequences, TokenCount widest, TokenCount deepest, const StepTime& times,
                             const Room& room) {
  const double alone = to_seconds(times.predict(Batch::Kind::decode, {sequences, deepest}));
  const double limit = std::max(to_seconds(room.time), alone);
  struct Choice {
    TokenCount width = 1;
    double rate = 0;  // tokens a second
  };
  const auto turn = [this](TokenCount width) { return width == previous_ ? 0 : 2 / kSteady * turn_seconds_; };
  Choice best{1, sequences / (alone + turn(1))};
  TokenCount reachable = 1;
  Choice hoped{1, best.rate / times.hope(Batch::Kind::decode, sequences)};
  for (TokenCount width = 2; width <= widest; ++width) {
    const TokenCount rows = rows_of(width, sequences, room.even);
    if (rows > room.rows || rows - sequences > room.cells) break;
    const double takes = seconds(rows, width, deepest, times, alone);
    const double rate = tokens(width, static_cast<std::size_t>(sequences)) / (takes + turn(width));
    if (width <= std::max(1 + config_.draft_tokens_min, room.width)) {
      best = hoped = {width, rate};
      continue;
    }
    const double hope = times.hope(Batch::Kind::decode, rows);
    if (hope * takes > limit) continue;
    reachable = width;
    if (rate > hope * hoped.rate) hoped = {width, rate / hope};
    if (takes <= limit && rate > kBetter * best.rate && times.seen(Batch::Kind::decode, rows)) best = {width, rate};
  }
  const bool hopes = hoped.width != best.width && hoped.rate > kBetter * best.rate;
  learns_for_trial_ &= hopes;
  if (trial_steps_ == 0 && hopes && (credit_.enough() || learns_for_trial_)) {
    learns_for_trial_ = config_.heads && !anyone_ready();
    if (learns_for_trial_) {
      learning_steps_ = kKnownLeast;
    } else {
      trial_steps_ = kTrialSteps;
      trial_width_ = hoped.width;
    }
  }
  trial_ = trial_steps_ > 0 && trial_width_ <= reachable;
  trial_steps_ = trial_ ? trial_steps_ - 1 : 0;
  const TokenCount width = trial_ ? trial_width_ : best.width;
  worth_ = tokens(width, static_cast<std::size_t>(sequences)) / best.rate;
  expected_ = width == 1 ? alone : seconds(rows_of(width, sequences, room.even), width, deepest, times, alone);
  return width;
}

TokenCount Speculation::rows_of(TokenCount width, TokenCount sequences, bool even) const {
  if (even) return sequences * width;
  TokenCount rows = sequences;
  for (const Turn& turn : now_) rows += std::min(width - 1, static_cast<TokenCount>(turn.draft->draft_tokens.size()));
  return rows;
}

// That a step of such a width brings.
double Speculation::tokens(TokenCount width, std::size_t sequences) const {
  double all = static_cast<double>(sequences);
  for (const Turn& turn : now_) {
    const auto draft_tokens = static_cast<TokenCount>(turn.draft->draft_tokens.size());
    all += turn.draft->acceptance.expected(std::min(width - 1, draft_tokens));
  }
  return all;
}

double Speculation::seconds(TokenCount rows, TokenCount width, TokenCount deepest, const StepTime& times,
                            double alone) const {
  const TokenCount depth = deepest + width - 1;
  const TokenCount known =
      times.seen(Batch::Kind::decode, rows) ? rows : std::max(times.seen_below(Batch::Kind::decode, rows), 1);
  double takes = to_seconds(times.predict(Batch::Kind::decode, {known, depth}));
  takes *= 1 + kUnseenRow * (rows - known) / known;
  if (config_.draft_model) {
    const double each = draft_cost_.token_seconds(now_.size());
    takes += made(width - 1) * (each > 0 ? each : kUnseenDraft * alone);
  }
  return takes;
}

// To have so many draft tokens of a sequence.
TokenCount Speculation::made(TokenCount wanted) const {
  return config_.heads && wanted > 0 ? config_.draft_tokens_max : wanted;
}

std::span<const Token> Speculation::draft_tokens(const Sequence& sequence) const {
  const auto found = sequence_drafts_.find(sequence.id());
  if (found == sequence_drafts_.end()) return {};
  return std::span(found->second.draft_tokens).first(static_cast<std::size_t>(found->second.checked));
}

void Speculation::plan_drafting(Drafting& drafting) {
  drafting_.clear();
  drafts_ = 0;
  draft_passes_ = 0;
  if (!config_.draft_model || !pays_) return;
  for (const auto& [sequence, draft] : now_) {
    if (draft->checked == 0) continue;
    const TokenCount length = sequence->length();
    for (TokenCount position = length - kNewest; position < length; ++position) {
      drafting.rows.push_back({sequence->token(position), position, sequence->slot(), position + 1 == length});
    }
    drafting_.emplace_back(sequence->id(), length);
    ++drafts_;
    draft_passes_ = std::max(draft_passes_, made(draft->checked));
  }
  if (!config_.heads) read_more(drafting);
}

// For those sequences that it can draft for in one of the next steps.
void Speculation::read_more(Drafting& drafting) {
  const double row = draft_cost_.row_seconds();
  TokenCount left = kFirstReading;
  if (row > 0) left = static_cast<TokenCount>(std::clamp(to_seconds(time_) / 2 / row, 16.0, double{kReadingMost}));
  for (const Turn& turn : now_) {
    if (turn.ready() || left == 0) continue;
    const TokenCount begin = turn.draft->read;
    // This step brings a token, so this is all but the newest two when it is done.
    const TokenCount end = std::min(turn.sequence->length() - kNewest + 1, begin + left);
    for (TokenCount position = begin; position < end; ++position) {
      drafting.reading.push_back({turn.sequence->token(position), position, turn.sequence->slot(), false});
    }
    left -= end - begin;
    drafting_.emplace_back(turn.sequence->id(), end);
  }
}

void Speculation::drafted(const BatchResult& result) {
  std::size_t reading = 0;
  for (const auto& [id, end] : drafting_) {
    const auto found = sequence_drafts_.find(id);
    if (found == sequence_drafts_.end()) continue;
    SequenceDraft& draft = found->second;
    if (draft.checked == 0) reading += static_cast<std::size_t>(end - draft.read);
    draft.read = result.drafted ? end : 0;  // else unknown; it begins again
  }
  if (result.drafted && draft_passes_ > 0) {
    draft_cost_.drafted(drafts_, draft_passes_, result.drafting + result.learning);
  }
  if (result.drafted && reading > 0) {
    draft_cost_.read(reading, result.draft_reading);
    stats_.draft_rows += reading;
  }
  drafting_.clear();
}

// Reading for the draft model belongs to the trial that it is done for, and so does what heads learn for nothing.
void Speculation::computed(const BatchResult& result, Duration took) {
  learned_ = learns();
  if (learned_) --learning_steps_;
  if (!on() || now_.empty()) return;
  const Duration drafting = result.drafting + (checks_ ? result.learning : Duration::zero());
  const double all = to_seconds(took + result.drafting + result.draft_reading + result.learning);
  const double longer = std::max(to_seconds(took + drafting) - expected_, 0.0);
  if (turns_) turn_seconds_ += (turn_seconds_ == 0 ? 1 : kNewestTurn) * (longer - turn_seconds_);
  const bool counts = trial_ ? checks_ || !pays_ : after_trial_;
  const Duration for_nothing =
      (trial_ ? result.draft_reading : Duration::zero()) + (checks_ ? Duration::zero() : result.learning);
  const double lost = counts ? std::max(all - worth_, 0.0) : to_seconds(for_nothing);
  credit_.spend(all, lost);
}

void Speculation::commit(const Sequence& sequence, TokenCount checked, TokenCount said) {
  if (!on()) return;
  const TokenCount accepted = std::min(checked, said - 1);
  if (checked > 0) {
    unasked_ = 0;
    ++stats_.steps;
    stats_.checked += static_cast<std::uint64_t>(checked);
    stats_.accepted += static_cast<std::uint64_t>(accepted);
    for (TokenCount i = 0; i < accepted; ++i) ++stats_.accepted_at[static_cast<std::size_t>(i)];
  }
  const auto found = sequence_drafts_.find(sequence.id());
  if (found == sequence_drafts_.end()) return;
  SequenceDraft& draft = found->second;
  TokenCount would_be_accepted = accepted;
  TokenCount known = checked;
  if (config_.heads) {
    if (learned_ && draft.read == 0) draft.from = sequence.length();
    draft.read = learned_ ? sequence.length() : 0;
  } else if (config_.draft_model) {
    if (checked > 0 && draft.read > 0)
      draft.read += std::min(accepted, checked - 1);  // the last draft token it only made
  } else if (!config_.always) {
    known = std::min(static_cast<TokenCount>(draft.draft_tokens.size()), said);
    const auto newest = sequence.generated_tokens().end() - said;
    const auto wrong = std::mismatch(draft.draft_tokens.begin(), draft.draft_tokens.begin() + known, newest).first;
    would_be_accepted = static_cast<TokenCount>(wrong - draft.draft_tokens.begin());
  }
  draft.draft_tokens.clear();
  draft.checked = 0;
  if (known == 0) return;
  draft.acceptance.observe(would_be_accepted, would_be_accepted < known);
  all_.observe(would_be_accepted, would_be_accepted < known);
}

void Speculation::preempted(RequestId id) {
  const auto found = sequence_drafts_.find(id);
  if (found != sequence_drafts_.end()) found->second.read = 0;
}

}  // namespace chasqui
