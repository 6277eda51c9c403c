#include "api/ollama/keep_alive.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace chasqui {
namespace {

constexpr double kMostSeconds = 100.0 * 365 * 24 * 60 * 60;

struct Unit {
  std::string_view name;
  double seconds;
};

// Longer names first: "ms" is no "m".
constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"μs", 1e-6}, {"ms", 1e-3},
                           {"s", 1},     {"m", 60},    {"h", 3600}};

// Takes a number without a sign from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.seconds;
  }
  return std::nullopt;
}

}  // namespace

Duration keep_alive_of(double number) {
  const double cut = std::clamp(number, -kMostSeconds, kMostSeconds);
  return from_seconds(cut);
}

std::optional<Duration> parse_keep_alive(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double sum = 0;
  for (bool first = true; !text.empty(); first = false) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const bool plain = first && text.empty();
    const auto unit = plain ? std::optional<double>(1) : take_unit(text);
    if (!unit) return std::nullopt;
    sum += *number * *unit;
  }
  return keep_alive_of(negative ? -sum : sum);
}

}  // namespace chasqui
