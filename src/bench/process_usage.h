// What a process took from the machine, read from /proc (Linux), and what this one did. Pure functions over the
// system's counters; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace chasqui::bench {

struct ProcessUsage {
  double cpu_s = 0;  // user and system, of all its threads
  std::int64_t rss_bytes = 0;
  std::int64_t rss_peak_bytes = 0;  // since it started
  std::int64_t threads = 0;
};

// Nothing when there is no such process, or no /proc.
std::optional<ProcessUsage> read_process(std::int64_t pid);
// User and system time of this process so far.
double own_cpu_s();

// The CPU time in the text of /proc/PID/stat, whose second field may hold spaces and brackets.
std::optional<double> parse_cpu_s(std::string_view stat, double ticks_per_s);
// The number in the line of /proc/PID/status that starts with `name`.
std::optional<std::int64_t> parse_status(std::string_view status, std::string_view name);

}  // namespace chasqui::bench
