#include "net/net_metrics.h"

#include <algorithm>

namespace chasqui::net {

void NetMetrics::count_response(int status) {
  responses[static_cast<std::size_t>(std::clamp(status / 100, 1, 5) - 1)].add();
}

void NetMetrics::count_page_refused(int status) {
  (status == 421 ? pages_host : status == 415 ? pages_type : pages_origin).add();
}

}  // namespace chasqui::net
