// Random lives of thousands of requests on virtual time: bursts, cancels, deadlines, failing and aborted steps, all
// classes, tenants, targets, both KV layouts, slots that change and are lost. Every promise of the scheduler is checked
// at every step, the same seed always gives the same run, and a failure prints its seed. To run one seed:
// CHASQUI_SIM_SEED=17 test_sched --gtest_filter='*Environ*'
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "core/fake_requests.h"
#include "sched/fake_life.h"
#include "sched/fake_model.h"
#include "sched/scheduler.h"

namespace chasqui {
namespace {

constexpr TokenCount kContext = 96;
constexpr std::size_t kWaitingMax = 48;
// As scheduler.cpp has them.
constexpr std::size_t kMovesPerStep = 4;
constexpr TokenCount kAboutToDecode = 64;
// The longest that one row may make a step, see Simulation::compute_time().
constexpr Duration kRowMax = milliseconds(4);

struct Outcome {
  std::uint64_t hash;  // of all events in their order
  std::size_t ends[5];
  std::uint64_t preemptions, moves, filled_holes, told_to_wait, prompts_between, draft_tokens, accepted_tokens, forced;
  bool filled_a_step;  // the sequences of all slots decoded in one
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool unified)
      : dice_(seed), config_(draw_config(dice_, kContext, unified)), scheduler_(config_), model_(config_) {}

  void run(std::size_t requests) {
    while (lives_.size() < requests && healthy()) {
      arrive(requests);
      disturb();
      step();
    }
    std::int64_t bound = 0;  // a row a step, at worst, and what is preempted is read again
    for (const Life& life : lives_) {
      const int steps = (1 + life.script.waits) * life.request->max_tokens;
      if (!life.ended) bound += static_cast<std::int64_t>(life.request->prompt.size()) + steps;
    }
    const std::uint64_t preempted_before = scheduler_.preemptions();
    const std::size_t living_before = living_;
    while (living_ > 0 && healthy()) {
      if (step() != DecodeStatus::aborted) --bound;
      const auto again = static_cast<std::int64_t>(scheduler_.preemptions() - preempted_before);
      EXPECT_GE(bound + kContext * again, 0) << "progress: the rest takes longer than its work";
      EXPECT_LE(again, static_cast<std::int64_t>(8 * living_before)) << "progress: a slot is taken and given in vain";
    }
    if (healthy()) expect_nothing_left();
  }

  Outcome outcome() const {
    Outcome all{hash_,
                {},
                scheduler_.preemptions(),
                scheduler_.moves(),
                filled_holes_,
                told_to_wait_,
                prompts_between_,
                model_.draft_tokens(),
                model_.accepted_tokens(),
                model_.forced_tokens(),
                largest_decode_ == static_cast<std::size_t>(config_.kv.slots)};
    std::copy(std::begin(ends_), std::end(ends_), all.ends);
    return all;
  }

 private:
  static bool healthy() { return !testing::Test::HasFailure(); }
  const ClassTarget& target(const Life& life) const {
    return config_.targets.of[static_cast<std::size_t>(life.request->service_class)];
  }

  Life* life(RequestId id) {
    const bool known = id.value >= 1 && id.value <= lives_.size();
    return known ? &lives_[static_cast<std::size_t>(id.value - 1)] : nullptr;
  }

  void arrive(std::size_t requests) {
    if (dice_.permille(20)) burst_ = !burst_;
    for (int n = dice_.permille(burst_ ? 600 : 40) ? dice_.between(1, 4) : 0; n > 0; --n) {
      if (lives_.size() < requests && scheduler_.waiting() < kWaitingMax) add();
    }
  }

  void add() {
    const std::uint64_t id = lives_.size() + 1;
    Life& life = lives_.emplace_back();
    life.request = draw_life(dice_, id, kContext, clock_.now());
    life.script = {.forces = id % 3 == 0, .waits = id % 7 == 0 ? 2 : 0};
    if (dice_.permille(500)) life.script.end_after = dice_.between(1, 30);
    if (dice_.permille(200)) life.script.stop_after = dice_.between(1, 30);
    life.script.repeats = dice_.permille(700);
    life.answer = fake_answer(*life.request, life.request->max_tokens, life.script);
    if (id % 5 == 0) begin_elsewhere(life, kContext);
    model_.meet(life.request, life.script);
    scheduler_.add(life.request);
    ++living_;
  }

  // Cancels of anybody, the finished and those not yet born included.
  void disturb() {
    if (dice_.permille(1)) {
      for (Life& each : lives_) each.cancelled |= !each.ended;
      scheduler_.cancel_all(clock_.now());
      take_events();
      EXPECT_TRUE(scheduler_.idle() && living_ == 0) << "cancel_all left something";
    }
    if (!dice_.permille(60)) return;
    const bool recent = dice_.permille(800);
    const auto all = static_cast<std::int32_t>(lives_.size());
    const std::int32_t victim = recent ? std::max(1, all - dice_.below(20)) : dice_.between(0, all + 2);
    const RequestId id{static_cast<std::uint64_t>(victim)};
    Life* leaving = life(id);
    if (leaving != nullptr) leaving->cancelled |= !leaving->ended;
    scheduler_.cancel(id, clock_.now());
    take_events();
    EXPECT_TRUE(leaving == nullptr || leaving->ended) << "a cancel did not end request " << id.value;
  }

  DecodeStatus step() {
    ++steps_;
    SCOPED_TRACE("step " + std::to_string(steps_));
    const bool prefilled_last = batch_.kind == Batch::Kind::prefill && steps_ > 1;
    scheduler_.next_batch(clock_.now(), batch_);
    planned_at_ = clock_.now();
    take_events();
    check_plan();
    if (batch_.empty()) {
      clock_.advance(milliseconds(1));
      return DecodeStatus::ok;
    }
    const DecodeStatus status = dice_.permille(5)    ? DecodeStatus::failed
                                : dice_.permille(3)  ? DecodeStatus::no_room
                                : dice_.permille(10) ? DecodeStatus::aborted
                                                     : DecodeStatus::ok;
    decoding_before_ = decoding_with_slots();
    model_.run(batch_, status, result_);
    if (status == DecodeStatus::ok) check_order(prefilled_last);
    result_.compute = microseconds(dice_.between(100, 3000)) * static_cast<int>(1 + batch_.rows.size() / 4);
    clock_.advance(result_.compute);
    result_.finished = clock_.now();
    std::vector<RequestId> ids;
    for (const BatchPart& part : batch_.parts) {
      if (status == DecodeStatus::ok) life(part.request->id)->last_token = clock_.now();  // it goes on
      ids.push_back(part.request->id);
      life(part.request->id)->failed = status == DecodeStatus::failed || status == DecodeStatus::no_room;
    }
    scheduler_.commit(batch_, result_);
    take_events();
    if (status == DecodeStatus::failed || status == DecodeStatus::no_room) {
      for (const RequestId id : ids) EXPECT_TRUE(life(id)->ended) << "survived its failed batch: " << id.value;
    }
    check_state();
    EXPECT_EQ(scheduler_.ledger().cells_used(), model_.held_by_living()) << "conservation";
    EXPECT_GE(scheduler_.preemptions(), model_.preempted()) << "a slot was trimmed whose request lives on";
    return status;
  }

  // Those whose slot the batch trims have lost it.
  std::set<RequestId> decoding_with_slots() const {
    std::set<RequestId> ids = model_.decoding();
    for (const SlotId slot : batch_.trims) ids.erase(model_.owner(slot));
    return ids;
  }

  // What next_batch() owes requests that wait: a slot, an end in time, a place among the adjacent.
  void check_plan() {
    check_state();
    const KvLedger& ledger = scheduler_.ledger();
    const std::int32_t running = ledger.slots_used();
    const TokenCount cells_ahead = 4 * (config_.kv.slots + 1);
    const bool room = running < config_.kv.slots &&
                      (!config_.kv.unified || running == 0 || ledger.cells_free() >= kContext + cells_ahead);
    EXPECT_FALSE(room && scheduler_.waiting() > 0) << "a request waits beside a free slot";
    while (oldest_ < lives_.size() && lives_[oldest_].ended) ++oldest_;
    for (std::size_t i = oldest_; i < lives_.size(); ++i) {
      const bool late = !lives_[i].ended && lives_[i].request->deadline <= clock_.now();
      EXPECT_FALSE(late) << "lives beyond its deadline: " << i + 1;
    }
    EXPECT_EQ(batch_.empty(), scheduler_.running() == 0) << "progress";
    EXPECT_LE(batch_.moves.size(), kMovesPerStep);
    check_holes(running == config_.kv.slots);
  }

  // Adjacent slots, but for the moves that were one too many: no free slot lies between those of a decode step, and no
  // prompt that could go elsewhere, unless it is about to decode. To make such a one go takes two moves.
  void check_holes(bool full) {
    if (batch_.kind != Batch::Kind::decode || batch_.empty()) return;
    if (!config_.dense_slots) return;
    for (SlotId slot{0}; batch_.moves.size() < kMovesPerStep && slot < batch_.parts.back().slot; ++slot.value) {
      EXPECT_GT(scheduler_.ledger().reserved(slot), 0) << "a hole was left open";
    }
    for (const BatchPart& part : batch_.parts) {
      const auto length = static_cast<TokenCount>(part.request->prompt.size()) + life(part.request->id)->tokens;
      const TokenCount left = length - batch_.rows[static_cast<std::size_t>(part.first_row)].position;
      prompts_between_ += left > kAboutToDecode ? 1 : 0;
      const bool many =
          full || part.request->shift_at > 0 || batch_.moves.size() + 2 > kMovesPerStep || !free_beyond_streams();
      EXPECT_TRUE(many || left <= kAboutToDecode)
          << "a prompt makes no room for request " << batch_.parts.back().request->id.value;
    }
  }

  // Behind the streams, and not only since one of the moves.
  bool free_beyond_streams() const {
    for (SlotId slot = batch_.parts.back().slot; ++slot.value < config_.kv.slots;) {
      const auto left = [slot](const SlotMove& move) { return move.from == slot; };
      if (scheduler_.ledger().reserved(slot) == 0 && std::ranges::none_of(batch_.moves, left)) return true;
    }
    return false;
  }

  // What a step owes those who decode: the most urgent class is in each decode step, no stream is left out for long
  // after its target, and no second chunk goes before a stream that is late. Called when the model has run the batch.
  void check_order(bool prefilled_last) {
    if (batch_.kind == Batch::Kind::prefill) {
      for (const RequestId id : decoding_before_) {
        const Life& each = *life(id);
        const Duration most = std::max(target(each).next_token, 4 * config_.kv.slots * kRowMax);
        const bool late = planned_at_ - each.last_token > most;
        EXPECT_FALSE(prefilled_last && late) << "one more chunk goes before the late stream " << id.value;
      }
      return;
    }
    ServiceClass best = ServiceClass::background;
    for (const RequestId id : decoding_before_) best = std::min(best, life(id)->request->service_class);
    std::size_t decoding = 0;
    for (const BatchPart& part : batch_.parts) decoding += decoding_before_.erase(part.request->id);
    filled_holes_ += batch_.parts.size() - decoding;
    largest_decode_ = std::max(largest_decode_, decoding);
    for (const RequestId id : decoding_before_) {
      Life& each = *life(id);
      EXPECT_NE(each.request->service_class, best) << "the most urgent class was left out";
      if (planned_at_ - each.last_token >= target(each).next_token) ++each.left_out;
      EXPECT_LE(each.left_out, config_.kv.slots) << "progress: left out for too long: " << id.value;
    }
    for (const BatchPart& part : batch_.parts) life(part.request->id)->left_out = 0;
  }

  void check_state() {
    EXPECT_TRUE(scheduler_.consistent()) << "conservation";
    EXPECT_EQ(scheduler_.running() + scheduler_.waiting(), living_) << "one-terminal: a request got lost";
    EXPECT_LE(scheduler_.running(), static_cast<std::size_t>(config_.kv.slots)) << "bounded";
    EXPECT_LE(scheduler_.ledger().cells_reserved(), config_.kv.cells) << "bounded";
    for (const std::string& fault : model_.faults()) ADD_FAILURE() << fault;
  }

  void take_events() {
    events_.clear();
    scheduler_.take_events(events_);
    for (const Event& event : events_) note(event);
  }

  void note(const Event& event) {
    for (const char c : line_of(event, clock_.now())) hash_ = fake_hash(hash_, c);
    Life* found = life(event.request);
    ASSERT_NE(found, nullptr);
    EXPECT_FALSE(found->ended) << "one-terminal: an event after the end of request " << event.request.value;
    EXPECT_EQ(found->answer.compare(found->said, event.text.size(), event.text), 0) << "not the text it says alone";
    found->said += event.text.size();
    found->tokens += event.tokens;
    if (event.tokens > 0) found->last_token = clock_.now();
    if (event.kind == Event::Kind::queued) {
      ++told_to_wait_;
      EXPECT_TRUE(event.text.empty() && event.tokens == 0);
      EXPECT_LT(static_cast<std::size_t>(event.position), scheduler_.waiting());
    }
    if (event.kind == Event::Kind::finished) note_end(*found, event);
  }

  void note_end(Life& life, const Event& event) {
    const FakeScript& script = life.script;
    const bool said_all = (script.end_after > 0 && life.tokens == script.end_after) ||
                          (script.stop_after > 0 && life.tokens == script.stop_after);
    switch (event.reason) {
      case FinishReason::stop: EXPECT_TRUE(said_all); break;
      case FinishReason::length: EXPECT_TRUE(!said_all && life.tokens == life.request->max_tokens); break;
      case FinishReason::cancelled: EXPECT_TRUE(life.cancelled); break;
      case FinishReason::deadline: EXPECT_LE(life.request->deadline, clock_.now()); break;
      case FinishReason::error: EXPECT_TRUE(life.failed && event.error.code == ErrorCode::model_failure); break;
    }
    EXPECT_EQ(event.stop_string.empty(), event.reason != FinishReason::stop || life.tokens == script.end_after);
    EXPECT_EQ(event.usage.prompt, static_cast<TokenCount>(life.request->prompt.size()));
    EXPECT_EQ(event.usage.completion, life.tokens);
    EXPECT_TRUE(life.request->draft_tokens_max != 0 || event.usage.draft_tokens == 0) << "unwanted";
    EXPECT_EQ(event.usage.queue + event.usage.prefill + event.usage.decode, clock_.now() - life.request->arrival);
    life.ended = true;
    --living_;
    model_.ended(event.request);
    ++ends_[static_cast<std::size_t>(event.reason)];
  }

  void expect_nothing_left() {
    EXPECT_TRUE(scheduler_.idle());
    EXPECT_EQ(scheduler_.ledger().slots_used(), 0);
    EXPECT_EQ(scheduler_.ledger().cells_used(), 0);
    EXPECT_EQ(scheduler_.ledger().cells_reserved(), 0);
    step();
    EXPECT_TRUE(batch_.empty());
    for (const Life& life : lives_) EXPECT_TRUE(life.ended);
  }

  Dice dice_;
  const SchedulerConfig config_;
  ManualClock clock_;
  Scheduler scheduler_;
  FakeModel model_;
  Batch batch_;
  BatchResult result_;
  std::vector<Event> events_;

  std::vector<Life> lives_;  // request n is lives_[n-1]
  std::size_t living_ = 0;
  std::size_t oldest_ = 0;  // all before it have ended
  std::size_t ends_[5] = {};
  std::set<RequestId> decoding_before_;  // the step that is being computed
  TimePoint planned_at_{};
  std::uint64_t filled_holes_ = 0, told_to_wait_ = 0, prompts_between_ = 0, steps_ = 0;
  std::size_t largest_decode_ = 0;
  std::uint64_t hash_ = 0;
  bool burst_ = true;
};

Outcome simulate(std::uint64_t seed, bool unified, std::size_t requests = 2000) {
  SCOPED_TRACE("CHASQUI_SIM_SEED=" + std::to_string(seed) + (unified ? ", one pool" : ", streams"));
  Simulation simulation(seed, unified);
  simulation.run(requests);
  return simulation.outcome();
}

class SchedulerSimulation : public testing::TestWithParam<std::tuple<std::uint64_t, bool>> {};

TEST_P(SchedulerSimulation, KeepsEveryPromiseAtEveryStep) {
  const Outcome outcome = simulate(std::get<0>(GetParam()), std::get<1>(GetParam()));
  // A run in which some end never came has not tested much.
  for (std::size_t i = 0; i < 5; ++i) EXPECT_GT(outcome.ends[i], 0u) << name(static_cast<FinishReason>(i));
  EXPECT_TRUE(outcome.filled_a_step) << "thousands of requests, and no step for all slots";
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerSimulation,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 6, 8, 9, 110), testing::Bool()));

TEST(SchedulerSimulation, MeetsWhatItIsMeantToMeet) {
  Outcome streams{}, pool{};
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const bool unified : {false, true}) {
      const Outcome outcome = simulate(seed, unified);
      Outcome& sum = unified ? pool : streams;
      sum.preemptions += outcome.preemptions;
      sum.moves += outcome.moves;
      sum.filled_holes += outcome.filled_holes;
      sum.told_to_wait += outcome.told_to_wait;
      sum.prompts_between += outcome.prompts_between;
      sum.draft_tokens += outcome.draft_tokens - outcome.accepted_tokens;
      sum.accepted_tokens += outcome.accepted_tokens;
      sum.forced += outcome.forced;
    }
  }
  EXPECT_GT(streams.preemptions, 50u);
  EXPECT_GT(streams.moves, 5u);
  EXPECT_GT(streams.filled_holes, 50u);
  EXPECT_GT(streams.prompts_between, 5u) << "long ones that had nowhere to go";
  EXPECT_GT(streams.told_to_wait, 50u);
  EXPECT_GT(std::min(streams.accepted_tokens, pool.accepted_tokens), 50u);
  EXPECT_GT(std::min(streams.draft_tokens, pool.draft_tokens), 50u) << "that were wrong";
  EXPECT_GT(std::min(streams.forced, pool.forced), 50u);
  EXPECT_GT(pool.preemptions, 50u);
  EXPECT_EQ(pool.moves + pool.filled_holes, 0u) << "in one pool slots need not be adjacent";
}

TEST(SchedulerSimulation, TheSameSeedIsTheSameRun) {
  EXPECT_EQ(simulate(42, false).hash, simulate(42, false).hash);
  EXPECT_EQ(simulate(42, true).hash, simulate(42, true).hash);
  EXPECT_NE(simulate(42, false).hash, simulate(43, false).hash);
}

TEST(SchedulerSimulation, TheSeedOfTheEnvironment) {
  const char* seed = std::getenv("CHASQUI_SIM_SEED");
  if (seed == nullptr) GTEST_SKIP() << "set CHASQUI_SIM_SEED to run one more seed, ten times as long";
  for (const bool pool : {false, true}) simulate(std::strtoull(seed, nullptr, 10), pool, 20'000);
}

}  // namespace
}  // namespace chasqui
