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
constexpr std::array<std::string_view, 6> kRules = {"grammar\"", "schema\"", "json_schema\"",
                                                    "tools\"",   "format\"", "functions\""};

// `rest` goes on after a backslash: with a letter or an underscore, as such a name may have it. A client that escapes
// what is not ASCII writes none of these.
bool is_escaped_letter(std::string_view rest) {
  if (!rest.starts_with("u00")) return false;
  const std::string_view code = rest.substr(3, 2);
  return code.starts_with('6') || code.starts_with('7') || code == "5f" || code == "5F";
}

bool names_rules(std::string_view body) {
  for (std::size_t at = body.find_first_of("\"\\"); at != body.npos; at = body.find_first_of("\"\\", at + 1)) {
    const std::string_view rest = body.substr(at + 1);
    if (body[at] == '\\' && is_escaped_letter(rest)) return true;
    if (body[at] == '"' && std::ranges::any_of(kRules, [&](auto rule) { return rest.starts_with(rule); })) return true;
  }
  return false;
}

}  // namespace

Duration reading_can_wait(std::string_view body) {
  static_assert(microseconds(kWaitMicrosecondsPerByte * kLongBody) == net::OffloadPool::kLong);
  if (body.size() >= kLongBody || names_rules(body)) return net::OffloadPool::kLong;
  return microseconds(kWaitMicrosecondsPerByte * body.size());
}

}  // namespace chasqui
