// The worker loop without a thread, for tests of the scheduler: one call is one step, on virtual time, and every
// event is kept by request. Any broken promise fails the test at once, a wrong text among them. One thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "core/fake_requests.h"
#include "sched/fake_model.h"
#include "sched/scheduler.h"

namespace chasqui {

// Four slots, or as many as it takes.
inline SchedulerConfig streams(std::int32_t slots = 4, TokenCount rows_max = 32, TokenCount context = 100) {
  SchedulerConfig config;
  config.kv = {slots, slots * context, context, false};
  config.rows_max = rows_max;
  return config;
}

inline SchedulerConfig dense_streams(std::int32_t slots = 4, TokenCount rows_max = 32, TokenCount context = 100) {
  SchedulerConfig config = streams(slots, rows_max, context);
  config.dense_slots = true;
  return config;
}

inline SchedulerConfig one_pool(std::int32_t slots = 4, TokenCount cells = 100) {
  SchedulerConfig config;
  config.kv = {slots, cells, cells, true};
  config.rows_max = 32;
  return config;
}

inline SchedulerConfig with_cache(SchedulerConfig config, std::size_t bytes = 1 << 20) {
  config.reuse.cache.bytes = bytes;
  return config;
}

class FakeWorker {
 public:
  // What a test wants of a request.
  struct Ask {
    TokenCount prompt = 10;
    std::int64_t max_tokens = 3;
    ServiceClass service_class = ServiceClass::standard;
    std::uint32_t tenant = 0;
    std::optional<std::int64_t> timeout_ms{};
    std::optional<std::int64_t> ttft_ms{};
    FakeScript script{};
    TokenCount shared = 0;     // tokens at the beginning of the prompt that all of the same family have
    std::uint64_t family = 0;  // … and tokens that differ between families
    bool use_cache = true;
    bool deterministic = false;
    bool returns = false;
    AdapterSetPtr adapters{};
    bool tell_progress = false;
    bool tell_prompt = false;
    bool constrained = false;              // by a grammar, which takes constraint_cost for each token
    std::vector<TokenCount> boundaries{};  // with checkpoint_every
    std::optional<std::int64_t> keep{};    // with shifts
    std::optional<std::int64_t> discard{};
    std::optional<std::int64_t> chunk{};
    std::uint32_t group = 0;
    Duration tpot{};
  };

  // What came out for one request.
  struct Outcome {
    RequestPtr request;
    FakeScript script;
    std::string text;
    TokenCount tokens = 0;
    Duration gap_max{};            // the longest time from token to token
    std::vector<Event> queued;     // what it was told while it waited
    std::vector<TokenCount> read;  // … and while its prompt was prefilled
    std::vector<Token> likely;     // tokens of its prompt whose likelihood it was told
    int finished = 0;              // how many finished events
    Event last;                    // the finished event
  };
  // Request and rows of each part of a batch, in its order.
  using Parts = std::vector<std::pair<std::uint64_t, TokenCount>>;

  explicit FakeWorker(const SchedulerConfig& config) : scheduler(config), model(config) {
    limits_.context = config.kv.cells_per_slot;
  }

  // Computes one step with this status; false when there was nothing to compute.
  bool step(DecodeStatus status = DecodeStatus::ok) {
    scheduler.next_batch(clock.now(), batch);
    take_events();
    expect_consistent();
    const bool encoded = encode();
    const bool work = !batch.empty();
    parts.clear();
    for (const BatchPart& part : batch.parts) parts.emplace_back(part.request->id.value, part.rows);
    if (work) {
      const bool draft_tokens = heads_cost && !batch.drafting.empty();
      if (draft_tokens) expect_known();
      if (draft_tokens || acceptance_rate) set_acceptance();
      model.run(batch, status, result);
      if (heads_cost) learn();
      const Duration row = decoded() ? decode_row_cost.value_or(row_cost) : row_cost;
      result.compute = step_cost + row * static_cast<int>(batch.rows.size()) + change_of_adapters();
      if (decode_cost && decoded()) result.compute = decode_cost(batch.rows.size());
      if (rows_seen_.insert(batch.rows.size()).second) result.compute += new_size_cost;
      if (std::exchange(rows_before_, batch.rows.size()) != batch.rows.size()) result.compute += turn_cost;
      result.drafted = draft_tokens;
      if (draft_tokens) result.drafting = *heads_cost;
      if (batch.learn) result.learning = learn_cost;
      clock.advance(result.compute + result.drafting + result.learning + constrain());
      for (const SlotSave& save : batch.saves) {
        CHECK(save.from < save.tokens, "a copy of nothing");
        result.saving += save_cost * (save.tokens - save.from);
      }
      result.restoring = restore_cost * static_cast<int>(batch.restores.size());
      Duration copying = result.saving;
      for (const SlotRestore& restore : batch.restores) result.restoring += copy_cost * (restore.end() - restore.from);
      copying += result.restoring;
      if (copies_take_time) clock.advance(copying);
      result.finished = clock.now();
      scheduler.commit(batch, result);
      end_leases(batch, result);
    }
    take_events();
    expect_consistent();
    EXPECT_EQ(scheduler.ledger().cells_used(), model.held_by_living()) << "conservation";
    EXPECT_GE(scheduler.preemptions(), model.preempted());
    for (const std::string& fault : model.faults()) ADD_FAILURE() << fault;
    return (work || encoded) && model.faults().empty();
  }

  // With SchedulerConfig::encodes: what was ordered until now. False: nothing, or it is not to be encoded yet.
  bool encode() {
    scheduler.take_encoding_orders(to_encode);
    if (!encodes_at_once || to_encode.empty()) return false;
    for (const EncodingOrder& order : std::exchange(to_encode, {})) {
      scheduler.encoded({.request = order.request->id, .begin = order.begin, .fresh = true}, clock.now());
    }
    return true;
  }

  void run_to_end() {
    for (int steps = 0; step(); ++steps) ASSERT_LT(steps, 10'000) << "progress";
  }
  void run_until_finished(std::uint64_t id) {
    for (int steps = 0; !finished(id); ++steps) {
      ASSERT_TRUE(step());
      ASSERT_LT(steps, 10'000) << "progress";
    }
  }

  RequestPtr add(std::uint64_t id, TokenCount prompt, std::int64_t max_tokens, FakeScript script = {}) {
    return add(id, Ask{.prompt = prompt, .max_tokens = max_tokens, .script = script});
  }
  RequestPtr add(std::uint64_t id, const Ask& ask) {
    RequestDraft draft;
    draft.prompt = prompt_of(id, ask);
    draft.use_cache = ask.use_cache;
    draft.deterministic = ask.deterministic;
    draft.returns = ask.returns;
    draft.adapters = ask.adapters;
    draft.tell_progress = ask.tell_progress;
    draft.tell_prompt = ask.tell_prompt;
    if (ask.constrained) draft.parts = std::make_shared<SamplingParts>();
    draft.max_tokens = ask.max_tokens;
    draft.timeout_ms = ask.timeout_ms;
    draft.ttft_ms = ask.ttft_ms;
    draft.service_class = ask.service_class;
    draft.tenant.id = ask.tenant;
    draft.boundaries = ask.boundaries;
    draft.keep = ask.keep;
    draft.discard = ask.discard;
    draft.chunk = ask.chunk;
    draft.group = ask.group;
    draft.tpot_target = ask.tpot;
    return submit(id, std::move(draft), ask.script);
  }
  // The next turn of a conversation: what was said so far, and `more` tokens.
  RequestPtr add_turn(std::uint64_t id, std::uint64_t before, TokenCount more, std::int64_t max_tokens) {
    RequestDraft draft;
    draft.prompt = of(before).request->prompt;
    for (TokenCount n = 0; n < of(before).tokens; ++n) draft.prompt.push_back(fake_next(draft.prompt));
    const std::vector<Token> own = test_prompt(more, id);
    draft.prompt.insert(draft.prompt.end(), own.begin(), own.end());
    draft.max_tokens = max_tokens;
    return submit(id, std::move(draft), {});
  }
  RequestPtr submit(std::uint64_t id, RequestDraft draft, const FakeScript& script) {
    Outcome& outcome = outcomes[RequestId{id}];
    limits_.checkpoint_every = checkpoint_every;
    limits_.shifts = shifts;
    limits_.moves_text = true;
    outcome.request = test_request(id, std::move(draft), limits_, clock.now());
    outcome.script = script;
    outcome.tokens = static_cast<TokenCount>(outcome.request->begun.size());
    outcome.text = fake_answer(*outcome.request, outcome.tokens, script);
    model.meet(outcome.request, script);
    scheduler.add(outcome.request);
    return outcome.request;
  }

  void cancel(std::uint64_t id) {
    scheduler.cancel(RequestId{id}, clock.now());
    take_events();
  }

  void take_events() {
    std::vector<Event> fresh;
    scheduler.take_events(fresh);
    for (Event& event : fresh) note(std::move(event));
  }

  const Outcome& of(std::uint64_t id) { return outcomes[RequestId{id}]; }
  bool finished(std::uint64_t id) { return of(id).finished > 0; }
  TokenCount cached(std::uint64_t id) { return of(id).last.usage.cached; }
  FinishReason reason(std::uint64_t id) {
    EXPECT_TRUE(finished(id)) << "request " << id;
    return of(id).last.reason;
  }
  bool decoded() const { return batch.kind == Batch::Kind::decode; }
  bool has_part(std::uint64_t id) const {
    return std::any_of(parts.begin(), parts.end(), [id](const auto& part) { return part.first == id; });
  }

  ManualClock clock;
  Scheduler scheduler;
  FakeModel model;
  Batch batch;
  BatchResult result;
  std::vector<EncodingOrder> to_encode;
  bool encodes_at_once = true;
  TokenCount checkpoint_every = 0;  // of prompts that are added from now on
  bool shifts = false;              // … and whether their context is shifted
  Duration step_cost{};             // whatever is in it
  Duration row_cost = milliseconds(1);
  Duration restore_cost{};
  Duration save_cost{};                   // of a token
  Duration copy_cost{};                   // of a token, into a slot
  bool copies_take_time = false;          // else what they cost is told, but passes unnoticed
  Duration switch_cost{};                 // of a step with other adapters than the one before
  std::optional<Duration> heads_cost;     // of draft tokens by heads; none: there are no heads
  std::optional<double> acceptance_rate;  // that a draft token is accepted; none: of heads 1, of others as it is
  TokenCount heads_know = 0;              // rows that they have learned of without a gap at least where they draft
  Duration constraint_cost{};             // of a token of a grammar
  bool constraints_are_told = true;
  Duration learn_cost{};                             // what they take to learn of a batch
  std::optional<Duration> decode_row_cost;           // where it is another one
  std::function<Duration(std::size_t)> decode_cost;  // of so many rows, instead of all of these
  Duration new_size_cost{};                          // more, the first time that a batch has so many rows
  Duration turn_cost{};                              // more, when it has not as many as the one before
  std::map<RequestId, Outcome> outcomes;
  Parts parts;                        // of the last batch
  std::vector<std::uint64_t> ending;  // who finished, in order

 private:
  void expect_known() {
    for (const BatchPart& part : batch.parts) {
      const Known& known = known_[part.slot];
      if (part.draft_tokens == 0) continue;
      EXPECT_EQ(known.next, batch.rows[static_cast<std::size_t>(part.last_row())].position) << "nothing is known";
      EXPECT_TRUE(known.from == 0 || known.next - known.from >= heads_know);
    }
  }

  void set_acceptance() {
    std::bernoulli_distribution right(acceptance_rate.value_or(1));
    for (const BatchPart& part : batch.parts) {
      if (part.draft_tokens == 0) continue;
      const Outcome& outcome = of(part.request->id.value);
      std::vector<Token> tokens = outcome.request->prompt;
      auto row = batch.rows.begin() + part.last_row() + 1;
      for (TokenCount n = 0; n < outcome.tokens + part.draft_tokens; ++n) {
        tokens.push_back(fake_next(tokens, outcome.script.repeats));
        if (n >= outcome.tokens) (row++)->token = right(chances_) ? tokens.back() : tokens.back() + 1;
      }
    }
  }

  void learn() {
    for (const BatchPart& part : batch.parts) {
      Known& known = known_[part.slot];
      const TokenCount first = batch.rows[static_cast<std::size_t>(part.first_row)].position;
      if (!batch.learn || known.next != first) known.from = first;
      const auto accepted = std::ranges::count_if(
          result.samples, [&](const Sample& sample) { return sample.request == part.request->id && sample.computed; });
      known.next = batch.learn ? first + part.rows + static_cast<TokenCount>(accepted) : -1;
    }
  }

  Duration constrain() {
    const auto tokens = std::ranges::count_if(result.samples, [this](const Sample& sample) {
      return !sample.forced && of(sample.request.value).request->parts != nullptr;
    });
    const Duration took = constraint_cost * static_cast<int>(tokens);
    if (!constraints_are_told) return took;
    result.constrained_tokens = static_cast<std::int32_t>(tokens);
    return result.constraining = took;
  }

  Duration change_of_adapters() {
    const bool same = batch.rows.empty() || id_of(batch.adapters) == applied_;
    if (!batch.rows.empty()) applied_ = id_of(batch.adapters);
    return same ? Duration::zero() : switch_cost;
  }

  static std::vector<Token> prompt_of(std::uint64_t id, const Ask& ask) {
    std::vector<Token> prompt = test_prompt(ask.shared, 1'000'000 + ask.family);
    const std::vector<Token> own = test_prompt(ask.prompt - ask.shared, id);
    prompt.insert(prompt.end(), own.begin(), own.end());
    return prompt;
  }

  void expect_consistent() {
    EXPECT_TRUE(scheduler.consistent());
    EXPECT_TRUE(scheduler.reuse().consistent());
    EXPECT_LE(scheduler.reuse().cache_stats().pending, scheduler.running()) << "announced by who does not run";
  }

  void note(Event event) {
    Outcome& outcome = outcomes[event.request];
    EXPECT_EQ(outcome.finished, 0) << "one-terminal: an event after the end of request " << event.request.value;
    outcome.text += event.text;
    outcome.tokens += event.tokens;
    outcome.gap_max = std::max(outcome.gap_max, event.since_last);
    if (event.kind == Event::Kind::queued) outcome.queued.push_back(event);
    if (event.kind == Event::Kind::progress) outcome.read.push_back(event.prefilled);
    for (const auto& chances : event.prompt_chances) outcome.likely.push_back(chances.front().token);
    if (event.kind != Event::Kind::finished) return;
    ++outcome.finished;
    EXPECT_EQ(event.usage.completion, outcome.tokens);
    EXPECT_EQ(outcome.text, fake_answer(*outcome.request, outcome.tokens, outcome.script))
        << "not what request " << event.request.value << " says when it is alone";
    model.ended(event.request);
    ending.push_back(event.request.value);
    outcome.last = std::move(event);
  }

  RequestLimits limits_ = test_limits();
  struct Known {
    TokenCount from = 0;
    TokenCount next = 0;
  };
  std::map<SlotId, Known> known_;  // to the heads
  std::mt19937 chances_{1};
  std::uint64_t applied_ = 0;
  std::set<std::size_t> rows_seen_;
  std::size_t rows_before_ = 0;
};

}  // namespace chasqui
