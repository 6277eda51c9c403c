#include "api/core/reading_time.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "net/offload.h"

namespace chasqui {
namespace {

// Measured: parsing, the template and tokenization take half a microsecond to one for each byte.
constexpr std::size_t kWaitMicrosecondsPerByte = 100;
constexpr std::size_t kLongBody = 10'000;  // which is kLong

// The fields of all dialects that hold a language of rules, or lead to it, with the quote that ends them.
constexpr std::array<std::string_view, 9> kRules = {"grammar\"",    "schema\"",       "json_schema\"",
                                                    "tools\"",      "format\"",       "functions\"",
                                                    "parameters\"", "input_schema\"", "pattern\""};

// A letter or an underscore of such a name, written as an escape. A client that escapes what is not ASCII writes none
// of these.
bool has_escaped_letter(std::string_view body) {
  constexpr std::string_view kEscape = "\\u00";
  for (std::size_t at = body.find(kEscape); at != body.npos; at = body.find(kEscape, at + 1)) {
    const std::string_view code = body.substr(at + kEscape.size(), 2);
    if (code.starts_with('6') || code.starts_with('7') || code == "5f" || code == "5F") return true;
  }
  return false;
}

bool names_rules(std::string_view body) {
  for (std::size_t at = body.find('"'); at != body.npos; at = body.find('"', at + 1)) {
    const std::string_view name = body.substr(at + 1);
    if (std::ranges::any_of(kRules, [&](std::string_view rule) { return name.starts_with(rule); })) return true;
  }
  return false;
}

}  // namespace

Duration reading_can_wait(std::string_view body) {
  static_assert(microseconds(kWaitMicrosecondsPerByte * kLongBody) == net::OffloadPool::kLong);
  if (body.size() >= kLongBody || names_rules(body) || has_escaped_letter(body)) return net::OffloadPool::kLong;
  return microseconds(kWaitMicrosecondsPerByte * body.size());
}

}  // namespace chasqui
