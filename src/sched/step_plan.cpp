#include "sched/step_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "sched/forced_rows.h"
#include "sched/thresholds.h"

namespace chasqui {
namespace {

// What a stream waits for its next token beside a prompt, where that is longer than its target: kPasses over the
// weights, and one more for each of as many prompts that are being prefilled, or so many decode steps. Less would leave
// prefill too few rows for a pass, or too small a part of the time; and the more prompts there are, the more of them
// wait for it. A stream that is not interactive waits for as many passes for each prompt, as far as that makes rows
// cheaper.
constexpr double kDecodeStepsPerToken = 3;
// Beside nothing but prompts: a step that cannot be cut, or that follows one that was, takes so long, or twice kPasses.
// Arrivals wait for its end. What a cut step has computed is lost: an allowance for more cuts (an eighth of the time
// of prefill) made interactive requests and prompts slower in every load that was simulated.
constexpr Duration kUncutStep = milliseconds(250);
// One in so many prefill steps belongs to the prompt that has waited longest for rows.
constexpr std::uint64_t kTurnEvery = 3;
// One in so many decode steps tries what padding to kKernelRows brings.
constexpr std::uint64_t kPadTrialEvery = 256;
constexpr Duration kUnlimited = Duration::max();
bool by_slot(const Sequence* a, const Sequence* b) { return a->slot() < b->slot(); }

}  // namespace

void StepPlan::plan(const RunningSequences& running, const Urgency& urgency, const StepTime& times,
                    Speculation& speculation, TokenCount cells, TimePoint now, Batch& batch) {
  now += batch.copying;
  survey(running, batch.adapters);
  outputs_max_ = std::max(1, speculation.outputs_max());
  const bool alone =
      running.size() == 1 && cuts_steps_ && targets_.prefill_step == Duration::zero() && !cut_before_;
  fixed_ = alone || (batch.adapters != nullptr && batch.adapters->alone != 0);
  size_ = {};
  passes_ = 1;
  if (decoding_.empty() && prefilling_.empty()) return;
  std::sort(prefilling_.begin(), prefilling_.end(),
            [&](const Sequence* a, const Sequence* b) { return urgency.rows_before(*a, *b); });
  if (urgency.takes_turns()) give_turn();
  choose_decoding(times);
  choose_width(times, speculation, cells);
  const bool prefilled = std::erase(prefilled_last_, id_of(batch.adapters)) > 0;
  if (prefilled_last_.size() >= static_cast<std::size_t>(kv_.slots)) prefilled_last_.clear();  // most are of the past
  if (prefill_has_turn(prefilled, times, now)) {
    batch.kind = Batch::Kind::prefill;
    ++prefills_;
    plan_prefill(times, now, batch);
  } else {
    batch.kind = Batch::Kind::decode;
    turns_ = width_ != std::exchange(width_before_, width_);
    plan_decode(running, speculation, batch);
    speculation.plan_drafting(batch.drafting);
    pad(running, times, batch);
  }
  batch.learn = speculation.learns();
  if (batch.kind == Batch::Kind::prefill) prefilled_last_.push_back(id_of(batch.adapters));
  batch.predicted = times.predict(batch.kind, size_);
  batch.passes = passes_;
  if (batch.kind == Batch::Kind::prefill) batch.stretch = stretch(now, batch.predicted);
}

// Every so many prefill steps the prompt that has gone without rows for longest comes first: however many are more
// urgent, each of those that have a slot is prefilled.
void StepPlan::give_turn() {
  if (prefilling_.size() < 2 || prefills_ % kTurnEvery != 0) return;
  const auto longest =
      std::min_element(prefilling_.begin(), prefilling_.end(), [](const Sequence* a, const Sequence* b) {
        return std::tuple(a->last_rows_at(), a->id()) < std::tuple(b->last_rows_at(), b->id());
      });
  std::rotate(prefilling_.begin(), longest, longest + 1);
}

void StepPlan::survey(const RunningSequences& running, const AdapterSet* adapters) {
  decoding_.clear();
  others_.clear();
  prefilling_.clear();
  for (const auto& sequence : running) {
    const bool ours = same_adapters(sequence->request().adapters.get(), adapters);
    if (sequence->decoding()) (ours ? decoding_ : others_).push_back(sequence.get());
    if (sequence->prefilling() && ours && !sequence->awaits_prefix() && !sequence->awaits_unit()) {
      prefilling_.push_back(sequence.get());
    }
  }
}

// All that decode; where they are more than a batch holds, those who wait longest.
void StepPlan::choose_decoding(const StepTime& times) {
  decode_time_ = {};
  decode_now_ = decoding_;
  const auto most = static_cast<std::size_t>(rows_max_);
  if (decode_now_.size() > most) {
    std::sort(decode_now_.begin(), decode_now_.end(), [](const Sequence* a, const Sequence* b) {
      return std::tuple(a->went_on_at(), a->id()) < std::tuple(b->went_on_at(), b->id());
    });
    decode_now_.resize(most);
    std::sort(decode_now_.begin(), decode_now_.end(), by_slot);
  }
  StepSize size;
  for (const Sequence* sequence : decode_now_) size = size.with(1, sequence->computed());
  if (size.rows > 0) decode_time_ = times.predict(Batch::Kind::decode, size);
  const auto constrained = [](const Sequence* sequence) { return sequence->request().parts != nullptr; };
  sampling_time_ = std::ranges::count_if(decode_now_, constrained) * times.constraint();
}

// A step that checks draft tokens, or computes forced ones, may take as long as the most urgent class waits for a
// token: each step brings one.
void StepPlan::choose_width(const StepTime& times, Speculation& speculation, TokenCount cells) {
  width_ = 1;
  if (decode_now_.empty()) return;
  ServiceClass best = decode_now_.front()->request().service_class;
  TokenCount deepest = 0;
  for (const Sequence* sequence : decode_now_) {
    best = std::min(best, sequence->request().service_class);
    deepest = std::max(deepest, sequence->length());
  }
  // A prompt that fills a hole may have an output, too.
  const TokenCount rows = std::min(rows_max_, speculation.outputs_max() - static_cast<TokenCount>(prefilling_.size()));
  const Duration target = targets_.of[static_cast<std::size_t>(best)].next_token;
  const TokenCount forced =
      forced_width(decode_now_, times, {rows_max_, kv_.cells_per_slot, dense_slots_, fixed_, target});
  width_ = speculation.choose(decode_now_, times, {rows, kv_.cells_per_slot, cells, dense_slots_, target, forced});
  if (width_ == 1) return;
  const auto all = static_cast<TokenCount>(decode_now_.size()) * width_;
  decode_time_ = times.predict(Batch::Kind::decode, {all, deepest + width_ - 1});
}

Duration StepPlan::target_of(const Sequence& sequence) const {
  if (sequence.request().tpot_target > Duration::zero()) return sequence.request().tpot_target;
  return targets_.of[static_cast<std::size_t>(sequence.request().service_class)].next_token;
}

Duration StepPlan::token_time(ServiceClass of, Duration target, const Wait& wait) {
  const auto decode_steps = std::chrono::duration_cast<Duration>(kDecodeStepsPerToken * wait.decode);
  const auto prompts = static_cast<int>(std::min<std::size_t>(wait.prompts, kPasses));
  const Duration least = std::max({target, (kPasses + prompts) * wait.pass, decode_steps});
  if (of == ServiceClass::interactive) return least;
  const Duration passes = (kPasses + kPasses * prompts) * wait.pass;
  return std::max(least, std::min(passes, wait.cheap_chunk + wait.decode));
}

Duration StepPlan::least_chunk(Duration pass) { return kPasses * pass; }

// How long the running streams can wait for their next decode step. kUnlimited: there are none, or none has a target.
Duration StepPlan::prefill_time(const StepTime& times, TimePoint now) const {
  if (!targets_.rules.targets) return kUnlimited;
  Duration time = targets_.prefill_step > Duration::zero() ? targets_.prefill_step : kUnlimited;
  const Duration step = decode_time_ + sampling_time_;
  const Wait wait{decode_time_, times.pass(), times.cheap_chunk(prefilling_.front()->computed()), prefilling_.size()};
  for (const auto* streams : {&decoding_, &others_}) {
    for (const Sequence* sequence : *streams) {
      const Duration target = target_of(*sequence);
      const Duration within =
          targets_.rules.stretch ? token_time(sequence->request().service_class, target, wait) : target;
      time = std::min(time, sequence->went_on_at() + within - now - step);
    }
  }
  return time;
}

// How much later than its target a stream gets its next token, after prefill of so long and a decode step.
Duration StepPlan::stretch(TimePoint now, Duration prefill) const {
  Duration most{};
  for (const Sequence* sequence : decoding_) {
    most =
        std::max(most, now + prefill + decode_time_ + sampling_time_ - sequence->went_on_at() - target_of(*sequence));
  }
  return most;
}

Duration StepPlan::least_chunk(const StepTime& times) const {
  return targets_.rules.efficient_chunks ? least_chunk(times.pass()) : Duration::zero();
}

bool StepPlan::prefill_has_turn(bool prefilled, const StepTime& times, TimePoint now) const {
  if (prefilling_.empty()) return false;
  if (decoding_.empty() || !prefilled) return true;
  return targets_.rules.targets && prefill_time(times, now) >= least_chunk(times);
}

void StepPlan::plan_decode(const RunningSequences& running, const Speculation& speculation, Batch& batch) {
  auto next = decode_now_.begin();
  SlotId previous;
  for (const auto& sequence : running) {
    if (next == decode_now_.end()) break;
    const bool decodes = *next == sequence.get();
    if (!decodes && !fills_hole(*sequence, decode_now_.end() - next, batch)) continue;
    if (dense_slots_ && !batch.rows.empty() && sequence->slot().value != previous.value + 1) ++passes_;
    previous = sequence->slot();
    if (decodes) {
      const TokenCount rows = std::min(width_, sequence->left_in_piece());
      const std::span<const Token> draft_tokens =
          width_ > rows ? speculation.draft_tokens(*sequence) : std::span<const Token>();
      const TokenCount padding = dense_slots_ ? width_ - rows - static_cast<TokenCount>(draft_tokens.size()) : 0;
      add_part(*sequence, rows, draft_tokens, padding, batch);
      ++next;
    } else {
      const TokenCount rows = std::min(width_, sequence->left_in_piece());
      add_part(*sequence, rows, {}, width_ - rows, batch);
    }
  }
}

// A prompt between decoding streams, `to_come` of them behind it.
bool StepPlan::fills_hole(const Sequence& sequence, std::ptrdiff_t to_come, const Batch& batch) const {
  const auto rows = static_cast<TokenCount>(batch.rows.size()) + width_ * (static_cast<TokenCount>(to_come) + 1);
  return dense_slots_ && targets_.rules.hole_rows && sequence.prefilling() && !sequence.rows_alone() &&
         !sequence.awaits_prefix() && same_adapters(sequence.request().adapters.get(), batch.adapters) &&
         sequence.computed() + width_ <= kv_.cells_per_slot && rows <= rows_max_;
}

void StepPlan::pad(const RunningSequences& running, const StepTime& times, Batch& batch) {
  const auto rows = static_cast<TokenCount>(batch.rows.size());
  if (fixed_) return;
  const TokenCount padded = (rows + kKernelRows - 1) / kKernelRows * kKernelRows;
  const std::int32_t first = batch.rows.back().slot.value + 1;
  const std::int32_t end = first + padded - rows;
  if (!targets_.rules.pad_decode) return;
  if (!dense_slots_ || passes_ > 1 || width_ > 1 || padded == rows || padded > rows_max_ || end > kv_.slots) return;
  const auto taken = [&](const auto& sequence) {
    return sequence->slot().value >= first && sequence->slot().value < end;
  };
  const auto spared = [&](SlotId slot) { return slot.value >= first && slot.value < end; };
  if (std::any_of(running.begin(), running.end(), taken)) return;
  if (std::any_of(spared_.begin(), spared_.end(), spared)) return;
  // The other way now and then, because what is not done is not measured.
  const bool other_way = ++pads_considered_ % kPadTrialEvery == 0;
  if (times.padding_pays(size_, padded) == other_way) return;
  // With an output of its own, so that the last layer has that many rows, too.
  for (std::int32_t slot = first; slot < end; ++slot)
    batch.rows.push_back({batch.rows[0].token, 0, SlotId{slot}, true});
  batch.padding = end - first;
  size_.rows = padded;
}

TokenCount StepPlan::chunk_of(const Sequence& sequence, const StepTime& times, Duration time) const {
  const MediaUnit* const unit = sequence.next_unit();
  if (unit != nullptr && !unit->causal) return sequence.left_in_piece();
  TokenCount fixed = std::min({sequence.left_in_piece(), rows_max_, kMicroBatch});
  if (sequence.tells_prompt()) fixed = std::min(fixed, outputs_max_);
  if (fixed_) return fixed;
  // A step of an unknown model must not take minutes.
  const bool first = times.largest_seen(Batch::Kind::prefill) < kUsualRows;
  const TokenCount most = first ? std::min(fixed, kUsualRows) : fixed;
  if (time == kUnlimited || !times.known(Batch::Kind::prefill)) return most;
  time = std::max(time, least_chunk(times));
  const TokenCount rows = std::max(1, times.rows_within(time, decode_time_, {}, sequence.computed(), most));
  // A few rows that were left over would cost a step that is hardly shorter.
  return most - rows <= rows / kLittle ? most : rows;
}

void StepPlan::plan_prefill(const StepTime& times, TimePoint now, Batch& batch) {
  const Sequence& first = *prefilling_.front();
  Duration time = fixed_ ? kUnlimited : prefill_time(times, now);
  bool may_be_cut = false;
  if (time == kUnlimited) {
    may_be_cut = cuts_steps_ && !cut_before_ && (cuts_joined_ || prefilling_.size() == 1);
    if (!may_be_cut && !fixed_) time = std::max(kUncutStep, 2 * kPasses * times.pass());
  }
  chunks_.assign(1, {&first, chunk_of(first, times, time)});
  if (first.rows_alone()) {
    add_part(first, chunks_.front().second, {}, 0, batch);
  } else if (dense_slots_) {
    const PrefillGroup company = join_neighbours(times, time);
    for (const auto& [sequence, unused] : chunks_) {
      const TokenCount rows = std::min(sequence->left_in_piece(), company.rows);
      add_part(*sequence, rows, {}, company.rows - rows, batch);
    }
  } else {
    join_in_any_order(times, time);
    for (const auto& [sequence, rows] : chunks_) add_part(*sequence, rows, {}, 0, batch);
  }
  if (may_be_cut) batch.cut_by = cut_by(times.predict(Batch::Kind::prefill, size_));
}

// Arrivals of which class, or of a more urgent one, had better not wait for a step of so long; zero: nothing is known
// of the model, and it may take minutes.
int StepPlan::cut_by(Duration step) const {
  int most_urgent = static_cast<int>(kServiceClasses) - 1;
  for (const auto& [sequence, unused] : chunks_) {
    most_urgent = std::min(most_urgent, static_cast<int>(sequence->request().service_class));
  }
  for (int c = most_urgent; c >= 0; --c) {
    if (step == Duration::zero()) return c;
    // An arrival of this class would wait too long for the end.
    if (step > targets_.of[static_cast<std::size_t>(c)].first_token / kQuarter) return c;
  }
  return Batch::kUncut;
}

// Other prompts in the step make the rows of a short one cheaper, up to a point; beyond it all of them would wait.
void StepPlan::join_in_any_order(const StepTime& times, Duration time) {
  StepSize size = StepSize{}.with(chunks_.front().second, chunks_.front().first->computed());
  const std::size_t prompts = targets_.rules.join_prompts ? prefilling_.size() : 1;
  for (std::size_t i = 1; i < prompts && !times.saturated(size.rows) && size.rows < rows_max_; ++i) {
    const Sequence& other = *prefilling_[i];
    if (other.rows_alone()) continue;
    const TokenCount rows = std::min(other.left_in_piece(), rows_max_ - size.rows);
    const StepSize with = size.with(rows, other.computed());
    if (times.known(Batch::Kind::prefill) && time != kUnlimited && times.predict(Batch::Kind::prefill, with) > time)
      break;
    chunks_.emplace_back(&other, rows);
    size = with;
  }
  std::sort(chunks_.begin(), chunks_.end(), [](const Chunk& a, const Chunk& b) { return by_slot(a.first, b.first); });
}

// From the most urgent prompt to both sides, the more urgent neighbour first.
StepPlan::PrefillGroup StepPlan::join_neighbours(const StepTime& times, Duration time) {
  const Sequence& first = *chunks_.front().first;
  const TokenCount rows = chunks_.front().second;
  PrefillGroup company{rows, rows, first.computed()};
  by_slot_.resize(prefilling_.size());
  std::iota(by_slot_.begin(), by_slot_.end(), std::size_t{0});
  std::sort(by_slot_.begin(), by_slot_.end(),
            [this](std::size_t a, std::size_t b) { return by_slot(prefilling_[a], prefilling_[b]); });
  const auto slot_at = [this](std::size_t place) { return prefilling_[by_slot_[place]]->slot().value; };
  const auto at = std::find(by_slot_.begin(), by_slot_.end(), std::size_t{0});
  std::size_t begin = static_cast<std::size_t>(at - by_slot_.begin());
  std::size_t end = begin + 1;
  while (targets_.rules.join_prompts && !times.saturated(company.all(end - begin))) {
    const bool left = begin > 0 && slot_at(begin - 1) + 1 == slot_at(begin);
    const bool right = end < by_slot_.size() && slot_at(end) == slot_at(end - 1) + 1;
    if (!left && !right) break;
    const bool goes_left = left && (!right || by_slot_[begin - 1] < by_slot_[end]);
    const Sequence& other = *prefilling_[by_slot_[goes_left ? begin - 1 : end]];
    if (!joins(other, times, time, company)) break;
    chunks_.insert(goes_left ? chunks_.begin() : chunks_.end(), Chunk{&other, 0});
    goes_left ? --begin : ++end;
  }
  return company;
}

bool StepPlan::joins(const Sequence& other, const StepTime& times, Duration time, PrefillGroup& company) const {
  if (other.rows_alone()) return false;
  PrefillGroup with = company;
  // One that is a little longer makes all of them longer, rather than leave a few rows for a pass of their own.
  const TokenCount left = other.left_in_piece();
  const bool whole = left <= company.rows + company.rows / kLittle;
  with.rows = std::max(company.rows, whole ? left : company.rows);
  with.shortest = std::min(company.shortest, left);
  with.position = std::max(company.position, other.computed());
  const std::size_t parts = chunks_.size() + 1;
  // What is filled up costs less than a pass of its own.
  if (with.rows - with.shortest > with.rows / kQuarter) return false;
  if (with.position + with.rows > kv_.cells_per_slot || with.all(parts) > rows_max_) return false;
  const StepSize size{with.all(parts), with.position + with.rows};
  if (times.known(Batch::Kind::prefill) && time != kUnlimited && times.predict(Batch::Kind::prefill, size) > time)
    return false;
  company = with;
  return true;
}

void StepPlan::add_part(const Sequence& sequence, TokenCount rows, std::span<const Token> draft_tokens,
                        TokenCount padding, Batch& batch) {
  const bool samples = rows == sequence.left() && !sequence.at_limit();
  const bool tells = sequence.tells_prompt();
  const auto first = static_cast<std::int32_t>(batch.rows.size());
  TokenCount position = sequence.computed();
  Token token = 0;
  for (TokenCount i = 1; i <= rows; ++i, ++position) {
    token = sequence.token(position);
    batch.rows.push_back({token, position, sequence.slot(), tells || (samples && i == rows)});
  }
  for (const Token draft_token : draft_tokens) batch.rows.push_back({draft_token, position++, sequence.slot(), true});
  for (TokenCount i = 0; i < padding; ++i) batch.rows.push_back({token, position++, sequence.slot(), false});
  const auto drafted = static_cast<std::int32_t>(draft_tokens.size());
  batch.unit = sequence.next_unit();
  batch.parts.push_back({&sequence.request(), sequence.slot(), first, rows, samples, drafted, padding, tells});
  size_ = size_.with(rows + drafted + padding, sequence.computed());
}

}  // namespace chasqui
