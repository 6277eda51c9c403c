#include "model/grammar/code_set.h"

#include <algorithm>

namespace chasqui {
namespace {

struct ShortEscape {
  std::uint32_t code;
  const char* written;  // as a literal of GBNF
};
constexpr ShortEscape kShortEscapes[] = {{'"', R"("\\\"")"}, {'\\', R"("\\\\")"}, {'\n', R"("\\n")"},
                                         {'\t', R"("\\t")"}, {'\r', R"("\\r")"},  {'\b', R"("\\b")"},
                                         {'\f', R"("\\f")"}};

// What may stand in a string of JSON text as it is.
const CodeSet& plain_codes() {
  static const CodeSet set = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0xD7FF}, {0xE000, kLastCode}};
  return set;
}

// As \xNN, \uNNNN or \UNNNNNNNN: a schema with patterns has thousands of them.
void put_code(std::string& out, std::uint32_t code) {
  const int digits = code < 0x80 ? 2 : code < 0x10000 ? 4 : 8;
  out += '\\';
  out += digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789ABCDEF"[code >> shift & 15];
}

}  // namespace

CodeSet code_set(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  CodeSet out;
  for (const CodeRange& range : ranges) {
    if (range.first > range.last) continue;
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

CodeSet complement_of(const CodeSet& set) {
  CodeSet out;
  std::uint32_t next = 0;
  for (const CodeRange& range : set) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) out.push_back({next, kLastCode});
  return out;
}

CodeSet common_codes(const CodeSet& a, const CodeSet& b) {
  CodeSet out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const CodeRange both{std::max(a[i].first, b[j].first), std::min(a[i].last, b[j].last)};
    if (both.first <= both.last) out.push_back(both);
    a[i].last < b[j].last ? ++i : ++j;
  }
  return out;
}

bool has_code(const CodeSet& set, std::uint32_t code) {
  const auto behind = std::ranges::upper_bound(set, code, {}, &CodeRange::first);
  return behind != set.begin() && code <= std::prev(behind)->last;
}

std::string json_string_class(const CodeSet& set) {
  std::string out;
  const CodeSet plain = common_codes(set, plain_codes());
  for (const CodeRange& range : plain) {
    put_code(out, range.first);
    if (range.last > range.first) {
      out += '-';
      put_code(out, range.last);
    }
  }
  if (!out.empty()) out = '[' + out + ']';
  for (const ShortEscape& escape : kShortEscapes) {
    if (!has_code(set, escape.code)) continue;
    if (!out.empty()) out += " | ";
    out += escape.written;
  }
  return out;
}

}  // namespace chasqui
