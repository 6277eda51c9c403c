// What the control group of this process, and those above it, let it have: a container's limits. Reads /sys/fs/cgroup,
// of both versions; what is not told there is left out, and outside of Linux that is everything. Plain values; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chasqui {

struct ControlGroup {
  std::optional<std::uint64_t> limit_bytes;
  // Without the pages of files, which the kernel takes back before it refuses memory: those of mapped weights, too.
  std::optional<std::uint64_t> used_bytes;
  std::optional<double> cores;
};

ControlGroup look_at_control_group(const std::string& own_groups = "/proc/self/cgroup",
                                   const std::string& root = "/sys/fs/cgroup");

// cpu.max, "150000 100000" → 1.5; nothing for "max".
std::optional<double> read_cpu_max(std::string_view text);
// A limit in bytes; nothing for "max" and for what is larger than any machine.
std::optional<std::uint64_t> read_byte_limit(std::string_view text);

}  // namespace chasqui
