#include "model/window_layers.h"

#include <algorithm>
#include <utility>

namespace chasqui {
namespace {

// libllama's defaults for files that do not say it.
constexpr std::pair<std::string_view, std::int64_t> kOneIn[] = {
    {"gemma2", 2}, {"gemma3", 6}, {"gemma3n", 5}, {"gpt-oss", 2}, {"cohere2", 4}, {"exaone4", 4}, {"olmo2", 4},
};
// libllama makes such a cache this much longer than it has to be, at most.
constexpr std::uint64_t kRounding = 256;

}  // namespace

std::int64_t window_layers(std::string_view architecture, std::int64_t layers, std::optional<std::int64_t> every) {
  if (!every) {
    const auto known = std::ranges::find(kOneIn, architecture, [](const auto& one) { return one.first; });
    if (known == std::end(kOneIn)) return 0;
    every = known->second;
  }
  if (*every < 0 || layers <= 0) return 0;
  return *every == 0 ? layers : layers - layers / *every;
}

std::uint64_t KvSize::of(std::uint64_t cells) const {
  const std::uint64_t in_window = window_cells == 0 ? cells : std::min(cells, window_cells);
  return cells * bytes_per_cell + in_window * window_bytes_per_cell;
}

std::uint64_t KvSize::cells_in(std::uint64_t bytes) const {
  const std::uint64_t all = std::max<std::uint64_t>(1, bytes_per_cell + window_bytes_per_cell);
  if (window_cells == 0 || bytes <= window_cells * all) return bytes / all;
  return (bytes - window_cells * window_bytes_per_cell) / std::max<std::uint64_t>(1, bytes_per_cell);
}

KvSize kv_size(std::uint64_t bytes_per_cell, std::int64_t layers, std::int64_t windowed, std::int64_t window,
               std::int64_t rows) {
  if (window <= 0 || windowed <= 0 || layers <= 0) return {bytes_per_cell, 0, 0};
  const std::uint64_t part =
      bytes_per_cell / static_cast<std::uint64_t>(layers) * static_cast<std::uint64_t>(std::min(windowed, layers));
  const auto cells = static_cast<std::uint64_t>(window + rows);
  return {bytes_per_cell - part, part, (cells + kRounding - 1) / kRounding * kRounding};
}

}  // namespace chasqui
