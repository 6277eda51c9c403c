#include "base/control_group.h"

#include <algorithm>
#include <vector>

#include "base/system_text.h"

namespace chasqui {
namespace {

// Of lines "name 123"; 0: there is none.
std::uint64_t named_number(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(' ')) {
      return leading_number<std::uint64_t>(line.substr(name.size())).value_or(0);
    }
  }
  return 0;
}

// The folder of the process's group and those above it, whose limits hold as well.
std::vector<std::string> folders(const std::string& own_groups, const std::string& root, const char* controller) {
  std::vector<std::string> out;
  std::string path;
  const std::string groups = system_text(own_groups);
  if (const std::size_t at = groups.find("0::"); at != std::string::npos) {
    path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  }
  std::string folder = root + (path == "/" ? "" : path);
  while (folder.size() >= root.size()) {
    out.push_back(folder);
    folder.resize(folder.rfind('/'));
  }
  out.push_back(root + "/" + controller);  // the first version of them
  return out;
}

std::optional<std::uint64_t> used_in(const std::string& folder) {
  auto used = leading_number<std::uint64_t>(system_text(folder + "/memory.current"));
  const bool second = used.has_value();
  if (!second) used = leading_number<std::uint64_t>(system_text(folder + "/memory.usage_in_bytes"));
  if (!used) return std::nullopt;
  const std::string parts = system_text(folder + "/memory.stat");
  const std::string all = second ? "" : "total_";  // of the groups below, too
  const std::uint64_t files = named_number(parts, all + "active_file") + named_number(parts, all + "inactive_file");
  return *used - std::min(files, *used);
}

}  // namespace

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

ControlGroup look_at_control_group(const std::string& own_groups, const std::string& root) {
  ControlGroup out;
  for (const std::string& folder : folders(own_groups, root, "memory")) {
    auto limit = read_byte_limit(system_text(folder + "/memory.max"));
    if (!limit) limit = read_byte_limit(system_text(folder + "/memory.limit_in_bytes"));
    if (!limit || (out.limit_bytes && *out.limit_bytes <= *limit)) continue;
    out.limit_bytes = limit;
    out.used_bytes = used_in(folder);
  }
  for (const std::string& folder : folders(own_groups, root, "cpu")) {
    std::optional<double> cores = read_cpu_max(system_text(folder + "/cpu.max"));
    const auto quota = leading_number<std::int64_t>(system_text(folder + "/cpu.cfs_quota_us"));
    const auto period = leading_number<std::int64_t>(system_text(folder + "/cpu.cfs_period_us"));
    if (!cores && quota && period && *quota > 0 && *period > 0) {
      cores = static_cast<double>(*quota) / static_cast<double>(*period);
    }
    if (cores && (!out.cores || *cores < *out.cores)) out.cores = cores;
  }
  return out;
}

}  // namespace chasqui
