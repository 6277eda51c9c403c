// The worker loop without a thread, for tests of the scheduler: one call is one step, on virtual time, and every
// event is kept by request. Any broken promise fails the test at once. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "core/fake_requests.h"
#include "sched/fake_model.h"
#include "sched/scheduler.h"

namespace chasqui {

class FakeWorker {
 public:
  // What came out for one request.
  struct Outcome {
    std::string text;
    TokenCount tokens = 0;
    int finished = 0;  // how many finished events
    Event last;        // the finished event
  };

  explicit FakeWorker(SchedulerConfig config) : scheduler(config), model(config.kv, config.rows_max) {}

  // Computes one step with this status; false when there was nothing to compute.
  bool step(DecodeStatus status = DecodeStatus::ok) {
    scheduler.next_batch(clock.now(), batch);
    EXPECT_TRUE(scheduler.consistent());
    const bool work = !batch.empty();
    parts.clear();
    for (const BatchPart& part : batch.parts) parts.emplace_back(part.request->id.value, part.rows);
    if (work) {
      model.run(batch, status, result);
      result.compute = row_cost * static_cast<int>(batch.rows.size());
      clock.advance(result.compute);
      result.finished = clock.now();
      scheduler.commit(batch, result);
    }
    take_events();
    EXPECT_TRUE(scheduler.consistent());
    for (const std::string& fault : model.faults()) ADD_FAILURE() << fault;
    return work;
  }

  void run_to_end() {
    for (int steps = 0; step(); ++steps) ASSERT_LT(steps, 10'000) << "progress";
  }

  RequestPtr add(std::uint64_t id, TokenCount prompt, std::int64_t max_tokens, FakeScript script = {}) {
    return add(test_request(id, prompt, max_tokens), script);
  }
  RequestPtr add(RequestPtr request, FakeScript script = {}) {
    model.script(request->id, script);
    scheduler.add(request);
    return request;
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

  ManualClock clock;
  Scheduler scheduler;
  FakeModel model;
  Batch batch;
  BatchResult result;
  Duration row_cost = milliseconds(1);
  std::map<RequestId, Outcome> outcomes;
  // Request and rows of each part of the last batch, in its order.
  std::vector<std::pair<std::uint64_t, TokenCount>> parts;

 private:
  void note(Event event) {
    Outcome& outcome = outcomes[event.request];
    EXPECT_EQ(outcome.finished, 0) << "one-terminal: an event after the end of request " << event.request.value;
    outcome.text += event.text;
    outcome.tokens += event.tokens;
    if (event.kind != Event::Kind::finished) return;
    ++outcome.finished;
    EXPECT_EQ(event.usage.completion, outcome.tokens);
    model.ended(event.request);
    outcome.last = std::move(event);
  }
};

}  // namespace chasqui
