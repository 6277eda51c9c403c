#include "core/media.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/mixed_bits.h"

namespace chasqui {
namespace {

TokenCount end_of(const MediaUnit& unit) { return unit.begin + unit.positions; }

}  // namespace

Token media_token(const Checksum& identity, TokenCount place) {
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof identity);
  std::memcpy(halves, identity.data(), sizeof halves);
  const auto step = static_cast<std::uint64_t>(place) + 1;
  const std::uint64_t hash = mixed_bits(halves[0] + mixed_bits(halves[1] + step * 0x9E3779B97F4A7C15u));
  constexpr std::uint64_t kNumbers = std::uint64_t{std::numeric_limits<Token>::max()} - 1;
  return kNoToken - 1 - static_cast<Token>(hash % kNumbers);
}

const MediaUnit* unit_from(const MediaUnitsPtr& units, TokenCount position) {
  if (!units) return nullptr;
  const auto found = std::ranges::upper_bound(*units, position, {}, end_of);
  return found != units->end() ? &*found : nullptr;
}

const MediaUnit* unit_at(const MediaUnitsPtr& units, TokenCount position) {
  const MediaUnit* const unit = unit_from(units, position);
  return unit != nullptr && unit->begin <= position ? unit : nullptr;
}

TokenCount whole_units(const MediaUnitsPtr& units, TokenCount tokens) {
  const MediaUnit* const unit = unit_at(units, tokens);
  return unit != nullptr ? unit->begin : tokens;
}

bool place_units(MediaUnits& units, std::span<const Token> prompt) {
  const auto in_unit = [](Token token) { return token < kNoToken; };
  auto at = std::ranges::find_if(prompt, in_unit);
  for (MediaUnit& unit : units) {
    if (unit.positions > prompt.end() - at) return false;
    unit.begin = static_cast<TokenCount>(at - prompt.begin());
    for (TokenCount place = 0; place < unit.positions; ++place, ++at) {
      if (*at != media_token(unit.identity, place)) return false;
    }
    at = std::find_if(at, prompt.end(), in_unit);
  }
  return at == prompt.end();
}

bool fits_prompt(const MediaUnitsPtr& units, std::span<const Token> prompt, TokenCount vocabulary) {
  const auto known = [vocabulary](Token token) { return token >= 0 && token < vocabulary; };
  const auto tokens = static_cast<TokenCount>(prompt.size());
  TokenCount at = 0;
  if (units) {
    for (const MediaUnit& unit : *units) {
      if (unit.begin < at || unit.positions < 1 || unit.begin > tokens - unit.positions) return false;
      if (!std::all_of(prompt.begin() + at, prompt.begin() + unit.begin, known)) return false;
      for (at = unit.begin; at < end_of(unit); ++at) {
        if (prompt[static_cast<std::size_t>(at)] != media_token(unit.identity, at - unit.begin)) return false;
      }
    }
  }
  return std::all_of(prompt.begin() + at, prompt.end(), known);
}

}  // namespace chasqui
