#include "model/grammar/utf8_ranges.h"

#include <algorithm>
#include <map>

#include "model/grammar/gbnf.h"

namespace chasqui {
namespace {

struct ByteRange {
  std::uint8_t low = 0;
  std::uint8_t high = 0;
  auto operator<=>(const ByteRange&) const = default;
};
using ByteRanges = std::vector<ByteRange>;

// Splits until all characters of a piece have equally many bytes, and every byte of them a range of its own.
void split(std::uint32_t first, std::uint32_t last, std::vector<ByteRanges>& out) {
  for (const std::uint32_t longest : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (first <= longest && longest < last) {
      split(first, longest, out);
      return split(longest + 1, last, out);
    }
  }
  for (std::uint32_t bits = last <= 0x7F ? 0 : last <= 0x7FF ? 6 : last <= 0xFFFF ? 12 : 18; bits > 0; bits -= 6) {
    const std::uint32_t low_bits = (1u << bits) - 1;
    if ((first & ~low_bits) == (last & ~low_bits)) continue;
    if ((first & low_bits) != 0) {
      split(first, first | low_bits, out);
      return split((first | low_bits) + 1, last, out);
    }
    if ((last & low_bits) != low_bits) {
      split(first, (last & ~low_bits) - 1, out);
      return split(last & ~low_bits, last, out);
    }
  }
  std::string low;
  std::string high;
  append_utf8(low, first);
  append_utf8(high, last);
  ByteRanges bytes;
  for (std::size_t i = 0; i < low.size(); ++i) {
    bytes.push_back({static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i])});
  }
  out.push_back(std::move(bytes));
}

}  // namespace

bool is_character(std::uint32_t code) { return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF); }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto add = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

std::size_t read_utf8(std::string_view text, std::uint32_t& code) {
  if (text.empty()) return 0;
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  code = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3Fu);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  return code >= least && is_character(code) ? bytes : 0;
}

CharacterBytes bytes_of_characters(const std::vector<CodeRange>& ranges) {
  std::vector<ByteRanges> pieces;
  for (const CodeRange& range : ranges) split(range.first, range.last, pieces);
  CharacterBytes out;
  // Pieces that end alike share the states of their ends.
  std::map<ByteRanges, std::uint32_t> states{{{}, 1}};
  const auto state_of = [&](const ByteRanges& rest) {
    const auto [found, added] = states.try_emplace(rest, out.states);
    if (added) ++out.states;
    return std::pair{found->second, added};
  };
  for (const ByteRanges& piece : pieces) {
    std::uint32_t from = 0;
    bool fresh = true;  // a state that was there before has its steps already
    for (std::size_t i = 0; i < piece.size() && fresh; ++i) {
      const auto [to, added] = state_of({piece.begin() + static_cast<std::ptrdiff_t>(i) + 1, piece.end()});
      out.steps.push_back({from, to, piece[i].low, piece[i].high});
      from = to;
      fresh = added;
    }
  }
  return out;
}

}  // namespace chasqui
