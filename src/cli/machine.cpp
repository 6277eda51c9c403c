#include "cli/machine.h"

#include <algorithm>
#include <cstdio>

#include <sched.h>
#include <sys/resource.h>

#include "base/control_group.h"
#include "base/system_text.h"

namespace chasqui::cli {
namespace {

std::optional<std::uint64_t> hard_limit(decltype(RLIMIT_NOFILE) what) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_max;
}

}  // namespace

std::uint64_t Machine::usable_bytes() const { return std::min(memory_bytes, group_limit_bytes.value_or(memory_bytes)); }

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

Machine look_at_machine() {
  Machine machine;
  const std::string memory = system_text("/proc/meminfo");
  machine.memory_bytes = find_meminfo(memory, "MemTotal").value_or(0);
  machine.available_bytes = find_meminfo(memory, "MemAvailable").value_or(machine.memory_bytes);
  const ControlGroup group = look_at_control_group();
  machine.group_limit_bytes = group.limit_bytes;
  machine.group_used_bytes = group.used_bytes;
  machine.group_cores = group.cores;
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
