#include "sched/draft_plan.h"

#include <algorithm>

#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Of a sequence it computes so many tokens before its draft tokens in any case, because after a step of which all draft
// tokens were accepted there are two that it has not seen: equally many of each sequence are computed in one pass.
constexpr TokenCount kNewest = 2;
// Rows that a draft model reads in one step at least, and what heads that begin anew within an answer must know of it
// before they draft well.
constexpr TokenCount kReadingLeast = 16;

}  // namespace

DraftPlan::DraftPlan(const SpeculationConfig& config) : config_(config), learning_steps_(config.heads ? kTelling : 0) {}

void DraftPlan::meet(const Sequence& sequence) {
  const auto [known, fresh] = known_.try_emplace(sequence.id());
  if (fresh && learns()) known->second.read = sequence.length();
}

bool DraftPlan::ready(const Sequence& sequence) const {
  const Known& known = known_.at(sequence.id());
  const TokenCount length = sequence.length();
  return known.read >= length - kNewest && (known.from == 0 || length - known.from >= kReadingLeast);
}

double DraftPlan::seconds(TokenCount wanted, std::size_t sequences, double step) const {
  const double each = cost_.token_seconds(sequences);
  return made(wanted) * (each > 0 ? each : step / kLittle);
}

// To have so many draft tokens of a sequence.
TokenCount DraftPlan::made(TokenCount wanted) const { return config_.heads ? config_.draft_tokens_max : wanted; }

void DraftPlan::plan(std::span<const Drafts::Turn> turns, Duration time, Drafting& drafting) {
  work_.clear();
  passes_ = 0;
  for (const auto& [sequence, draft] : turns) {
    if (draft->checked == 0) continue;
    const TokenCount length = sequence->length();
    for (TokenCount position = length - kNewest; position < length; ++position) {
      drafting.rows.push_back({sequence->token(position), position, sequence->slot(), position + 1 == length});
    }
    work_.push_back({sequence->id(), length, true});
    passes_ = std::max(passes_, made(draft->checked));
  }
  if (!config_.heads) read_more(turns, time, drafting);
}

// For those sequences that it can draft for in one of the next steps.
void DraftPlan::read_more(std::span<const Drafts::Turn> turns, Duration time, Drafting& drafting) {
  const double row = cost_.row_seconds();
  TokenCount left = kUsualRows;
  if (row > 0) {
    const double rows = to_seconds(time) / 2 / row;
    left = static_cast<TokenCount>(std::clamp(rows, double{kReadingLeast}, double{kMicroBatch}));
  }
  for (const Drafts::Turn& turn : turns) {
    const Sequence& sequence = *turn.sequence;
    if (ready(sequence) || left == 0) continue;
    const TokenCount begin = known_.at(sequence.id()).read;
    // This step brings a token, so this is all but the newest two when it is done.
    const TokenCount end = std::min(sequence.length() - kNewest + 1, begin + left);
    for (TokenCount position = begin; position < end; ++position) {
      drafting.reading.push_back({sequence.token(position), position, sequence.slot(), false});
    }
    left -= end - begin;
    work_.push_back({sequence.id(), end, false});
  }
}

std::size_t DraftPlan::drafted(const BatchResult& result) {
  std::size_t reading = 0;
  std::size_t drafts = 0;
  for (const Work& work : work_) {
    const auto found = known_.find(work.id);
    if (work.drafts) ++drafts;
    if (found == known_.end()) continue;
    if (!work.drafts) reading += static_cast<std::size_t>(work.end - found->second.read);
    found->second.read = result.drafted ? work.end : 0;  // else unknown; it begins again
  }
  work_.clear();
  if (!result.drafted) return 0;
  if (passes_ > 0) cost_.drafted(drafts, passes_, result.drafting + result.learning);
  if (reading > 0) cost_.read(reading, result.draft_reading);
  return reading;
}

void DraftPlan::commit(const Sequence& sequence, TokenCount checked, TokenCount accepted) {
  const auto found = known_.find(sequence.id());
  if (found == known_.end()) return;
  Known& known = found->second;
  if (config_.heads) {
    if (learned_ && known.read == 0) known.from = sequence.length();
    known.read = learned_ ? sequence.length() : 0;
  } else if (checked > 0 && known.read > 0) {
    known.read += std::min(accepted, checked - 1);  // the last draft token it only made
  }
}

void DraftPlan::preempted(RequestId id) {
  const auto found = known_.find(id);
  if (found != known_.end()) found->second.read = 0;
}

// Draft tokens that have paid pay again soon, mostly.
void DraftPlan::learn_on() {
  if (config_.heads) learning_steps_ = kTelling;
}

void DraftPlan::learn_enough() { learning_steps_ = kReadingLeast; }

void DraftPlan::computed() {
  learned_ = learns();
  if (learned_) --learning_steps_;
}

}  // namespace chasqui
