#include "sched/speculation.h"

#include <algorithm>

#include "sched/moving_average.h"

namespace chasqui {

TokenCount Speculation::choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room) {
  step_ = {.width = room.width, .before = step_.width, .time = room.time, .after_trial = step_.trial};
  drafts_.clear();
  if (!on() || decoding.empty() || (config_.alone && decoding.size() > 1)) return step_.width;
  drafts_.collect(decoding, room.cells_per_slot);
  if (config_.draft_model) std::ranges::for_each(decoding, [this](const Sequence* each) { draft_plan_.meet(*each); });
  if (drafts_.turns().empty() || !times.known(Batch::Kind::decode)) return step_.width;
  weigh(decoding, times, room);
  const TokenCount best = pick();
  // Rows that are there for forced tokens are no reason to draft.
  step_.pays = best > room.width || (best > 1 && config_.draft_tokens_min > 0);
  if (!step_.pays) return step_.width;
  if (!step_.trial) draft_plan_.learn_on();
  for (const Drafts::Turn& turn : drafts_.turns()) {
    if (!ready(turn)) continue;
    step_.checks = true;
    turn.draft->checked = turn.draft->most(best - 1);
  }
  if (step_.checks) step_.width = std::max(best, room.width);
  return step_.width;
}

// Where streams have different numbers of rows: those of tokens that are there already, one or as many as are forced.
TokenCount Speculation::rows_before(std::span<const Sequence* const> decoding, TokenCount width) {
  TokenCount rows = 0;
  for (const Sequence* sequence : decoding) rows += std::min(width, sequence->left_in_piece());
  return rows;
}

// What a step of each width would bring and take, as far as there is room.
void Speculation::weigh(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room) {
  const auto sequences = static_cast<TokenCount>(decoding.size());
  TokenCount widest = 1;
  for (const Drafts::Turn& turn : drafts_.turns()) widest = std::max(widest, 1 + turn.draft->most(Drafts::kMost));
  TokenCount deepest = 0;
  for (const Sequence* sequence : decoding) {
    deepest = std::max(deepest, sequence->length());
    if (room.even) widest = std::min(widest, room.cells_per_slot - sequence->length() + 1);
  }
  const auto hope = [&](TokenCount rows) { return times.hope(Batch::Kind::decode, rows); };
  const double alone = to_seconds(times.predict(Batch::Kind::decode, {sequences, deepest}));
  options_.assign(1, {.tokens = static_cast<double>(sequences), .seconds = alone, .hope = hope(sequences)});
  limits_.seconds = std::max(to_seconds(room.time), alone);
  limits_.least = std::max(1 + config_.draft_tokens_min, room.width);
  limits_.before = step_.before;
  for (TokenCount width = 2; width <= widest; ++width) {
    const TokenCount rows =
        room.even ? sequences * width : rows_before(decoding, std::max(width, room.width)) + drafts_.count(width - 1);
    if (rows > room.rows || rows - sequences > room.cells) break;
    double takes = times.decode_seconds({rows, deepest + width - 1});
    if (config_.draft_model) takes += draft_plan_.seconds(width - 1, drafts_.turns().size(), alone);
    options_.push_back({.tokens = drafts_.tokens(sequences, width - 1),
                        .seconds = takes,
                        .hope = hope(rows),
                        .seen = times.seen(Batch::Kind::decode, rows)});
  }
}

// The width that is expected to bring most tokens a second; or, where there is time for trials, the one that may bring
// even more.
TokenCount Speculation::pick() {
  const WidthChoice choice = choose_width(options_, limits_);
  const bool unprepared =
      config_.heads && std::ranges::none_of(drafts_.turns(), [this](const auto& turn) { return ready(turn); });
  const auto [width, trial] = trials_.next(choice, unprepared);
  if (trials_.prepares()) draft_plan_.learn_enough();
  const WidthOption& option = options_[static_cast<std::size_t>(width - 1)];
  step_.trial = trial;
  step_.expected = option.seconds;
  step_.worth = option.tokens / choice.best.rate;
  return width;
}

void Speculation::plan_drafting(Drafting& drafting) {
  if (config_.draft_model && step_.pays) draft_plan_.plan(drafts_.turns(), step_.time, drafting);
}

// Reading for the draft model belongs to the trial that it is done for, and so does what heads learn for nothing.
void Speculation::computed(const BatchResult& result, Duration took) {
  draft_plan_.computed();
  if (!on() || drafts_.turns().empty()) return;
  const Duration for_checks = step_.checks ? result.learning : Duration::zero();
  const double all = to_seconds(took + result.drafting + result.draft_reading + result.learning);
  const double longer = std::max(to_seconds(took + result.drafting + for_checks) - step_.expected, 0.0);
  double& turn = limits_.turn_seconds;
  if (step_.turns()) turn += (turn == 0 ? 1 : kQuickWeight) * (longer - turn);
  const bool counts = step_.trial ? step_.checks || !step_.pays : step_.after_trial;
  const Duration for_nothing = (step_.trial ? result.draft_reading : Duration::zero()) + result.learning - for_checks;
  trials_.spend(all, counts ? std::max(all - step_.worth, 0.0) : to_seconds(for_nothing));
}

void Speculation::commit(const Sequence& sequence, TokenCount checked, TokenCount said) {
  if (!on()) return;
  const TokenCount accepted = std::min(checked, said - 1);
  if (checked > 0) {
    ++stats_.steps;
    stats_.checked += static_cast<std::uint64_t>(checked);
    stats_.accepted += static_cast<std::uint64_t>(accepted);
    for (TokenCount i = 0; i < accepted; ++i) ++stats_.accepted_at[static_cast<std::size_t>(i)];
  }
  if (config_.draft_model) draft_plan_.commit(sequence, checked, accepted);
  drafts_.commit(sequence, checked, said);
}

void Speculation::shifted(RequestId id) {
  drafts_.shifted(id);
  draft_plan_.shifted(id);
}

void Speculation::forget(RequestId id) {
  drafts_.forget(id);
  draft_plan_.forget(id);
}

}  // namespace chasqui
