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
// … and an empty message 80 microseconds in the template, an empty text to embed 14.
constexpr std::size_t kObjectBytes = 80;
constexpr std::size_t kElementBytes = 14;
// A number of an answer takes about a tenth of a microsecond, and ten bytes.
constexpr std::size_t kLongAnswer = 512 * 1024;

// The fields of all dialects that hold a language of rules, or lead to it, with the quote that ends them.
constexpr std::array<std::string_view, 6> kRules = {"grammar\"", "schema\"", "json_schema\"",
                                                    "tools\"",   "format\"", "functions\""};

// `rest` goes on after a backslash: with a letter or an underscore, as such a name may have it. A client that escapes
// what is not ASCII writes none of these.
bool is_escaped_letter(std::string_view rest) {
  if (!rest.starts_with("u00")) return false;
  const std::string_view code = rest.substr(3, 2);
  return code.starts_with('6') || code.starts_with('7') || code == "5f" || code == "5F";
}

// What a body costs to read, as bytes of text; kLongBody or more where it names rules.
std::size_t cost_of(std::string_view body) {
  std::size_t cost = body.size();
  for (std::size_t at = 0; at < body.size(); ++at) {
    const char c = body[at];
    if (c == '{') cost += kObjectBytes;
    if (c == ',') cost += kElementBytes;
    if (c != '"' && c != '\\') continue;
    const std::string_view rest = body.substr(at + 1);
    const bool names_rules = c == '\\' ? is_escaped_letter(rest)
                                       : std::ranges::any_of(kRules, [&](auto rule) { return rest.starts_with(rule); });
    if (names_rules) return kLongBody;
  }
  return cost;
}

}  // namespace

Duration reading_can_wait(std::string_view body) {
  static_assert(microseconds(kWaitMicrosecondsPerByte * kLongBody) == net::OffloadPool::kLong);
  return reading_can_wait(body.size() < kLongBody ? cost_of(body) : body.size());
}

Duration reading_can_wait(std::size_t bytes) {
  if (bytes >= kLongBody) return net::OffloadPool::kLong;
  return microseconds(kWaitMicrosecondsPerByte * bytes);
}

Duration writing_can_wait(std::size_t bytes) {
  return bytes >= kLongAnswer ? net::OffloadPool::kLong : Duration::zero();
}

}  // namespace chasqui
