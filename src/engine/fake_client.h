// An engine with a SimModel and the one reader that it has, for tests: submits, waits on the wake-up descriptor like
// an event loop does, and keeps what came out for each request. No sleeps: a gate can hold the worker inside a step.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "core/fake_requests.h"
#include "engine/engine.h"
#include "model/sim_model.h"
#include "model/sleepy_model.h"

namespace chasqui {

// Time that passes only when a step is computed. Any thread.
class StepClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint{Duration{ticks_.load()}}; }
  std::int64_t unix_seconds() const override { return 1'700'000'000; }
  void advance(Duration d) { ticks_ += d.count(); }

 private:
  std::atomic<Duration::rep> ticks_{0};
};

// Holds the worker at the beginning of each step until the test lets it go.
class StepGate {
 public:
  // Worker.
  void pass() {
    entered_.fetch_add(1);
    entered_.notify_all();
    for (std::int64_t now = allowed_.load(); now < entered_.load(); now = allowed_.load()) allowed_.wait(now);
  }
  // Test: lets `steps` more steps through; open() lets all.
  void allow(std::int64_t steps) {
    allowed_.fetch_add(steps);
    allowed_.notify_all();
  }
  void open() { allow(1LL << 40); }
  // Test: waits until the worker has begun its n-th step.
  void wait_inside(std::int64_t n) const {
    for (std::int64_t now = entered_.load(); now < n; now = entered_.load()) entered_.wait(now);
  }

 private:
  std::atomic<std::int64_t> entered_{0};
  std::atomic<std::int64_t> allowed_{0};
};

inline std::shared_ptr<const SimTokenizer> sim_tokenizer() {
  static const auto tokenizer = std::make_shared<const SimTokenizer>();
  return tokenizer;
}

inline void endless(RequestDraft& draft) { draft.sampling.ignore_eos = true; }

inline std::string chat(std::string_view text) {
  return "<|im_start|>user\n" + std::string(text) + "<|im_end|>\n<|im_start|>assistant\n";
}

inline std::string story(int number) { return chat("tell story number " + std::to_string(number)); }

struct ClientConfig {
  std::int32_t slots = 4;
  TokenCount context = 256;  // cells of a slot
  bool unified = false;      // then all slots share slots * context cells
  std::int32_t rows_max = 32;
  EngineConfig engine;
  std::size_t workers = 1;       // each with so many slots
  StepGate* gate = nullptr;      // none: steps run freely
  std::vector<StepGate*> gates;  // of each worker, where they differ
  StepClock* clock = nullptr;    // none: the real clock; else each step lets this time pass
  Duration step_time = milliseconds(1);
  std::uint64_t fail_step = 0;  // this decode() fails; 0: none
  std::size_t fail_worker = 0;  // … of this worker
  bool can_sleep = false;       // also without engine.sleep_after
  std::shared_ptr<MediaEncoder> encoder = nullptr;  // of pictures, for the model
};

class EncodingSimModel final : public SimModel {
 public:
  EncodingSimModel(const ModelConfig& config, SimOptions options, std::shared_ptr<MediaEncoder> encoder)
      : SimModel(sim_tokenizer(), config, std::move(options)), encoder_(std::move(encoder)) {}
  std::shared_ptr<MediaEncoder> encoder() const override { return encoder_; }
  // As models do: by what the encoder keeps of this tenant.
  Result<bool> encode(const MediaUnit& unit, std::uint32_t tenant) override {
    if (!encoder_) return false;
    const auto encoded = encoder_->encode(unit, tenant);
    if (!encoded) return encoded.error();
    return encoded->fresh;
  }

 private:
  const std::shared_ptr<MediaEncoder> encoder_;
};

class FakeClient {
 public:
  struct Answer {
    std::string text;
    TokenCount tokens = 0;
    int events = 0;
    int finished = 0;  // how many finished events
    Event last;        // the finished event
  };

  explicit FakeClient(const ClientConfig& config = {})
      : config_(config), engine(config.engine, make_models(), sim_tokenizer(), clock(), wakeup) {}

  RequestLimits limits() const {
    RequestLimits limits;
    limits.vocabulary = engine.shape().vocabulary;
    limits.context = config_.context;
    return limits;
  }

  RequestPtr make(std::string_view prompt, std::int64_t max_tokens = -1,
                  const std::function<void(RequestDraft&)>& change = {}) {
    RequestDraft draft;
    draft.prompt = sim_tokenizer()->tokenize(prompt, AddSpecial::no, ParseSpecial::yes);
    draft.max_tokens = max_tokens;
    if (change) change(draft);
    return test_request(engine.next_id().value, std::move(draft), limits(), clock().now());
  }
  RequestPtr submit(std::string_view prompt, std::int64_t max_tokens = -1,
                    const std::function<void(RequestDraft&)>& change = {}) {
    RequestPtr request = make(prompt, max_tokens, change);
    EXPECT_TRUE(engine.submit(request).has_value());
    return request;
  }

  // Reads events like the loop does until `done`. Fails the test when nothing comes for a minute.
  bool read_until(const std::function<bool()>& done) {
    while (!done()) {
      if (!wait()) return false;
      wakeup.acknowledge();  // before taking, so that nothing falls between
      take();
    }
    return true;
  }
  void read_to_end(const RequestPtr& request) {
    EXPECT_TRUE(read_until([&] { return of(request).finished > 0; }));
  }
  void read_to_end() {
    EXPECT_TRUE(read_until([&] { return engine.in_flight() == 0; }));
  }
  bool wait() {
    pollfd waiting{wakeup.fd(), POLLIN, 0};
    const bool came = ::poll(&waiting, 1, 60'000) == 1;
    EXPECT_TRUE(came) << "no event for a minute";
    return came;
  }
  void take() {
    engine.take_events(fresh_);
    for (Event& event : fresh_) note(std::move(event));
  }

  Answer& of(const RequestPtr& request) { return answers_[request->id]; }
  std::size_t events() const { return events_; }
  const Clock& clock() const { return config_.clock != nullptr ? static_cast<const Clock&>(*config_.clock) : real_; }

 private:
  Models make_models() {
    Models models;
    for (std::size_t i = 0; i < config_.workers; ++i) models.push_back(make_model(i));
    return models;
  }

  std::unique_ptr<Model> make_model(std::size_t worker) {
    if (config_.engine.sleep_after == Duration::zero() && !config_.can_sleep) return make_sim(worker);
    return std::move(*SleepyModel::start([this, worker]() -> Result<std::unique_ptr<Model>> {
      if (broken) return Error{ErrorCode::invalid_request, "the file has gone", ""};
      return make_sim(worker);
    }));
  }

  std::unique_ptr<Model> make_sim(std::size_t worker) {
    SimOptions options;
    StepGate* const its_gate = config_.gates.empty() ? config_.gate : config_.gates[worker];
    options.spend = [gate = its_gate, clock = config_.clock, time = config_.step_time](Duration) {
      if (gate != nullptr) gate->pass();
      if (clock != nullptr) clock->advance(time);
    };
    const ModelConfig shape{.slots = config_.slots,
                            .cells = config_.slots * config_.context,
                            .unified = config_.unified,
                            .rows_max = config_.rows_max};
    auto model = std::make_unique<EncodingSimModel>(shape, std::move(options), config_.encoder);
    const bool fails = config_.fail_step > 0 && worker == config_.fail_worker;
    if (fails) model->fail_decode(config_.fail_step, DecodeStatus::failed);
    return model;
  }

  void note(Event event) {
    Answer& answer = answers_[event.request];
    EXPECT_EQ(answer.finished, 0) << "one-terminal: an event after the end";
    if (event.kind == Event::Kind::queued) return;
    ++events_;
    ++answer.events;
    answer.text += event.text;
    answer.tokens += event.tokens;
    if (event.kind != Event::Kind::finished) return;
    ++answer.finished;
    EXPECT_EQ(event.usage.completion, answer.tokens);
    answer.last = std::move(event);
  }

  const ClientConfig config_;
  const RealClock real_;
  std::map<RequestId, Answer> answers_;
  std::vector<Event> fresh_;
  std::size_t events_ = 0;

 public:
  std::atomic<bool> broken{false};  // a model that sleeps cannot be made again
  Wakeup wakeup;
  Engine engine;  // last: its worker uses everything above
};

// What a request gets from a model that does nothing else: one slot, one loop, no scheduler.
struct AloneAnswer {
  std::string text;
  TokenCount tokens = 0;
  FinishReason reason = FinishReason::length;
};

inline AloneAnswer answer_alone(const Request& request) {
  SimModel model(sim_tokenizer(), {.slots = 1, .cells = 8192, .rows_max = 4096}, {});
  const Tokenizer& tokenizer = *sim_tokenizer();
  Sampler sampler(request.sampling, tokenizer.vocabulary(), tokenizer.end_of_generation_tokens());
  TextAssembler assembler(tokenizer, request.stop, request.special_pieces);
  SamplerScratch scratch;
  sampler.accept(request.prompt);

  AloneAnswer answer;
  Batch batch;
  batch.adapters = request.adapters.get();
  for (const Token token : request.prompt) {
    batch.rows.push_back({token, static_cast<TokenCount>(batch.rows.size()), SlotId{0}, false});
  }
  for (auto position = static_cast<TokenCount>(request.prompt.size()); answer.tokens < request.max_tokens; ++position) {
    batch.rows.back().output = true;
    CHECK(model.decode(batch) == DecodeStatus::ok);
    const Token token = sampler.sample(model.logits(static_cast<std::int32_t>(batch.rows.size()) - 1), scratch);
    sampler.accept(token);
    ++answer.tokens;
    const bool ends = tokenizer.is_end_of_generation(token);
    const bool stopped = !ends && assembler.push(token, answer.text) != nullptr;
    if (ends || stopped) {
      answer.reason = FinishReason::stop;
      break;
    }
    batch.rows.assign(1, {token, position, SlotId{0}, false});
  }
  assembler.finish(answer.text);
  return answer;
}

}  // namespace chasqui
