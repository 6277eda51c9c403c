#include "net/http_limits.h"

#include <algorithm>

#include <sys/resource.h>

#include "base/limits.h"

namespace chasqui::net {

std::size_t HttpLimits::connections_max() const {
  if (connections > 0) return connections;
  constexpr std::size_t kDefault = kSizeLimit<"connections">;
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur == RLIM_INFINITY) return kDefault;
  return std::clamp<std::size_t>(descriptors.rlim_cur / 2, 1, kDefault);
}

}  // namespace chasqui::net
