#include "cli/machine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include <sched.h>
#include <sys/resource.h>

namespace chasqui::cli {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// The folder of this process's group and those above it, whose limits hold as well.
std::vector<std::string> group_folders(const std::string& controller) {
  std::vector<std::string> out;
  std::string path;
  const std::string groups = text_of("/proc/self/cgroup");
  if (const std::size_t at = groups.find("0::"); at != std::string::npos) {
    path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  }
  std::string folder = "/sys/fs/cgroup" + (path == "/" ? "" : path);
  while (folder.size() >= std::string_view("/sys/fs/cgroup").size()) {
    out.push_back(folder);
    folder.resize(folder.rfind('/'));
  }
  out.push_back("/sys/fs/cgroup/" + controller);  // the first version of them
  return out;
}

void look_at_groups(Machine& machine) {
  for (const std::string& folder : group_folders("memory")) {
    auto limit = read_byte_limit(text_of(folder + "/memory.max"));
    if (!limit) limit = read_byte_limit(text_of(folder + "/memory.limit_in_bytes"));
    if (!limit || (machine.group_limit_bytes && *machine.group_limit_bytes <= *limit)) continue;
    machine.group_limit_bytes = limit;
    machine.group_used_bytes = leading_number<std::uint64_t>(text_of(folder + "/memory.current"));
    if (!machine.group_used_bytes) {
      machine.group_used_bytes = leading_number<std::uint64_t>(text_of(folder + "/memory.usage_in_bytes"));
    }
  }
  for (const std::string& folder : group_folders("cpu")) {
    std::optional<double> cores = read_cpu_max(text_of(folder + "/cpu.max"));
    const auto quota = leading_number<std::int64_t>(text_of(folder + "/cpu.cfs_quota_us"));
    const auto period = leading_number<std::int64_t>(text_of(folder + "/cpu.cfs_period_us"));
    if (!cores && quota && period && *quota > 0 && *period > 0) {
      cores = static_cast<double>(*quota) / static_cast<double>(*period);
    }
    if (cores && (!machine.group_cores || *cores < *machine.group_cores)) machine.group_cores = cores;
  }
}

std::optional<std::uint64_t> hard_limit(decltype(RLIMIT_NOFILE) what) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_max;
}

}  // namespace

std::uint64_t Machine::free_bytes() const {
  std::uint64_t free = available_bytes;
  if (group_limit_bytes) {
    const std::uint64_t used = std::min(group_used_bytes.value_or(0), *group_limit_bytes);
    free = std::min(free, *group_limit_bytes - used);
  }
  return free;
}

std::optional<std::uint64_t> find_meminfo(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with(':')) continue;
    const auto kib = leading_number<std::uint64_t>(line.substr(name.size() + 1));
    return kib ? std::optional(*kib * 1024) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> read_cpu_max(std::string_view text) {
  const auto quota = leading_number<std::int64_t>(text);
  const std::size_t space = text.find(' ');
  if (!quota || space == std::string_view::npos) return std::nullopt;
  const auto period = leading_number<std::int64_t>(text.substr(space));
  if (!period || *period <= 0 || *quota <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::uint64_t> read_byte_limit(std::string_view text) {
  const auto bytes = leading_number<std::uint64_t>(text);
  if (!bytes || *bytes >= std::uint64_t{1} << 60) return std::nullopt;
  return bytes;
}

Machine look_at_machine() {
  Machine machine;
  const std::string memory = text_of("/proc/meminfo");
  machine.memory_bytes = find_meminfo(memory, "MemTotal").value_or(0);
  machine.available_bytes = find_meminfo(memory, "MemAvailable").value_or(machine.memory_bytes);
  look_at_groups(machine);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) machine.cores = CPU_COUNT(&set);
  machine.open_files = hard_limit(RLIMIT_NOFILE);
  machine.locked_bytes = hard_limit(RLIMIT_MEMLOCK);
  return machine;
}

std::string bytes_in_words(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto shown = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (shown >= 1024 && unit + 1 < std::size(kUnits)) {
    shown /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit > 0 && shown < 10 ? "%.1f %s" : "%.0f %s", shown, kUnits[unit]);
  return text;
}

}  // namespace chasqui::cli
