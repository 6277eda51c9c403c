#include "bench/run.h"

#include <algorithm>
#include <csignal>
#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <sys/resource.h>

#include "bench/arrivals.h"
#include "bench/retry_policy.h"

namespace chasqui::bench {
namespace {

constexpr Duration kTick = milliseconds(250);
// After a refusal or an error a client of a closed loop takes breath, so that a server that says no at once is not
// asked a thousand times in a second.
constexpr Duration kBreath = milliseconds(100);

struct Group {
  Group(LoadSpec load, std::uint64_t seed) : spec(std::move(load)), jobs(spec, seed), seed_of_arrivals(seed) {}

  // Takes the place of one more request; false when there are no more.
  bool take_turn(TimePoint when, TimePoint begin) {
    if (spec.requests && started >= *spec.requests) return false;
    if (spec.duration_s && when >= begin + from_seconds(spec.start_s + *spec.duration_s)) return false;
    ++started;
    return true;
  }

  LoadSpec spec;
  JobMaker jobs;
  std::uint64_t seed_of_arrivals;
  std::vector<TraceEntry> entries;  // instead of clients or a rate
  std::int64_t started = 0;
  Tally tally;
};

class Run {
 public:
  Run(const RunConfig& config, const std::function<void(const Progress&)>& on_progress)
      : config_(config), on_progress_(on_progress), writer_(config.target, config.shape), context_(1) {
    make_groups();
  }

  Result<RunReport> run();

 private:
  net::Awaitable<void> conduct();
  net::Awaitable<void> client(Group* group);
  net::Awaitable<void> open_loop(Group* group);
  net::Awaitable<void> replay(Group* group);
  net::Awaitable<void> request(Group* group, Job job, TimePoint intended);
  net::Awaitable<void> health_probes();
  net::Awaitable<void> ticks();
  net::Awaitable<void> wait_until(TimePoint when);

  void make_groups();
  // Starts a coroutine that is part of the load: the run ends when all of them have ended.
  void start(net::Awaitable<void> coroutine);
  // Starts one that accompanies the load.
  void accompany(net::Awaitable<void> coroutine);
  ConnectionPtr take_connection();
  void give_back(ConnectionPtr connection);
  void watch_server();
  void show_progress();
  RunReport report();

  const RunConfig& config_;
  const std::function<void(const Progress&)>& on_progress_;
  const AskWriter writer_;
  RealClock clock_;
  std::vector<std::unique_ptr<Group>> groups_;
  Endpoint endpoint_;
  TimePoint begin_{};
  std::int64_t live_ = 0;
  std::int64_t running_ = 0;  // requests
  RunReport report_;
  double own_cpu_before_ = 0, server_cpu_before_ = 0;
  // Last, so that coroutines that are still waiting when the run is interrupted go before what they use.
  asio::io_context context_;
  std::vector<ConnectionPtr> idle_;
};

void Run::make_groups() {
  for (const LoadSpec& spec : config_.loads) groups_.push_back(std::make_unique<Group>(spec, config_.seed));
  std::map<std::string, Group*> classes;
  for (const TraceEntry& entry : config_.trace) {
    Group*& group = classes[entry.priority];
    if (group == nullptr) {
      LoadSpec spec;
      spec.name = entry.priority.empty() ? "trace" : "trace-" + entry.priority;
      groups_.push_back(std::make_unique<Group>(spec, config_.seed));
      group = groups_.back().get();
    }
    group->entries.push_back(entry);
    group->spec.requests = static_cast<std::int64_t>(group->entries.size());
  }
}

void Run::start(net::Awaitable<void> coroutine) {
  ++live_;
  asio::co_spawn(context_, std::move(coroutine), [this](const std::exception_ptr& lost) {
    CHECK(!lost, "a coroutine of the load threw");
    if (--live_ == 0) context_.stop();
  });
}

void Run::accompany(net::Awaitable<void> coroutine) {
  asio::co_spawn(context_, std::move(coroutine),
                 [](const std::exception_ptr& lost) { CHECK(!lost, "a coroutine beside the load threw"); });
}

ConnectionPtr Run::take_connection() {
  if (idle_.empty()) return std::make_shared<Connection>(context_.get_executor(), endpoint_);
  ConnectionPtr connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void Run::give_back(ConnectionPtr connection) {
  if (connection->is_open()) idle_.push_back(std::move(connection));
}

net::Awaitable<void> Run::wait_until(TimePoint when) {
  net::Timer timer(context_.get_executor());
  timer.expires_at(when);
  co_await timer.async_wait(net::kAwait);
}

net::Awaitable<void> Run::conduct() {
  Group warm(groups_.front()->spec, config_.seed + 1);
  warm.spec.retry = false;
  for (std::int32_t i = 0; i < config_.warmup; ++i) {
    Job job = warm.jobs.next();
    co_await request(&warm, std::move(job), clock_.now());
  }
  begin_ = clock_.now();
  own_cpu_before_ = own_cpu_s();
  if (const auto usage = read_process(config_.pid); usage && config_.pid > 0) {
    server_cpu_before_ = usage->cpu_s;
    report_.server.emplace();
    watch_server();
  }
  for (const auto& group : groups_) {
    if (!group->entries.empty()) {
      start(replay(group.get()));
    } else if (group->spec.rate > 0) {
      start(open_loop(group.get()));
    } else {
      for (std::int32_t i = 0; i < group->spec.clients; ++i) start(client(group.get()));
    }
  }
  if (config_.health_hz > 0) accompany(health_probes());
  accompany(ticks());
}

net::Awaitable<void> Run::client(Group* group) {
  TimePoint next = begin_ + from_seconds(group->spec.start_s);
  co_await wait_until(next);
  while (group->take_turn(next, begin_)) {
    Job job = group->jobs.next();
    const std::int64_t ok_before = group->tally.ok + group->tally.abandoned;
    co_await request(group, std::move(job), next);
    const bool served = group->tally.ok + group->tally.abandoned > ok_before;
    next = clock_.now() + std::max(from_seconds(group->spec.think_s), served ? Duration{} : kBreath);
    if (next > clock_.now()) {
      co_await wait_until(next);
    }
  }
}

net::Awaitable<void> Run::open_loop(Group* group) {
  Arrivals arrivals(group->spec.rate, group->seed_of_arrivals, group->spec.name);
  for (;;) {
    const TimePoint when = begin_ + from_seconds(group->spec.start_s + arrivals.next());
    if (!group->take_turn(when, begin_)) break;
    co_await wait_until(when);
    start(request(group, group->jobs.next(), when));
  }
}

net::Awaitable<void> Run::replay(Group* group) {
  for (const TraceEntry& entry : group->entries) {
    const TimePoint when = begin_ + from_seconds(entry.at_s);
    co_await wait_until(when);
    ++group->started;
    start(request(group, group->jobs.from_trace(entry), when));
  }
}

net::Awaitable<void> Run::request(Group* group, Job job, TimePoint intended) {
  ++running_;
  Ask ask;
  ask.bytes = writer_.request(job);
  ask.stream = job.stream;
  ask.abandon_after = job.abandon_after;
  ask.intended = intended;
  group->tally.late.add(to_milliseconds(clock_.now() - intended));
  for (int tries = 1;; ++tries) {
    ask.deadline = clock_.now() + config_.timeout;
    ConnectionPtr connection = take_connection();
    Exchange exchange(*connection, ask, clock_);
    co_await exchange.run();
    const TimePoint end = clock_.now();
    give_back(std::move(connection));
    const bool refused = exchange.outcome().ending == Ending::refused;
    const std::optional<Duration> delay = exchange.retry_delay();
    if (refused) group->tally.add_refusal(exchange.outcome().status, delay.has_value());
    if (refused && group->spec.retry && delay && tries <= kRetriesMost) {
      co_await wait_until(end + *delay);
      continue;
    }
    group->tally.add(exchange.outcome(), tries, config_.goodput, intended, end);
    break;
  }
  --running_;
}

// A probe counts from the time it was due, also when the one before it took longer than that.
net::Awaitable<void> Run::health_probes() {
  ConnectionPtr connection = std::make_shared<Connection>(context_.get_executor(), endpoint_);
  Ask ask;
  ask.bytes = writer_.health_probe();
  ask.stream = false;
  const Duration interval = from_seconds(1 / config_.health_hz);
  for (ask.intended = begin_;; ask.intended += interval) {
    co_await wait_until(ask.intended);
    ask.deadline = clock_.now() + config_.timeout;
    Exchange exchange(*connection, ask, clock_);
    co_await exchange.run();
    if (exchange.outcome().ending == Ending::ok) {
      report_.health.add(exchange.outcome().took.e2e);
    } else {
      ++report_.health_errors;
    }
  }
}

net::Awaitable<void> Run::ticks() {
  for (TimePoint next = begin_ + kTick;; next += kTick) {
    co_await wait_until(next);
    watch_server();
    show_progress();
  }
}

void Run::watch_server() {
  if (!report_.server) return;
  const auto usage = read_process(config_.pid);
  if (!usage) return;
  ServerUsage& server = *report_.server;
  server.cpu_s = usage->cpu_s - server_cpu_before_;
  server.rss_most_bytes = std::max(server.rss_most_bytes, usage->rss_bytes);
  server.rss_peak_bytes = std::max(server.rss_peak_bytes, usage->rss_peak_bytes);
  server.threads_most = std::max(server.threads_most, usage->threads);
}

void Run::show_progress() {
  if (!on_progress_) return;
  Progress progress;
  progress.elapsed_s = to_seconds(clock_.now() - begin_);
  progress.running = running_;
  bool by_count = true;
  for (const auto& group : groups_) {
    progress.finished += group->tally.requests;
    progress.tokens += group->tally.tokens;
    if (group->spec.requests) {
      progress.expected += *group->spec.requests;
    } else {
      by_count = false;
    }
  }
  if (!by_count) progress.expected = 0;
  on_progress_(progress);
}

RunReport Run::report() {
  watch_server();
  report_.own_cpu_s = own_cpu_s() - own_cpu_before_;
  report_.seed = config_.seed;
  report_.has_goodput = config_.goodput.any();
  for (const auto& group : groups_) {
    report_.total.add(group->tally);
    report_.groups.push_back({group->spec.name, std::move(group->tally)});
  }
  return std::move(report_);
}

Result<RunReport> Run::run() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const auto endpoint = resolve(config_.target, context_);
  if (!endpoint) return endpoint.error();
  endpoint_ = *endpoint;
  if (config_.pid > 0 && !read_process(config_.pid)) {
    return invalid_field("pid", "--pid: there is no process " + std::to_string(config_.pid) + " in /proc");
  }
  asio::signal_set signals(context_, SIGINT, SIGTERM);
  signals.async_wait([this](net::SystemError error, int) {
    if (error) return;
    report_.interrupted = true;
    context_.stop();
  });
  start(conduct());
  context_.run();
  return report();
}

}  // namespace

Result<RunReport> run(const RunConfig& config, const std::function<void(const Progress&)>& on_progress) {
  return Run(config, on_progress).run();
}

}  // namespace chasqui::bench
