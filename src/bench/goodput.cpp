#include "bench/goodput.h"

#include <charconv>

namespace chasqui::bench {
namespace {

bool within(double value, const std::optional<double>& limit) { return !limit || value <= *limit; }

std::optional<double>* limit_named(std::string_view name, Goodput& goodput) {
  if (name == "ttft") return &goodput.ttft;
  if (name == "itl") return &goodput.itl;
  if (name == "tpot") return &goodput.tpot;
  if (name == "e2e") return &goodput.e2e;
  return nullptr;
}

}  // namespace

bool Goodput::met_by(const Latencies& took) const {
  return within(took.ttft, ttft) && within(took.worst_gap, itl) && within(took.tpot, tpot) && within(took.e2e, e2e);
}

Result<Goodput> parse_goodput(std::string_view text) {
  Goodput goodput;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = part.find(':');
    std::optional<double>* limit = limit_named(part.substr(0, colon), goodput);
    double value = 0;
    const std::string_view number = colon == std::string_view::npos ? "" : part.substr(colon + 1);
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool whole = error == std::errc() && stop == number.data() + number.size() && value > 0;
    if (limit == nullptr || !whole) {
      return invalid_field("goodput", "--goodput: \"" + std::string(part) +
                                          "\" must be ttft, itl, tpot or e2e with milliseconds, such as ttft:1000");
    }
    *limit = value;
  }
  return goodput;
}

}  // namespace chasqui::bench
