#include "sched/speculation.h"

#include <algorithm>

namespace chasqui {
namespace {

// Checking must bring so many times the tokens a second: what is predicted is never quite right.
constexpr double kBetter = 1.03;
// A size of batch that has not been seen is tried when it would pay if rows for guesses cost this share of the others.
constexpr double kUnseenRow = 0.15;
// What was slow once may have been so by chance: now and then a size is believed to take this much of it.
constexpr double kSecondChance = 0.75;
constexpr std::uint64_t kSecondChanceEvery = 256;

}  // namespace

TokenCount Speculation::most(const Sequence& sequence, const Room& room) const {
  const Request& request = sequence.request();
  const TokenCount wanted = request.guesses_max < 0 ? config_.guesses_max : request.guesses_max;
  return std::clamp(std::min({wanted, config_.guesses_max, room.cells_per_slot - sequence.length(),
                              request.max_tokens - sequence.generated() - 1}),
                    0, kGuessesMost);
}

TokenCount Speculation::choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room) {
  now_.clear();
  if (!on() || decoding.empty()) return 1;
  TokenCount deepest = 0;
  TokenCount widest = 1;
  TokenCount cells = room.cells_per_slot;
  for (const Sequence* sequence : decoding) {
    deepest = std::max(deepest, sequence->length());
    cells = std::min(cells, room.cells_per_slot - sequence->length() + 1);
    const auto found = guessers_.try_emplace(sequence->id(), all_.chance()).first;
    Guesser& guesser = found->second;
    guesser.checked = 0;
    guesser.guesses.clear();
    const TokenCount most = this->most(*sequence, room);
    if (most == 0) continue;
    guesser.index.follow(*sequence);
    guesser.index.guess(*sequence, most, guesser.guesses);
    if (guesser.guesses.empty()) continue;
    now_.push_back(&guesser);
    widest = std::max(widest, 1 + static_cast<TokenCount>(guesser.guesses.size()));
  }
  if (room.even) widest = std::min(widest, cells);
  const auto sequences = static_cast<TokenCount>(decoding.size());
  const double alone = to_seconds(times.predict(Batch::Kind::decode, {sequences, deepest}));
  if (now_.empty() || alone <= 0) return 1;
  ++considered_;

  const double limit = std::max(to_seconds(room.time), alone);
  TokenCount best = 1;
  double best_rate = kBetter * sequences / alone;
  for (TokenCount width = 2; width <= widest; ++width) {
    TokenCount rows = sequences * width;
    if (!room.even) {
      rows = sequences;
      for (const Guesser* each : now_) rows += std::min(width - 1, static_cast<TokenCount>(each->guesses.size()));
    }
    if (rows > room.rows || rows - sequences > room.cells) break;
    const double takes = seconds(rows, width, deepest, times, alone);
    const double rate = tokens(width, decoding.size()) / takes;
    if (takes > limit || rate <= best_rate) continue;
    best = width;
    best_rate = rate;
  }
  for (Guesser* each : now_) each->checked = std::min(best - 1, static_cast<TokenCount>(each->guesses.size()));
  return best;
}

// That a step of such a width brings.
double Speculation::tokens(TokenCount width, std::size_t sequences) const {
  double all = static_cast<double>(sequences);
  for (const Guesser* each : now_) {
    all += each->acceptance.expected(std::min(width - 1, static_cast<TokenCount>(each->guesses.size())));
  }
  return all;
}

double Speculation::seconds(TokenCount rows, TokenCount width, TokenCount deepest, const StepTime& times,
                            double alone) const {
  if (!times.seen(Batch::Kind::decode, rows)) return alone * (1 + kUnseenRow * (width - 1));
  const double takes = to_seconds(times.predict(Batch::Kind::decode, {rows, deepest + width - 1}));
  return considered_ % kSecondChanceEvery == 0 ? kSecondChance * takes : takes;
}

std::span<const Token> Speculation::guesses(const Sequence& sequence) const {
  const auto found = guessers_.find(sequence.id());
  if (found == guessers_.end()) return {};
  return std::span(found->second.guesses).first(static_cast<std::size_t>(found->second.checked));
}

void Speculation::commit(const Sequence& sequence, TokenCount checked, TokenCount said) {
  if (!on()) return;
  const TokenCount right = std::min(checked, said - 1);
  if (checked > 0) {
    ++stats_.steps;
    stats_.checked += static_cast<std::uint64_t>(checked);
    stats_.right += static_cast<std::uint64_t>(right);
    for (TokenCount i = 0; i < right; ++i) ++stats_.right_at[static_cast<std::size_t>(i)];
  }
  const auto found = guessers_.find(sequence.id());
  if (found == guessers_.end()) return;
  const std::vector<Token>& guesses = found->second.guesses;
  const auto known = std::min(guesses.size(), static_cast<std::size_t>(said));
  if (known == 0) return;
  const std::vector<Token>& tokens = sequence.generated_tokens();
  const auto newest = tokens.end() - said;
  const auto wrong = std::mismatch(guesses.begin(), guesses.begin() + static_cast<std::ptrdiff_t>(known), newest).first;
  const auto were_right = static_cast<std::size_t>(wrong - guesses.begin());
  found->second.acceptance.observe(static_cast<TokenCount>(were_right), were_right < known);
  all_.observe(static_cast<TokenCount>(were_right), were_right < known);
  found->second.guesses.clear();
}

}  // namespace chasqui
