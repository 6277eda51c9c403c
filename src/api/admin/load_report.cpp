#include "api/admin/load_report.h"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "api/core/node.h"
#include "api/core/served_model.h"
#include "base/ascii.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

using Figures = std::array<std::pair<std::string_view, double>, 3>;

Figures figures_of(const Node& node) {
  double waiting = 0, running = 0, used = 0, cells = 0;
  for (const ServedModel* const served : node.models.all()) {
    const Load load = served->engine.load();
    running += load.running;
    for (const std::int32_t of_class : load.waiting) waiting += of_class;
    used += static_cast<double>(served->engine.cells_used());
    cells += served->engine.shape().cells;
  }
  return {{{"kv_cache_usage_perc", cells > 0 ? used / cells : 0},
           {"num_requests_waiting", waiting},
           {"num_requests_running", running}}};
}

std::string number(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.6g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

bool asks_for_load(const net::HttpRequest& request) {
  return request.header("endpoint-load-metrics-format").has_value();
}

void add_load_report(const Node& node, const net::HttpRequest& request, net::HttpHeaders& out) {
  const auto format = request.header("endpoint-load-metrics-format");
  if (!format) return;
  const bool json = equals_ignoring_case(*format, "JSON");
  if (!json && !equals_ignoring_case(*format, "TEXT")) return;
  std::string text;
  for (const auto& [name, value] : figures_of(node)) {
    if (!text.empty()) text += json ? "," : ", ";
    text += json ? '"' + std::string(name) + "\":" : "named_metrics." + std::string(name) + '=';
    text += number(value);
  }
  out.add("endpoint-load-metrics", json ? "JSON {\"named_metrics\":{" + text + "}}" : "TEXT " + text);
}

}  // namespace chasqui
