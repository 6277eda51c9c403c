#include "engine/worker.h"

#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "model/sim_model.h"

namespace chasqui {
namespace {

Worker::Parts parts_of(std::unique_ptr<SimModel> model, std::shared_ptr<const SimTokenizer> tokenizer) {
  Worker::Parts parts;
  const ModelShape& shape = model->shape();
  parts.scheduler.kv = {shape.slots, shape.cells, shape.cells_per_slot, shape.unified};
  parts.scheduler.rows_max = shape.rows_max;
  parts.model = std::move(model);
  parts.tokenizer = std::move(tokenizer);
  parts.inbox_max = 16;
  return parts;
}

RequestPtr endless_request(std::uint64_t id, ServiceClass service_class, const SimTokenizer& tokenizer,
                           const Clock& clock) {
  RequestDraft draft;
  draft.prompt = test_prompt(20, id, 200);
  draft.sampling.ignore_eos = true;
  draft.service_class = service_class;
  RequestLimits limits = test_limits();
  limits.vocabulary = tokenizer.vocabulary();
  limits.context = 128;
  return test_request(id, std::move(draft), limits, clock.now());
}

// Something happens when a step begins: when the worker has taken what was posted before, and not yet said what it
// computes.
class BeginningModel final : public SimModel {
 public:
  using SimModel::SimModel;
  void clear_abort() override {
    SimModel::clear_abort();
    if (on_begin) std::exchange(on_begin, {})();
  }
  std::function<void()> on_begin;
};

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
    const ModelConfig config{.slots = 2, .cells = 256, .rows_max = 16};
    auto model = std::make_unique<SimModel>(tokenizer, config, SimOptions{});
    {
      Worker worker(parts_of(std::move(model), tokenizer), clock, outbox, load, slots, metrics);
      for (std::uint64_t id = 1; id <= 6; ++id) {
        EXPECT_TRUE(worker.post(SubmitCommand{endless_request(id, ServiceClass::standard, *tokenizer, clock)}));
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

TEST(Worker, AnArrivalCutsAStepThatIsJustBeginning) {
  const RealClock clock;
  const auto tokenizer = std::make_shared<const SimTokenizer>();
  const ModelConfig config{.slots = 2, .cells = 256, .rows_max = 16};
  for (const bool arrives : {true, false}) {  // or else the client leaves whose prompt it is
    EngineMetrics metrics;
    LoadBoard load;
    SlotBoard slots(2);
    Mailbox<Event> outbox(1024);
    auto model = std::make_unique<BeginningModel>(tokenizer, config, SimOptions{});
    BeginningModel& begins = *model;
    {
      Worker worker(parts_of(std::move(model), tokenizer), clock, outbox, load, slots, metrics);
      begins.on_begin = [&] {
        Command command = CancelCommand{RequestId{1}};
        if (arrives) command = SubmitCommand{endless_request(2, ServiceClass::interactive, *tokenizer, clock)};
        EXPECT_TRUE(worker.post(std::move(command)));
      };
      EXPECT_TRUE(worker.post(SubmitCommand{endless_request(1, ServiceClass::background, *tokenizer, clock)}));
      std::vector<Event> events;
      outbox.drain(events, Wait::yes);
    }
    EXPECT_EQ(metrics.aborted_steps.value(), 1u);
  }
}

}  // namespace
}  // namespace chasqui
