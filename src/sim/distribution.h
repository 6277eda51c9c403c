// Lengths and times that differ from request to request, read from a command line: `8` always, `4-16` evenly,
// `lognormal:200:0.8` around a median, and mixes of them, `80%16-64,20%lognormal:1500:0.5:4000`. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/random.h"

namespace chasqui {

class Distribution {
 public:
  explicit Distribution(std::int64_t always = 0) : parts_{{1, Shape::even, always, always, 0, 0}} {}

  // Errors name `field`.
  static Result<Distribution> parse(std::string_view text, const std::string& field);

  std::int64_t draw(Random& random) const;
  // Nothing drawn is above it.
  std::int64_t largest() const;

 private:
  enum class Shape { even, lognormal };
  struct Part {
    double share = 0;
    Shape shape = Shape::even;
    std::int64_t low = 0;
    std::int64_t high = 0;
    double median = 0;
    double sigma = 0;
  };

  static bool parse_part(std::string_view text, Part& part);

  std::vector<Part> parts_;  // shares sum to 1
};

}  // namespace chasqui
