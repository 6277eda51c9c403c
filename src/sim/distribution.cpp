#include "sim/distribution.h"

#include <algorithm>
#include <charconv>

namespace chasqui {
namespace {

constexpr std::int64_t kLargest = 1 << 30;

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// The text before `mark`, which is taken off `rest` together with it; all of `rest` when there is no mark.
std::string_view cut(std::string_view& rest, char mark) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view piece = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return piece;
}

}  // namespace

bool Distribution::parse_part(std::string_view text, Part& part) {
  part.share = 1;
  if (text.find('%') != std::string_view::npos) {
    if (!parse_number(cut(text, '%'), part.share) || !(part.share > 0)) return false;
  }
  constexpr std::string_view kLognormal = "lognormal:";
  if (text.starts_with(kLognormal)) {
    text.remove_prefix(kLognormal.size());
    part.shape = Shape::lognormal;
    part.low = 1;
    part.high = kLargest;
    if (!parse_number(cut(text, ':'), part.median) || !parse_number(cut(text, ':'), part.sigma)) return false;
    if (!text.empty() && !parse_number(text, part.high)) return false;
    return part.median >= 1 && part.median <= kLargest && part.sigma >= 0 && part.sigma <= 4 && part.high >= 1;
  }
  part.shape = Shape::even;
  const bool range = text.find('-') != std::string_view::npos;
  if (!parse_number(cut(text, '-'), part.low)) return false;
  part.high = part.low;
  if (range && !parse_number(text, part.high)) return false;
  return part.low >= 0 && part.low <= part.high && part.high <= kLargest;
}

Result<Distribution> Distribution::parse(std::string_view text, const std::string& field) {
  Distribution distribution;
  distribution.parts_.clear();
  double sum = 0;
  for (std::string_view rest = text; !rest.empty();) {
    Part& part = distribution.parts_.emplace_back();
    if (!parse_part(cut(rest, ','), part)) distribution.parts_.clear(), rest = {};
    sum += part.share;
  }
  if (distribution.parts_.empty()) {
    return invalid_field(field, field +
                                    " must be N, LOW-HIGH or lognormal:MEDIAN:SIGMA[:MAX], or several with commas, " +
                                    "each with a SHARE% before it; got '" + std::string(text) + "'");
  }
  for (Part& part : distribution.parts_) part.share /= sum;
  return distribution;
}

std::int64_t Distribution::draw(Random& random) const {
  const Part* part = &parts_.front();
  if (parts_.size() > 1) {
    double place = random.unit();
    for (const Part& each : parts_) {
      part = &each;
      if ((place -= each.share) < 0) break;
    }
  }
  if (part->shape == Shape::even) return random.between(part->low, part->high);
  const double value = std::min(random.lognormal(part->median, part->sigma), static_cast<double>(kLargest));
  return std::clamp(static_cast<std::int64_t>(value + 0.5), part->low, part->high);
}

std::int64_t Distribution::largest() const {
  return std::max_element(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.high < b.high; })
      ->high;
}

}  // namespace chasqui
