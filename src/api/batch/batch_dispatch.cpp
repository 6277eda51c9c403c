// The lines of batches: whose turn it is, what an answer comes to, and how results are written.
#include <algorithm>
#include <charconv>
#include <utility>

#include "api/batch/batch_runner.h"
#include "api/core/errors.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

constexpr Duration kPauseLeast = milliseconds(250);
constexpr Duration kPauseMost = seconds(30);
constexpr Duration kTryFailed = seconds(1);
constexpr Duration kTryWrite = seconds(1);

// What the answer says of when to come back; zero: nothing.
Duration retry_after_of(const net::HttpResponse& answer) {
  const auto text = answer.headers.get("retry-after-ms");
  std::int64_t wait = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), wait);
  return milliseconds(std::max<std::int64_t>(0, wait));
}

}  // namespace

class BatchRunner::Place {
 public:
  Place(BatchRunner& runner, BatchRunPtr run) : runner_(runner), run_(std::move(run)) {}
  ~Place() {
    --runner_.running_;
    --run_->lines;
    const auto turn = runner_.turns_.find(run_->job->owner);
    if (turn != runner_.turns_.end()) --turn->second.running;
    runner_.store_.metrics().lines_running.add(-1);
    run_->signal.notify();
    runner_.pump();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  BatchRunner& runner_;
  const BatchRunPtr run_;
};

// Half of what the tenant may have in flight, so that the other half is its own.
std::size_t BatchRunner::lines_of(std::uint64_t owner) const {
  const std::optional<Caller> caller = frontend_.keys.caller_of(owner);
  if (!caller) return 0;
  const bool alone = caller->tenant.id == 0 || frontend_.keys.tenants() <= 1;
  const FrontendConfig& config = frontend_.config;
  const std::size_t most = caller->in_flight.value_or(alone ? config.anonymous_requests : config.tenant_requests);
  return most == 0 ? SIZE_MAX : std::max<std::size_t>(1, most / 2);
}

void BatchRunner::pump() {
  if (share_) pump_share();
  if (held_) return;
  while (start_next()) {
  }
  const TimePoint now = loop_.now();
  for (const auto& [owner, turn] : turns_) {
    for (const BatchRunPtr& run : turn.runs) {
      if (run->stopping) continue;
      if (run->paused_until > now) {
        wake_at(run->paused_until);
        continue;
      }
      if (run->wants_to_read()) {
        run->reading = true;
        launch(read_more(run), "batch read");
      }
      if (run->has_more()) break;  // the later ones wait
    }
  }
}

void BatchRunner::wake_at(TimePoint time) {
  if (time >= wakes_at_) return;
  wakes_at_ = time;
  wake_.expires_at(time);
  wake_.async_wait([this](net::SystemError error) {
    if (error) return;
    wakes_at_ = kNever;
    pump();
  });
}

// Of one tenant the batch that was made first; null: none has a line that can begin.
BatchRunPtr BatchRunner::startable(std::uint64_t owner, const Turn& turn, TimePoint now) const {
  if (turn.running_max == 0) return nullptr;
  // Its results would take the room of the others' files, and with that their lines, until they expire.
  if (frontend_.keys.tenants() > 1 && store_.is_over_share(owner)) return nullptr;
  const auto found = std::ranges::find_if(turn.runs, [&](const BatchRunPtr& run) {
    return !run->stopping && !run->write_fails && !run->ready.empty() && run->paused_until <= now &&
           has_room(turn, *run);
  });
  return found == turn.runs.end() ? nullptr : *found;
}

// Of the tenant that has the fewest lines running, of equals the one that has waited longest.
bool BatchRunner::start_next() {
  if (store_.is_full()) return false;
  const TimePoint now = loop_.now();
  Turn* best = nullptr;
  BatchRunPtr run;
  for (auto& [owner, turn] : turns_) {
    const std::pair order(turn.running + turn.away, turn.served);
    if (best != nullptr && std::pair(best->running + best->away, best->served) <= order) continue;
    BatchRunPtr first = startable(owner, turn, now);
    if (!first) continue;
    best = &turn;
    run = std::move(first);
  }
  if (best == nullptr) return false;
  best->served = ++served_;
  const auto early = run->early.find(run->ready.front().place.number);
  if (early != run->early.end() || goes_away(*run, run->ready.front())) {
    WaitingLine line = std::move(run->ready.front());
    run->ready.pop_front();
    if (early == run->early.end()) {
      send_away(run, std::move(line));
      return true;
    }
    ArrivedResult arrived = std::move(early->second);
    run->early.erase(early);
    use_result(run, std::move(line), std::move(arrived));
    return true;
  }
  ++best->running;
  ++running_;
  ++run->lines;
  store_.metrics().lines_running.add(1);
  WaitingLine line = std::move(run->ready.front());
  run->ready.pop_front();
  launch(run_line(run, std::move(line)), "batch line");
  return true;
}

// Lines that were put back come after all others.
net::Awaitable<void> BatchRunner::read_more(BatchRunPtr run) {
  const std::string& endpoint = run->job->endpoint;
  const bool repeats = run->at_end;
  Result<ReadAhead> read = ReadAhead();
  if (repeats) {
    WaitingLine again = std::move(run->again.front());
    run->again.pop_front();
    auto work = [input = run->input, endpoint, again] { return read_again(*input, endpoint, again); };
    read = co_await store_.run(std::move(work));
    if (!read) run->again.push_front(std::move(again));
  } else {
    auto work = [input = run->input, endpoint, from = run->next, done = run->done_before] {
      return read_ahead(*input, endpoint, from, *done);
    };
    read = co_await store_.run(std::move(work));
  }
  run->reading = false;
  if (!read) {
    log_error("a batch cannot read its input", {{"batch", run->job->id}, {"reason", read.error().message}});
    run->paused_until = loop_.now() + kTryFailed;
  } else {
    if (!repeats) {
      run->next = read->next;
      run->at_end = read->at_end;
    }
    for (WaitingLine& line : read->lines) run->ready.push_back(std::move(line));
  }
  run->signal.notify();
  pump();
}

net::Awaitable<void> BatchRunner::run_line(BatchRunPtr run, WaitingLine line) {
  const Place place(*this, run);
  const std::string request_id = random_id("batch_req_");
  if (!line.fault.empty()) {
    AnsweredLine answer{line.place.number, {}, request_id, 400, error_body(400, line.fault), {}};
    write_later(run, std::move(answer));
    co_return;
  }
  const std::optional<Caller> caller = frontend_.keys.caller_of(run->job->owner);
  if (!caller || run->stopping) {
    put_back(*run, std::move(line), kPauseMost);
    co_return;
  }
  LineExchange exchange(run->job->endpoint, std::move(line.line.body), request_id);
  run->running.insert(&exchange);
  net::Awaitable<void> answering = handler_(run->job->endpoint, line_caller(*caller), exchange);
  co_await loop_.guard(std::move(answering), "line of a batch");
  run->running.erase(&exchange);
  take_outcome(run, std::move(line), exchange, request_id);
}

void BatchRunner::take_outcome(BatchRunPtr run, WaitingLine line, LineExchange& exchange,
                               const std::string& request_id) {
  const int status = exchange.answered() ? exchange.answer().status : 500;
  const bool busy = status == 429 || status == 503;
  if (exchange.stopped() && (busy || status >= 500)) return put_back(*run, std::move(line), Duration::zero());
  if (line.sent && share_) share_->orders().withdraw.push_back({run->job->id, line.place.number});
  const Duration busy_for = busy ? retry_after_of(exchange.answer()) : Duration::zero();
  AnsweredLine answer{line.place.number, {}, request_id, status, exchange.take_answer_body(), {}};
  if (!exchange.answered()) answer.body = error_body(500, "the server failed to answer this request");
  take_answer(std::move(run), std::move(line), std::move(answer), busy_for, true);
}

// Its id is that of the line.
void BatchRunner::take_answer(BatchRunPtr run, WaitingLine line, AnsweredLine answer, Duration busy_for,
                              bool tries_again) {
  if (tries_again && (answer.status == 429 || answer.status == 503)) {
    run->pause = std::min(std::max(2 * run->pause, kPauseLeast), kPauseMost);
    return put_back(*run, std::move(line), std::min(std::max(run->pause, busy_for), kPauseMost));
  }
  if (tries_again && answer.status >= 500 && line.tries + 1 < kSizeLimit<"batch_attempts">) {
    ++line.tries;
    return put_back(*run, std::move(line), kTryFailed);
  }
  run->pause = Duration::zero();
  answer.custom_id = std::move(line.line.custom_id);
  write_later(std::move(run), std::move(answer));
}

void BatchRunner::put_back(BatchRun& run, WaitingLine line, Duration pause) {
  line.line = {};
  run.again.push_back(std::move(line));
  run.paused_until = std::max(run.paused_until, loop_.now() + pause);
  if (!run.stopping) store_.metrics().retries.add();
}

void BatchRunner::write_later(BatchRunPtr run, AnsweredLine line) {
  run->settle(line.number);
  if (const auto early = run->early.find(line.number); early != run->early.end()) {
    drop_result(early->second);
    run->early.erase(early);
  }
  run->unwritten.push_back(std::move(line));
  if (std::exchange(run->writing, true)) return;
  launch(write_results(std::move(run)), "batch results");
}

// What comes while results are written is written next, all of it at once.
net::Awaitable<void> BatchRunner::write_results(BatchRunPtr run) {
  while (!run->unwritten.empty()) {
    const auto lines = std::make_shared<std::vector<AnsweredLine>>(std::exchange(run->unwritten, {}));
    const TimePoint began = loop_.now();
    auto work = [folder = store_.folder(), id = run->job->id, at = run->results_bytes, lines] {
      return append_results(*folder, id, at, *lines);
    };
    const Result<std::uint64_t> written = co_await store_.run(std::move(work));
    store_.metrics().write_seconds.observe(to_seconds(loop_.now() - began));
    if (written) {
      run->write_fails = false;
      run->results_bytes += *written;
      store_.charge_results(run->job->owner, static_cast<std::int64_t>(*written));
      take_written(*run, *lines);
      run->signal.notify();
      continue;
    }
    run->unwritten.insert(run->unwritten.begin(), std::make_move_iterator(lines->begin()),
                          std::make_move_iterator(lines->end()));
    store_.metrics().write_failures.add();
    if (!std::exchange(run->write_fails, true)) {
      log_error("results of a batch could not be written; no further lines begin until they are",
                {{"batch", run->job->id}, {"reason", written.error().message}});
    }
    if (leaving_) break;
    co_await run->try_write.wait_until(loop_.now() + kTryWrite);
  }
  run->writing = false;
  run->signal.notify();
  pump();
}

void BatchRunner::take_written(BatchRun& run, const std::vector<AnsweredLine>& lines) {
  BatchMetrics& metrics = store_.metrics();
  for (const AnsweredLine& line : lines) {
    const bool good = line.status == 200;
    ++(good ? run.job->counts.completed : run.job->counts.failed);
    (good ? metrics.completed : metrics.failed).add();
    if (!line.receipt.empty()) share_->acknowledge(line.receipt, {run.job->id, line.number});
  }
  run.answered += lines.size();
  metrics.lines_waiting.add(-static_cast<std::int64_t>(lines.size()));
}

}  // namespace chasqui
