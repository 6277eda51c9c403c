// A load on a server, from the first request to the last answer. Everything happens in the thread that calls run():
// one loop, a coroutine for each client of a closed loop and each request of an open one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/ask_writer.h"
#include "bench/exchange.h"
#include "bench/goodput.h"
#include "bench/job_maker.h"
#include "bench/load_spec.h"
#include "bench/process_usage.h"
#include "bench/tally.h"
#include "bench/target.h"
#include "bench/trace.h"

namespace chasqui::bench {

struct RunConfig {
  Target target;
  AskShape shape;
  std::vector<LoadSpec> loads;
  std::vector<TraceEntry> trace;  // a group for each class in it
  std::int32_t warmup = 0;
  double health_hz = 0;
  std::int64_t pid = 0;  // of the server; 0: not watched
  Goodput goodput;
  std::uint64_t seed = 1;
  Duration timeout = seconds(300);
};

struct GroupReport {
  std::string name;
  Tally tally;
};

// What the server took while the load was on it.
struct ServerUsage {
  double cpu_s = 0;
  std::int64_t rss_most_bytes = 0;  // seen during the run
  std::int64_t rss_peak_bytes = 0;  // since the server started
  std::int64_t threads_most = 0;
};

struct RunReport {
  std::vector<GroupReport> groups;
  Tally total;
  std::uint64_t seed = 0;
  bool has_goodput = false;
  bool interrupted = false;
  Samples health;  // ms
  std::int64_t health_errors = 0;
  std::optional<ServerUsage> server;
  double own_cpu_s = 0;
};

struct Progress {
  double elapsed_s = 0;
  std::int64_t finished = 0;
  std::int64_t expected = 0;  // 0: ends by time
  std::int64_t running = 0;
  std::int64_t tokens = 0;
};

// `on_progress` may be empty; else it is called a few times each second. The error says why nothing could be sent.
// SIGINT and SIGTERM end the run with what was measured by then.
Result<RunReport> run(const RunConfig& config, const std::function<void(const Progress&)>& on_progress);

}  // namespace chasqui::bench
