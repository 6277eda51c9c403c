#include "api/observe/step_feed.h"

#include <array>

#include "api/core/answer.h"
#include "api/core/frontend.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "net/event_loop.h"
#include "net/event_signal.h"
#include "net/sse.h"

namespace chasqui {
namespace {

// A person sees no more than this, and forty steps fit into it where a model is small.
constexpr Duration kFeedEvery = milliseconds(50);

double milliseconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds / 1000) / 1000.0; }

void write_classes(JsonWriter& json, std::string_view key, const std::array<std::int32_t, kServiceClasses>& values) {
  json.begin_array(key);
  for (const std::int32_t value : values) json.number(value);
  json.end_array();
}

void write_step(JsonWriter& json, std::size_t worker, std::uint64_t number, const StepRecord& step) {
  json.begin_object();
  json.field("n", number);
  json.field("worker", worker);
  json.field("kind", step.prefill != 0 ? "prefill" : "decode");
  json.field("t", milliseconds_of(step.started));
  json.field("ms", milliseconds_of(step.took));
  json.field("compute_ms", milliseconds_of(step.compute));
  json.field("predicted_ms", milliseconds_of(step.predicted));
  write_classes(json, "decode", step.decode_rows);
  write_classes(json, "prompt", step.prompt_rows);
  json.field("sequences", step.sequences);
  json.field("padding", step.padding);
  json.field("cut", step.cut != 0);
  json.field("running", step.running);
  write_classes(json, "waiting", step.waiting);
  write_classes(json, "streams", step.streams);
  json.field("cells", step.cells);
  json.field("restored", step.restored);
  json.field("saved", step.saved);
  json.end_object();
}

// One more while it lives.
class Watcher {
 public:
  explicit Watcher(std::size_t& count) : count_(count) { ++count_; }
  ~Watcher() { --count_; }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  std::size_t& count_;
};

}  // namespace

StepReader::StepReader(const Engine& engine) : engine_(engine) {
  for (std::size_t w = 0; w < engine.workers(); ++w) next_.push_back(engine.steps(w).written() + 1);
}

void StepReader::append_new(std::string& out) {
  const std::size_t before = out.size();
  out += "data: ";
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("steps");
  std::uint64_t written = 0;
  std::uint64_t missed = 0;
  StepRecord record;
  for (std::size_t w = 0; w < next_.size(); ++w) {
    const StepRing& ring = engine_.steps(w);
    const std::uint64_t last = ring.written();
    for (std::uint64_t n = next_[w]; n <= last; ++n) {
      if (n + StepRing::kStepsKept <= last) {
        // It is gone, and so are all before the oldest that is kept.
        missed += last - StepRing::kStepsKept + 1 - n;
        n = last - StepRing::kStepsKept + 1;
      }
      if (ring.read(n, record)) {
        write_step(json, w, n, record);
        ++written;
      } else {
        ++missed;
      }
    }
    next_[w] = last + 1;
  }
  json.end_array();
  json.field("missed", missed);
  json.end_object();
  out += "\n\n";
  if (written + missed == 0) out.resize(before);
}

void append_promise(const Engine& engine, std::string& out) {
  const ModelShape& shape = engine.shape();
  const SchedulerTargets& targets = engine.targets();
  out += "data: ";
  JsonWriter json(out);
  json.begin_object();
  json.field("workers", engine.workers());
  json.field("slots", shape.slots);
  json.field("cells", shape.cells);
  json.field("prefill_step_ms", to_milliseconds(targets.prefill_step));
  json.begin_object("targets");
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    json.begin_object(name(static_cast<ServiceClass>(c)));
    json.field("first_token_ms", to_milliseconds(targets.of[c].first_token));
    json.field("next_token_ms", to_milliseconds(targets.of[c].next_token));
    json.end_object();
  }
  json.end_object();
  const Load load = engine.load();
  json.field("running", load.running);
  write_classes(json, "waiting", load.waiting);
  json.end_object();
  out += "\n\n";
}

Handled handle_step_feed(Call call) {
  net::HttpExchange& exchange = call.exchange;
  const Engine& engine = call.served.engine;
  if (exchange.request().method == net::HttpMethod::head) {
    net::HttpHeaders head = net::sse_headers();
    const bool begun = co_await exchange.start_stream(200, std::move(head));
    if (begun) co_await exchange.finish_stream();
    co_return Result<void>();
  }
  if (call.served.step_watchers >= kStepWatchersMax) {
    co_return Error{ErrorCode::overloaded, "too many watch the steps already", ""};
  }
  const Watcher watcher(call.served.step_watchers);
  net::HttpHeaders headers = net::sse_headers();
  bool open = co_await exchange.start_stream(200, std::move(headers));
  StepReader reader(engine);
  net::EventSignal left(call.frontend.loop);
  exchange.on_client_gone([&left] { left.notify(); });
  std::string out;
  append_promise(engine, out);
  TimePoint said = call.frontend.clock.now();
  // A server that shuts down, or a model that was replaced, does not wait for those who only watch.
  while (open && !exchange.client_gone() && !engine.draining() && !call.served.replaced) {
    const TimePoint now = call.frontend.clock.now();
    if (out.empty() && now - said >= call.frontend.config.ping_every) net::append_sse_comment(out, "ping");
    if (!out.empty()) said = now;
    open = co_await exchange.write_chunk(out);
    out.clear();
    co_await left.wait_until(now + kFeedEvery);
    reader.append_new(out);
  }
  exchange.on_client_gone({});
  if (!exchange.client_gone()) co_await exchange.finish_stream(out);
  co_return Result<void>();
}

}  // namespace chasqui
