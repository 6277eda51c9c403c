// One group of a load, as `--load "name=short,clients=4,max-tokens=64"` says it. A plain value, constant after the
// command line was read; its readers may rely on every limit named in parse_load's errors. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui::bench {

// A whole number, or any of low to high with the same chance.
struct Span {
  std::int32_t low = 0;
  std::int32_t high = 0;
};

// `weight` cards of `tokens` in a deck that is dealt to the end before it is shuffled again.
struct Share {
  Span tokens;
  std::int32_t weight = 1;
};

struct LoadSpec {
  std::string name;
  std::int32_t clients = 0;  // closed loop; exactly one of clients and rate is set
  double rate = 0;           // open loop: requests per second, Poisson
  std::optional<std::int64_t> requests;
  std::optional<double> duration_s;
  Span prompt_words{24, 24};
  std::int32_t shared_prefix_words = 0;
  std::vector<Share> max_tokens = {{{64, 64}, 1}};
  std::string priority;  // empty: not sent
  std::string key;
  bool stream = true;
  double start_s = 0;
  double abandon = 0;  // probability
  bool retry = false;
  double think_s = 0;
};

// `number` names the group when the text does not. Without requests and duration, 100 requests are sent.
Result<LoadSpec> parse_load(std::string_view text, std::size_t number);

// "interactive", "standard" or "background".
bool is_priority(std::string_view word);

}  // namespace chasqui::bench
