#include "engine/worker.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

// A worker without an engine, so that what it leaves behind can be seen after its end.
TEST(Worker, EveryRequestInsideGetsItsEndWhenTheWorkerStops) {
  const RealClock clock;
  const auto tokenizer = std::make_shared<const SimTokenizer>();
  EngineMetrics metrics;
  int signals = 0;
  Mailbox<Event> outbox(1024, [&signals] { ++signals; });
  LoadBoard load;
  SlotBoard slots(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    Worker::Parts parts;
    const ModelConfig config{.slots = 2, .cells = 256, .rows_max = 16};
    auto model = std::make_unique<SimModel>(tokenizer, config, SimOptions{});
    const ModelShape& shape = model->shape();
    parts.scheduler.kv = {shape.slots, shape.cells, shape.cells_per_slot, shape.unified};
    parts.scheduler.rows_max = shape.rows_max;
    parts.model = std::move(model);
    parts.tokenizer = tokenizer;
    parts.inbox_max = 16;
    {
      Worker worker(std::move(parts), clock, outbox, load, slots, metrics);
      for (std::uint64_t id = 1; id <= 6; ++id) {
        RequestDraft draft;
        draft.prompt = test_prompt(20, id, 200);
        draft.sampling.ignore_eos = true;
        RequestLimits limits = test_limits();
        limits.vocabulary = tokenizer->vocabulary();
        limits.context = 128;
        EXPECT_TRUE(worker.post(SubmitCommand{test_request(id, std::move(draft), limits, clock.now())}));
      }
    }
    std::vector<Event> events;
    outbox.drain(events);
    std::vector<int> ends(7, 0);
    for (const Event& event : events) {
      if (event.kind == Event::Kind::finished) ++ends[event.request.value];
      EXPECT_EQ(ends[event.request.value], event.kind == Event::Kind::finished ? 1 : 0) << "one-terminal";
    }
    EXPECT_EQ(ends, (std::vector<int>{0, 1, 1, 1, 1, 1, 1}));
  }
  EXPECT_GE(signals, 20);
  EXPECT_EQ(metrics.kv_cells_used.value(), 0);
  EXPECT_EQ(metrics.requests_running.value(), 0);
  EXPECT_EQ(metrics.requests_waiting[1].value(), 0);
}

}  // namespace
}  // namespace chasqui
