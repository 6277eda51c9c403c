#include "api/observe/debug_trace.h"

#include <algorithm>
#include <charconv>

#include "api/core/answer.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {
namespace {

constexpr int kSecondsMax = kCountLimit<"trace_seconds"> / 1000;
constexpr int kSecondsDefault = 5;
constexpr std::size_t kTracersMax = kSizeLimit<"traces">;
// The ring holds ten times as many steps as the fastest model makes in this time.
constexpr Duration kLookEvery = milliseconds(50);
constexpr std::size_t kStepsMax = 100'000;  // of one worker; a minute of steps of half a millisecond

class Tracer {
 public:
  explicit Tracer(std::size_t& count) : count_(count) { ++count_; }
  ~Tracer() { --count_; }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

 private:
  std::size_t& count_;
};

Result<int> read_seconds(const net::HttpRequest& request) {
  const auto text = request.query("seconds");
  if (!text) return kSecondsDefault;
  int seconds = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (failed != std::errc{} || end != text->data() + text->size() || seconds < 1 || seconds > kSecondsMax) {
    return invalid_field("seconds", "seconds must be a number from 1 to " + std::to_string(kSecondsMax));
  }
  return seconds;
}

void take_new(const Engine& engine, std::vector<std::uint64_t>& next, StepsByWorker& steps) {
  StepRecord record;
  for (std::size_t w = 0; w < next.size(); ++w) {
    const StepRing& ring = engine.steps(w);
    const std::uint64_t last = ring.written();
    const std::uint64_t oldest = last < StepRing::kStepsKept ? 1 : last - StepRing::kStepsKept + 1;
    for (std::uint64_t n = std::max(next[w], oldest); n <= last && steps[w].size() < kStepsMax; ++n) {
      if (ring.read(n, record)) steps[w].push_back(record);
    }
    next[w] = last + 1;
  }
}

constexpr int kProcessSteps = 1;
constexpr int kProcessRequests = 2;

class TraceWriter {
 public:
  TraceWriter(std::string& out, TimePoint zero) : json_(out), zero_(zero) {
    json_.begin_object();
    json_.field("displayTimeUnit", "ms");
    json_.begin_array("traceEvents");
  }
  void end() {
    json_.end_array();
    json_.end_object();
  }

  void name(std::string_view what, int process, std::size_t thread, std::string_view name) {
    begin(what, "M", process, thread);
    json_.begin_object("args");
    json_.field("name", name);
    json_.end_object();
    json_.end_object();
  }

  void step(std::size_t worker, const StepRecord& step) {
    std::int32_t rows = 0, prompt = 0, waiting = 0;
    for (std::size_t c = 0; c < kServiceClasses; ++c) {
      rows += step.decode_rows[c];
      prompt += step.prompt_rows[c];
      waiting += step.waiting[c];
    }
    begin(step.cut != 0 ? "cut" : step.prefill != 0 ? "prefill" : "decode", "X", kProcessSteps, worker);
    json_.field("ts", microseconds_of(TimePoint(Duration(step.started))));
    json_.field("dur", static_cast<double>(step.took) / 1000);
    json_.begin_object("args");
    json_.field("decode_rows", rows);
    json_.field("prompt_rows", prompt);
    json_.field("sequences", step.sequences);
    json_.field("predicted_ms", static_cast<double>(step.predicted) / 1e6);
    json_.field("compute_ms", static_cast<double>(step.compute) / 1e6);
    json_.field("running", step.running);
    json_.field("waiting", waiting);
    json_.field("cells", step.cells);
    json_.field("restored", step.restored);
    json_.field("saved", step.saved);
    json_.end_object();
    json_.end_object();
  }

  // Phases of one request lie in one row of their own, one after the other.
  void request(std::size_t row, const RequestRecord& request) {
    const std::string title = "request " + std::to_string(request.id.value);
    name("thread_name", kProcessRequests, row, title);
    if (!request.submitted) return phase("refused", row, request.began, request.ended);
    const TimePoint started = request.arrival + request.usage.queue;
    const TimePoint first = started + request.usage.prefill;
    const TimePoint last = first + request.usage.decode;
    phase("tokenize", row, request.began, request.arrival);
    phase("queue", row, request.arrival, started);
    if (request.usage.steps > 0) phase("prefill", row, started, first);
    if (request.usage.completion > 0) phase("decode", row, first, last);
    phase("write", row, last, std::max(last, request.ended));
  }

 private:
  void begin(std::string_view event, std::string_view kind, int process, std::size_t thread) {
    json_.begin_object();
    json_.field("name", event);
    json_.field("ph", kind);
    json_.field("pid", process);
    json_.field("tid", thread);
  }
  void phase(std::string_view what, std::size_t row, TimePoint from, TimePoint to) {
    begin(what, "X", kProcessRequests, row);
    json_.field("ts", microseconds_of(from));
    json_.field("dur", microseconds_of(to) - microseconds_of(from));
    json_.end_object();
  }
  double microseconds_of(TimePoint at) const { return std::chrono::duration<double, std::micro>(at - zero_).count(); }

  JsonWriter json_;
  const TimePoint zero_;
};

}  // namespace

std::string chrome_trace(const StepsByWorker& steps, const std::vector<std::shared_ptr<RequestRecord>>& requests,
                         TimePoint zero) {
  std::string out;
  TraceWriter writer(out, zero);
  writer.name("process_name", kProcessSteps, 0, "steps");
  writer.name("process_name", kProcessRequests, 0, "requests");
  for (std::size_t w = 0; w < steps.size(); ++w) {
    writer.name("thread_name", kProcessSteps, w, "worker " + std::to_string(w));
    for (const StepRecord& step : steps[w]) writer.step(w, step);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) writer.request(i, *requests[i]);
  writer.end();
  return out;
}

Handled handle_debug_trace(Call call) {
  static std::size_t tracers = 0;  // loop thread only
  const Frontend& frontend = call.frontend;
  const Engine& engine = call.served.engine;
  const Result<int> seconds_asked = read_seconds(call.exchange.request());
  if (!frontend.keys.may_watch(call.caller, call.exchange.request())) co_return watching_refused();
  if (!seconds_asked) co_return seconds_asked.error();
  if (tracers >= kTracersMax) co_return Error{ErrorCode::overloaded, "others are tracing already", ""};
  const Tracer tracer(tracers);
  const TimePoint begin = frontend.clock.now();
  const TimePoint end = begin + seconds(*seconds_asked);
  std::vector<std::uint64_t> next;
  for (std::size_t w = 0; w < engine.workers(); ++w) next.push_back(engine.steps(w).written() + 1);
  StepsByWorker steps(next.size());
  net::Timer timer(frontend.loop.executor());
  while (frontend.clock.now() < end && !call.exchange.client_gone() && !engine.draining()) {
    timer.expires_at(std::min(end, frontend.clock.now() + kLookEvery));
    co_await timer.async_wait(net::kAwait);
    frontend.loop.turn_begins();
    take_new(engine, next, steps);
  }
  auto requests = frontend.requests != nullptr ? frontend.requests->ended_since(begin)
                                               : std::vector<std::shared_ptr<RequestRecord>>();
  auto work = [steps = std::move(steps), requests = std::move(requests), begin] {
    return chrome_trace(steps, requests, begin);
  };
  Result<std::string> file = co_await call.frontend.offload.run(std::move(work));
  if (!file) co_return file.error();
  call.exchange.add_response_header("Content-Disposition", "attachment; filename=\"chasqui-trace.json\"");
  std::string body = std::move(*file);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
