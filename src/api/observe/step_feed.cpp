#include "api/observe/step_feed.h"

#include "api/core/answer.h"
#include "api/core/frontend.h"
#include "api/core/served_model.h"
#include "api/observe/step_json.h"
#include "net/event_loop.h"
#include "net/event_signal.h"
#include "net/sse.h"

namespace chasqui {
namespace {

// A person sees no more than this, and forty steps fit into it where a model is small.
constexpr Duration kFeedEvery = milliseconds(50);

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
  out += "data: ";
  JsonWriter json(out);
  json.begin_object();
  write_promise(json, engine.workers(), shape.slots, shape.cells, engine.targets());
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
