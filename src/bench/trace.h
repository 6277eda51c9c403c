// A load as it was recorded: JSON lines, one request each. Read once at start; plain values.
//   {"at_ms": 120, "prompt_words": 300, "max_tokens": 64, "class": "interactive", "key": "k1"}
// `prompt` may stand instead of `prompt_words`; class and key may be left out. The lines are in the order of at_ms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui::bench {

struct TraceEntry {
  double at_s = 0;
  std::string prompt;  // empty: made of prompt_words words
  std::int32_t prompt_words = 0;
  std::int32_t max_tokens = 0;
  std::string priority;  // empty: none
  std::string key;
};

// Errors name the line and what is allowed there.
Result<std::vector<TraceEntry>> parse_trace(std::string_view text);

}  // namespace chasqui::bench
