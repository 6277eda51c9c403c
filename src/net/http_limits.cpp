#include "net/http_limits.h"

#include <algorithm>

#include <sys/resource.h>

#include "base/limits.h"

namespace chasqui::net {
namespace {

constexpr std::size_t kForFiles = 4096;

}  // namespace

std::size_t HttpLimits::connections_max() const {
  if (connections > 0) return connections;
  constexpr std::size_t kDefault = kSizeLimit<"connections">;
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur == RLIM_INFINITY) return kDefault;
  const std::size_t all = descriptors.rlim_cur;
  const std::size_t for_files = std::min(all / 2, kForFiles);
  return std::clamp<std::size_t>(all - for_files, 1, kDefault);
}

}  // namespace chasqui::net
