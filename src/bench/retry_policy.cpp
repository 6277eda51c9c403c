#include "bench/retry_policy.h"

#include <charconv>

namespace chasqui::bench {
namespace {

std::optional<Duration> read(std::string_view text, double unit_s) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value * unit_s <= to_seconds(kRetryMost))) return std::nullopt;
  return from_seconds(value * unit_s);
}

}  // namespace

std::optional<Duration> retry_delay(std::string_view retry_after, std::string_view retry_after_ms) {
  if (const auto fine = read(retry_after_ms, 1e-3)) return fine;
  return read(retry_after, 1);
}

}  // namespace chasqui::bench
