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
// A draft model is taken to need this share of a step for a guess until it has made one.
constexpr double kUnseenDraft = 0.1;
// Of a sequence it computes so many tokens before its guesses in any case, because after a step of which all guesses
// were right there are two that it has not seen: equally many of each sequence are computed in one pass.
constexpr TokenCount kNewest = 2;
// What is expected of guesses that nobody has made yet.
constexpr double kUnseenGuess = 0.5;
constexpr double kUnseenModelsGuess = 0.7;
// That is expected again after so many sequences that were not guessed for: when guesses are never right, a few are
// checked in one of so many requests.
constexpr int kForgottenAfter = 16;
// Heads go on learning for so many steps after guesses have paid: they pay again soon, mostly. When they begin anew
// within an answer they guess badly before they know this much of it.
constexpr int kLearningSteps = 64;
constexpr TokenCount kKnownLeast = 16;
// Rows that a draft model reads in one step: at first, and at most.
constexpr TokenCount kFirstReading = 64;
constexpr TokenCount kReadingMost = 512;

}  // namespace

Speculation::Speculation(const SpeculationConfig& config)
    : config_(config),
      all_(config.draft_model ? kUnseenModelsGuess : kUnseenGuess),
      learning_steps_(config.heads ? kLearningSteps : 0) {}

bool Speculation::Turn::ready() const {
  const TokenCount length = sequence->length();
  return guesser->read >= length - kNewest && (guesser->from == 0 || length - guesser->from >= kKnownLeast);
}

bool Speculation::anyone_ready() const { return std::ranges::any_of(now_, &Turn::ready); }

Speculation::Guesser& Speculation::guesser_of(const Sequence& sequence) {
  const auto known = guessers_.find(sequence.id());
  if (known != guessers_.end()) return known->second;
  if (config_.draft_model && ++unasked_ > kForgottenAfter) {
    all_ = Acceptance(kUnseenModelsGuess);
    unasked_ = 0;
  }
  Guesser& fresh = guessers_.try_emplace(sequence.id(), all_.chance()).first->second;
  if (config_.heads && learns()) fresh.read = sequence.length();
  return fresh;
}

TokenCount Speculation::most(const Sequence& sequence, const Room& room) const {
  const Request& request = sequence.request();
  const TokenCount wanted = request.guesses_max < 0 ? config_.guesses_max : request.guesses_max;
  return std::clamp(std::min({wanted, config_.guesses_max, room.cells_per_slot - sequence.length(),
                              request.max_tokens - sequence.generated() - 1}),
                    0, kGuessesMost);
}

void Speculation::collect(std::span<const Sequence* const> decoding, const Room& room) {
  now_.clear();
  for (const Sequence* sequence : decoding) {
    Guesser& guesser = guesser_of(*sequence);
    guesser.checked = 0;
    guesser.guesses.clear();
    const TokenCount most = this->most(*sequence, room);
    if (most == 0) continue;
    if (config_.draft_model) {
      guesser.guesses.assign(static_cast<std::size_t>(most), 0);
    } else {
      guesser.index.follow(*sequence);
      guesser.index.guess(*sequence, most, guesser.guesses);
      if (config_.always)
        guesser.guesses.resize(static_cast<std::size_t>(most), sequence->token(sequence->length() - 1));
    }
    if (!guesser.guesses.empty()) now_.push_back({sequence, &guesser});
  }
}

TokenCount Speculation::choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room) {
  now_.clear();
  after_trial_ = trial_;
  pays_ = checks_ = trial_ = false;
  previous_ = std::exchange(width_before_, 1);
  turns_ = previous_ != 1;
  if (!on() || decoding.empty()) return 1;
  collect(decoding, room);
  TokenCount widest = 1;
  for (const Turn& turn : now_) widest = std::max(widest, 1 + static_cast<TokenCount>(turn.guesser->guesses.size()));
  TokenCount deepest = 0;
  for (const Sequence* sequence : decoding) {
    deepest = std::max(deepest, sequence->length());
    if (room.even) widest = std::min(widest, room.cells_per_slot - sequence->length() + 1);
  }
  if (now_.empty() || !times.known(Batch::Kind::decode)) return 1;
  time_ = room.time;
  const TokenCount best = pick(static_cast<TokenCount>(decoding.size()), widest, deepest, times, room);
  pays_ = best > 1;
  if (config_.heads && pays_ && !trial_) learning_steps_ = kLearningSteps;
  for (const Turn& turn : now_) {
    if (config_.draft_model && !turn.ready()) continue;
    checks_ |= pays_;
    turn.guesser->checked = std::min(best - 1, static_cast<TokenCount>(turn.guesser->guesses.size()));
  }
  const TokenCount width = checks_ ? best : 1;
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
    if (width <= 1 + config_.guesses_min) {
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
  for (const Turn& turn : now_) rows += std::min(width - 1, static_cast<TokenCount>(turn.guesser->guesses.size()));
  return rows;
}

// That a step of such a width brings.
double Speculation::tokens(TokenCount width, std::size_t sequences) const {
  double all = static_cast<double>(sequences);
  for (const Turn& turn : now_) {
    const auto guesses = static_cast<TokenCount>(turn.guesser->guesses.size());
    all += turn.guesser->acceptance.expected(std::min(width - 1, guesses));
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
    const double guess = draft_cost_.guess_seconds(now_.size());
    takes += made(width - 1) * (guess > 0 ? guess : kUnseenDraft * alone);
  }
  return takes;
}

// To have so many guesses of a sequence.
TokenCount Speculation::made(TokenCount wanted) const {
  return config_.heads && wanted > 0 ? config_.guesses_max : wanted;
}

std::span<const Token> Speculation::guesses(const Sequence& sequence) const {
  const auto found = guessers_.find(sequence.id());
  if (found == guessers_.end()) return {};
  return std::span(found->second.guesses).first(static_cast<std::size_t>(found->second.checked));
}

void Speculation::plan_drafting(Drafting& drafting) {
  drafting_.clear();
  drafts_ = 0;
  draft_guesses_ = 0;
  if (!config_.draft_model || !pays_) return;
  for (const auto& [sequence, guesser] : now_) {
    if (guesser->checked == 0) continue;
    const TokenCount length = sequence->length();
    for (TokenCount position = length - kNewest; position < length; ++position) {
      drafting.rows.push_back({sequence->token(position), position, sequence->slot(), position + 1 == length});
    }
    drafting_.emplace_back(sequence->id(), length);
    ++drafts_;
    draft_guesses_ = std::max(draft_guesses_, made(guesser->checked));
  }
  if (!config_.heads) read_more(drafting);
}

// For those whom it can guess for in one of the next steps.
void Speculation::read_more(Drafting& drafting) {
  const double row = draft_cost_.row_seconds();
  TokenCount left = kFirstReading;
  if (row > 0) left = static_cast<TokenCount>(std::clamp(to_seconds(time_) / 2 / row, 16.0, double{kReadingMost}));
  for (const Turn& turn : now_) {
    if (turn.ready() || left == 0) continue;
    const TokenCount begin = turn.guesser->read;
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
    const auto found = guessers_.find(id);
    if (found == guessers_.end()) continue;
    Guesser& guesser = found->second;
    if (guesser.checked == 0) reading += static_cast<std::size_t>(end - guesser.read);
    guesser.read = result.drafted ? end : 0;  // else who knows; it begins again
  }
  if (result.drafted && draft_guesses_ > 0) {
    draft_cost_.guessed(drafts_, draft_guesses_, result.drafting + result.learning);
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
  const Duration guessing = result.drafting + (checks_ ? result.learning : Duration::zero());
  const double all = to_seconds(took + result.drafting + result.draft_reading + result.learning);
  const double longer = std::max(to_seconds(took + guessing) - expected_, 0.0);
  if (turns_) turn_seconds_ += (turn_seconds_ == 0 ? 1 : kNewestTurn) * (longer - turn_seconds_);
  const bool counts = trial_ ? checks_ || !pays_ : after_trial_;
  const Duration for_nothing =
      (trial_ ? result.draft_reading : Duration::zero()) + (checks_ ? Duration::zero() : result.learning);
  const double lost = counts ? std::max(all - worth_, 0.0) : to_seconds(for_nothing);
  credit_.spend(all, lost);
}

void Speculation::commit(const Sequence& sequence, TokenCount checked, TokenCount said) {
  if (!on()) return;
  const TokenCount right = std::min(checked, said - 1);
  if (checked > 0) {
    unasked_ = 0;
    ++stats_.steps;
    stats_.checked += static_cast<std::uint64_t>(checked);
    stats_.right += static_cast<std::uint64_t>(right);
    for (TokenCount i = 0; i < right; ++i) ++stats_.right_at[static_cast<std::size_t>(i)];
  }
  const auto found = guessers_.find(sequence.id());
  if (found == guessers_.end()) return;
  Guesser& guesser = found->second;
  TokenCount were_right = right;
  TokenCount known = checked;
  if (config_.heads) {
    if (learned_ && guesser.read == 0) guesser.from = sequence.length();
    guesser.read = learned_ ? sequence.length() : 0;
  } else if (config_.draft_model) {
    if (checked > 0 && guesser.read > 0) guesser.read += std::min(right, checked - 1);  // the last guess it only made
  } else if (!config_.always) {
    known = std::min(static_cast<TokenCount>(guesser.guesses.size()), said);
    const auto newest = sequence.generated_tokens().end() - said;
    const auto wrong = std::mismatch(guesser.guesses.begin(), guesser.guesses.begin() + known, newest).first;
    were_right = static_cast<TokenCount>(wrong - guesser.guesses.begin());
  }
  guesser.guesses.clear();
  guesser.checked = 0;
  if (known == 0) return;
  guesser.acceptance.observe(were_right, were_right < known);
  all_.observe(were_right, were_right < known);
}

void Speculation::preempted(RequestId id) {
  const auto found = guessers_.find(id);
  if (found != guessers_.end()) found->second.read = 0;
}

}  // namespace chasqui
