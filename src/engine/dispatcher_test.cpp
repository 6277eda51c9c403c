#include "engine/dispatcher.h"

#include <deque>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>

#include "core/fake_requests.h"
#include "engine/fake_client.h"

namespace chasqui {
namespace {

// Workers behind a dispatcher, without an engine, and with an outbox for each so that one can see who spoke. One
// reader.
class Dispatched {
 public:
  explicit Dispatched(std::size_t workers, std::size_t pins_max = 1000, std::vector<StepGate*> gates = {},
                      Duration stuck_after = seconds(60)) {
    for (std::size_t i = 0; i < workers; ++i) add_worker(i, gates.empty() ? nullptr : gates[i]);
    DispatcherConfig config;
    config.placement = {workers, kSlots, false, pins_max, {}};
    config.stuck_after = stuck_after;
    config.inbox_max = 10'000;
    dispatcher = std::make_unique<Dispatcher>(config, workers_, clock_, own_outbox_, metrics);
  }
  // As the engine does: first who posts, then who is posted to.
  ~Dispatched() {
    dispatcher.reset();
    workers_.clear();
  }

  // `salt`: requests with the same begin alike; 0: like no other.
  RequestPtr make(std::uint64_t pin, TokenCount max_tokens = 3, TokenCount prompt = 20, std::uint64_t salt = 0) {
    RequestDraft draft;
    const std::uint64_t id = ++last_;
    draft.prompt = test_prompt(prompt, salt != 0 ? salt : 1'000'000 + id, 200);
    draft.max_tokens = max_tokens;
    draft.sampling.ignore_eos = true;
    draft.pin = pin;
    RequestLimits limits = test_limits();
    limits.vocabulary = sim_tokenizer()->vocabulary();
    limits.context = kContext;
    return test_request(id, std::move(draft), limits, clock_.now());
  }

  // Reads until so many requests have ended; notes who served whom, and tells the dispatcher of the ends.
  void read_until_ended(std::size_t requests) {
    while (served_by.size() + refused.size() < requests) {
      pollfd waiting{wakeup_.fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 60'000), 1) << "no event for a minute";
      wakeup_.acknowledge();
      for (std::size_t i = 0; i < outboxes_.size(); ++i) {
        outboxes_[i]->drain(events_);
        note(i);
      }
      own_outbox_.drain(events_);
      for (const Event& event : events_) {
        EXPECT_EQ(event.kind, Event::Kind::finished);
        refused[event.request] = event;
      }
    }
  }

  const EngineMetrics& worker_metrics(std::size_t worker) const { return worker_metrics_[worker]; }

  std::map<RequestId, std::size_t> served_by;
  std::map<RequestId, Event> last_events;
  std::map<RequestId, Event> refused;
  DispatchMetrics metrics;
  std::unique_ptr<Dispatcher> dispatcher;

 private:
  static constexpr std::int32_t kSlots = 4;
  static constexpr TokenCount kContext = 1024;

  void add_worker(std::size_t number, StepGate* gate) {
    const ModelConfig config{.slots = kSlots, .cells = kSlots * kContext, .rows_max = 64};
    SimOptions options;
    options.spend = [gate](Duration) {
      if (gate != nullptr) gate->pass();
    };
    auto model = std::make_unique<SimModel>(sim_tokenizer(), config, std::move(options));
    const ModelShape& shape = model->shape();
    Worker::Parts parts;
    parts.scheduler.kv = {shape.slots, shape.cells, shape.cells_per_slot, shape.unified};
    parts.scheduler.rows_max = shape.rows_max;
    parts.model = std::move(model);
    parts.tokenizer = sim_tokenizer();
    parts.inbox_max = 1;  // less than anybody needs: what the dispatcher posts must not be lost
    parts.number = number;
    outboxes_.push_back(std::make_unique<Mailbox<Event>>(1'000'000, [this] { wakeup_.signal(); }));
    workers_.push_back(std::make_unique<Worker>(std::move(parts), clock_, *outboxes_.back(), loads_.emplace_back(),
                                                slots_.emplace_back(kSlots), worker_metrics_.emplace_back()));
  }

  void note(std::size_t worker) {
    std::vector<RequestId> ended;
    for (const Event& event : events_) {
      const auto [at, fresh] = speaks_.emplace(event.request, worker);
      EXPECT_EQ(at->second, worker) << "two workers speak for request " << event.request.value;
      if (event.kind != Event::Kind::finished) continue;
      EXPECT_TRUE(served_by.emplace(event.request, worker).second) << "one-terminal";
      last_events[event.request] = event;
      ended.push_back(event.request);
    }
    if (dispatcher && !ended.empty()) dispatcher->ended(std::move(ended));
  }

  const RealClock clock_;
  Wakeup wakeup_;
  std::deque<EngineMetrics> worker_metrics_;
  std::deque<LoadBoard> loads_;
  std::deque<SlotBoard> slots_;
  std::vector<std::unique_ptr<Mailbox<Event>>> outboxes_;
  Mailbox<Event> own_outbox_{1000, [this] { wakeup_.signal(); }};
  std::map<RequestId, std::size_t> speaks_;
  std::vector<Event> events_;
  std::uint64_t last_ = 0;
  Workers workers_;
};

TEST(Dispatcher, AThousandCommandsOfFiftySessionsStayOnTheirWorkers) {
  constexpr std::uint64_t kClients = 50, kCommands = 20;
  Dispatched office(4);
  std::map<std::uint64_t, std::vector<RequestPtr>> commands;  // by pin
  for (std::uint64_t pin = 1; pin <= kClients; ++pin) {
    for (std::uint64_t i = 0; i < kCommands; ++i) commands[pin].push_back(office.make(pin));
  }
  std::vector<std::thread> clients;
  for (const auto& entry : commands) {
    const std::vector<RequestPtr>& requests = entry.second;
    clients.emplace_back([&office, &requests] {
      for (const RequestPtr& request : requests) {
        EXPECT_TRUE(office.dispatcher->submit(request));
        if (request->id.value % 5 == 0) office.dispatcher->cancel(request->id);
      }
    });
  }
  office.read_until_ended(kClients * kCommands);
  for (std::thread& client : clients) client.join();

  std::set<std::size_t> used;
  for (const auto& [pin, requests] : commands) {
    const std::size_t home = office.served_by.at(requests.front()->id);
    used.insert(home);
    for (const RequestPtr& request : requests) EXPECT_EQ(office.served_by.at(request->id), home) << "pin " << pin;
  }
  EXPECT_EQ(used.size(), 4u) << "and all have some";
  EXPECT_TRUE(office.refused.empty());
  EXPECT_EQ(office.metrics.placements[static_cast<std::size_t>(Placement::Reason::pin)].value(),
            kClients * (kCommands - 1));
}

TEST(Dispatcher, ForgetsRequestsThatHaveEndedAndPinsThatAreGivenUp) {
  Dispatched office(2);
  for (std::uint64_t i = 1; i <= 40; ++i) EXPECT_TRUE(office.dispatcher->submit(office.make(i)));
  office.read_until_ended(40);
  for (std::uint64_t i = 1; i <= 40; ++i) office.dispatcher->unpin(i);
  // Two more: when the second has ended, the pass that took the ends and the unpins is over.
  for (std::size_t i = 41; i <= 42; ++i) {
    EXPECT_TRUE(office.dispatcher->submit(office.make(0)));
    office.read_until_ended(i);
  }
  EXPECT_EQ(office.metrics.pins.value(), 0);
  EXPECT_LE(office.metrics.requests.value(), 1) << "the end of the last may not have come yet";
}

TEST(Dispatcher, ASessionTooManyGetsItsEndAndTheOthersGoOn) {
  Dispatched office(2, 2);
  const RequestPtr first = office.make(1), second = office.make(2), third = office.make(3), again = office.make(1);
  for (const RequestPtr& request : {first, second, third, again}) EXPECT_TRUE(office.dispatcher->submit(request));
  office.dispatcher->cancel(third->id);  // it is nowhere
  office.read_until_ended(4);
  ASSERT_EQ(office.refused.size(), 1u);
  const Event& end = office.refused.at(third->id);
  EXPECT_EQ(end.reason, FinishReason::error);
  EXPECT_EQ(end.error.code, ErrorCode::overloaded);
  EXPECT_FALSE(end.error.message.empty());
  EXPECT_EQ(end.usage.prompt, static_cast<TokenCount>(third->prompt.size()));
  EXPECT_EQ(office.metrics.refused.value(), 1u);
  EXPECT_EQ(office.served_by.at(again->id), office.served_by.at(first->id));
}

TEST(Dispatcher, ACancelReachesTheWorkerThatHasTheRequestAndCutsItsStep) {
  StepGate gate, open;
  open.open();
  Dispatched office(2, 10, {&gate, &open});
  const RequestPtr leaving = office.make(0, 100);
  EXPECT_TRUE(office.dispatcher->submit(leaving));
  gate.wait_inside(1);
  EXPECT_TRUE(office.dispatcher->cancel(leaving->id));
  // When the second of these has ended, the pass with the cancel is over.
  for (std::size_t i = 1; i <= 2; ++i) {
    EXPECT_TRUE(office.dispatcher->submit(office.make(0)));
    office.read_until_ended(i);
  }
  gate.open();
  office.read_until_ended(3);
  EXPECT_EQ(office.served_by.at(leaving->id), 0u);
  EXPECT_EQ(office.last_events.at(leaving->id).reason, FinishReason::cancelled);
  EXPECT_EQ(office.worker_metrics(0).aborted_steps.value(), 1u);
  EXPECT_EQ(office.worker_metrics(1).aborted_steps.value(), 0u);
  EXPECT_EQ(office.worker_metrics(0).prompt_tokens.value(), 0u) << "the step was cut, not finished";
}

TEST(Dispatcher, NewWorkAvoidsAWorkerThatHangsEvenIfItHasThePrefix) {
  for (const bool hangs : {false, true}) {
    StepGate gate, open;
    open.open();
    // Zero: it hangs as soon as it does not sleep.
    Dispatched office(2, 10, {&gate, &open}, hangs ? Duration::zero() : seconds(60));
    const RequestPtr first = office.make(0, 3, 900, 5), second = office.make(0, 3, 900, 5);
    EXPECT_TRUE(office.dispatcher->submit(first));
    gate.wait_inside(1);
    EXPECT_TRUE(office.dispatcher->submit(second));
    while (office.metrics.requests.value() < 2) std::this_thread::yield();
    gate.open();
    office.read_until_ended(2);
    EXPECT_EQ(office.served_by.at(first->id), 0u);
    EXPECT_EQ(office.served_by.at(second->id), hangs ? 1u : 0u);
  }
}

TEST(Dispatcher, HandsOverWhatWasPostedBeforeItEnds) {
  for (int round = 0; round < 20; ++round) {
    Dispatched office(2);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(office.dispatcher->submit(office.make(0, 1)));
    office.dispatcher.reset();
    office.read_until_ended(20);
  }
}

}  // namespace
}  // namespace chasqui
