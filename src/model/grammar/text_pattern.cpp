#include "model/grammar/text_pattern.h"

#include <algorithm>
#include <utility>

#include "model/grammar/utf8_ranges.h"

namespace chasqui {

TextPattern TextPattern::one_of(const std::vector<std::string_view>& texts) {
  TextPattern out;
  const std::uint32_t begin = out.add_state();
  const std::uint32_t found = out.add_state();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;  // texts that begin alike share their states
  std::vector<bool> ends(2);
  for (std::string_view text : texts) {
    std::uint32_t at = begin;
    while (!text.empty()) {
      std::uint32_t code = 0;
      text.remove_prefix(std::max<std::size_t>(read_utf8(text, code), 1));
      const auto [next, added] = known.try_emplace({at, code}, static_cast<std::uint32_t>(out.steps_.size()));
      if (added) {
        const std::uint32_t to = out.add_state();
        out.steps_[at].push_back({Step::Kind::character, to, out.add_set({{code, code}})});
        ends.push_back(false);
      }
      at = next->second;
    }
    if (!ends[at]) out.steps_[at].push_back({Step::Kind::at_end, found, 0});
    ends[at] = true;
  }
  return out;
}

std::uint32_t TextPattern::add_state() {
  steps_.emplace_back();
  return static_cast<std::uint32_t>(steps_.size() - 1);
}

std::uint32_t TextPattern::add_set(CodeSet set) {
  std::u32string key;
  for (const CodeRange& range : set) key += {static_cast<char32_t>(range.first), static_cast<char32_t>(range.last)};
  const auto [known, added] = numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(sets_.size()));
  if (added) sets_.push_back(std::move(set));
  return known->second;
}

TextPattern::States TextPattern::closure(States states, bool first, bool last) const {
  States out;
  std::vector<bool> seen(steps_.size());
  while (!states.empty()) {
    const std::uint32_t state = states.back();
    states.pop_back();
    if (seen[state]) continue;
    seen[state] = true;
    if (state == kFound) return {kFound};
    out.push_back(state);
    for (const Step& step : steps_[state]) {
      const bool open = step.kind == Step::Kind::nothing || (first && step.kind == Step::Kind::at_begin) ||
                        (last && step.kind == Step::Kind::at_end);
      if (open) states.push_back(step.to);
    }
  }
  std::ranges::sort(out);
  return out;
}

bool TextPattern::accepts(const States& states, bool first) const { return accepts_all(closure(states, first, true)); }

bool TextPattern::matches(std::string_view text) const {
  States states = begin();
  bool first = true;
  while (!text.empty() && !states.empty() && !accepts_all(states)) {
    std::uint32_t code = 0;
    const std::size_t bytes = std::max<std::size_t>(read_utf8(text, code), 1);
    text.remove_prefix(bytes);
    states = after(states, [&](std::uint32_t set) { return has_code(sets_[set], code); });
    first = false;
  }
  return accepts(states, first);
}

}  // namespace chasqui
