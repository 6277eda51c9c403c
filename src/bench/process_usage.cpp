#include "bench/process_usage.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace chasqui::bench {
namespace {

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> read_whole(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

double seconds_of(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; }

}  // namespace

std::optional<double> parse_cpu_s(std::string_view stat, double ticks_per_s) {
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.substr(bracket + 1);
  // Fields 3 … 13 stand between the name and utime.
  for (int field = 3; field <= 13; ++field) {
    const std::size_t start = rest.find_first_not_of(' ');
    if (start == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(std::min(rest.find(' ', start), rest.size()));
  }
  const auto user = read_whole(rest);
  const std::size_t start = rest.find_first_not_of(' ');
  if (!user || start == std::string_view::npos) return std::nullopt;
  const auto system = read_whole(rest.substr(std::min(rest.find(' ', start), rest.size())));
  if (!system) return std::nullopt;
  return static_cast<double>(*user + *system) / ticks_per_s;
}

std::optional<std::int64_t> parse_status(std::string_view status, std::string_view name) {
  const std::size_t at = ("\n" + std::string(status)).find("\n" + std::string(name) + ":");
  if (at == std::string_view::npos) return std::nullopt;
  return read_whole(status.substr(at + name.size() + 1));
}

std::optional<ProcessUsage> read_process(std::int64_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string status = read_file(folder + "/status");
  const auto cpu = parse_cpu_s(read_file(folder + "/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)));
  if (!cpu) return std::nullopt;
  ProcessUsage usage;
  usage.cpu_s = *cpu;
  usage.rss_bytes = parse_status(status, "VmRSS").value_or(0) * 1024;
  usage.rss_peak_bytes = parse_status(status, "VmHWM").value_or(0) * 1024;
  usage.threads = parse_status(status, "Threads").value_or(0);
  return usage;
}

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace chasqui::bench
