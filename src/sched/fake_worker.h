// The worker loop without a thread, for tests of the scheduler: one call is one step, on virtual time, and every
// event is kept by request. Any broken promise fails the test at once, a wrong text among them. One thread.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
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

class FakeWorker {
 public:
  // What a test wants of a request.
  struct Ask {
    TokenCount prompt = 10;
    std::int64_t max_tokens = 3;
    ServiceClass service_class = ServiceClass::standard;
    std::uint32_t tenant = 0;
    std::optional<std::int64_t> timeout_ms{};
    FakeScript script{};
  };

  // What came out for one request.
  struct Outcome {
    RequestPtr request;
    FakeScript script;
    std::string text;
    TokenCount tokens = 0;
    Duration gap_max{};         // the longest time from token to token
    std::vector<Event> queued;  // what it was told while it waited
    int finished = 0;           // how many finished events
    Event last;                 // the finished event
  };
  // Request and rows of each part of a batch, in its order.
  using Parts = std::vector<std::pair<std::uint64_t, TokenCount>>;

  explicit FakeWorker(const SchedulerConfig& config)
      : scheduler(config), model(config.kv, config.rows_max, config.dense_slots) {
    limits_.context = config.kv.cells_per_slot;
  }

  // Computes one step with this status; false when there was nothing to compute.
  bool step(DecodeStatus status = DecodeStatus::ok) {
    scheduler.next_batch(clock.now(), batch);
    take_events();
    EXPECT_TRUE(scheduler.consistent());
    const bool work = !batch.empty();
    parts.clear();
    for (const BatchPart& part : batch.parts) parts.emplace_back(part.request->id.value, part.rows);
    if (work) {
      model.run(batch, status, result);
      const Duration row = decoded() ? decode_row_cost.value_or(row_cost) : row_cost;
      result.compute = row * static_cast<int>(batch.rows.size());
      clock.advance(result.compute);
      result.finished = clock.now();
      scheduler.commit(batch, result);
    }
    take_events();
    EXPECT_TRUE(scheduler.consistent());
    EXPECT_GE(scheduler.preemptions(), model.preempted());
    for (const std::string& fault : model.faults()) ADD_FAILURE() << fault;
    return work && model.faults().empty();
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
    draft.prompt = test_prompt(ask.prompt, id);
    draft.max_tokens = ask.max_tokens;
    draft.timeout_ms = ask.timeout_ms;
    draft.service_class = ask.service_class;
    draft.tenant.id = ask.tenant;
    Outcome& outcome = outcomes[RequestId{id}];
    outcome.request = test_request(id, std::move(draft), limits_, clock.now());
    outcome.script = ask.script;
    model.script(outcome.request->id, ask.script);
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
  Duration row_cost = milliseconds(1);
  std::optional<Duration> decode_row_cost;  // where it is another one
  std::map<RequestId, Outcome> outcomes;
  Parts parts;                        // of the last batch
  std::vector<std::uint64_t> ending;  // who finished, in order

 private:
  void note(Event event) {
    Outcome& outcome = outcomes[event.request];
    EXPECT_EQ(outcome.finished, 0) << "one-terminal: an event after the end of request " << event.request.value;
    outcome.text += event.text;
    outcome.tokens += event.tokens;
    outcome.gap_max = std::max(outcome.gap_max, event.since_last);
    if (event.kind == Event::Kind::queued) outcome.queued.push_back(event);
    if (event.kind != Event::Kind::finished) return;
    ++outcome.finished;
    EXPECT_EQ(event.usage.completion, outcome.tokens);
    EXPECT_EQ(outcome.text, fake_answer(outcome.request->prompt, outcome.tokens, outcome.script))
        << "not what request " << event.request.value << " says when it is alone";
    model.ended(event.request);
    ending.push_back(event.request.value);
    outcome.last = std::move(event);
  }

  RequestLimits limits_ = test_limits();
};

}  // namespace chasqui
