// Limits by name: code takes its defaults from the one table (base/limit_table.h), and a name that is not there does
// not compile. docs/limits.md, `chasqui config --limits` and /props are made of it. Constant; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/clock.h"
#include "base/limit_table.h"

namespace chasqui {

namespace limits_detail {

template <std::size_t N>
struct Name {
  constexpr Name(const char (&name)[N]) { std::copy_n(name, N, text); }  // implicit, so that a literal is a name
  constexpr bool is(std::string_view other) const { return other == std::string_view(text, N - 1); }
  char text[N] = {};
};

template <Name name>
constexpr const Limit& find() {
  constexpr auto same = [](const Limit& limit) { return name.is(limit.name); };
  constexpr const Limit* found = std::find_if(std::begin(kTable), std::end(kTable), same);
  static_assert(found != std::end(kTable), "the table of limits has no such name");
  return *found;
}

}  // namespace limits_detail

// All of them, in the order in which people read them.
inline constexpr auto& kLimits = limits_detail::kTable;

template <limits_detail::Name name>
constexpr std::int64_t kCountLimit = limits_detail::find<name>().standard;

template <limits_detail::Name name>
constexpr std::size_t kSizeLimit = static_cast<std::size_t>(kCountLimit<name>);

template <limits_detail::Name name>
constexpr Duration kTimeLimit = milliseconds(kCountLimit<name>);

}  // namespace chasqui
