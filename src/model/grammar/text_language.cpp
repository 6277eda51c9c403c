#include "model/grammar/text_language.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kLanguageStatesMax = kSizeLimit<"pattern_states">;
constexpr std::uint64_t kLanguageWorkMax = kCountLimit<"pattern_work">;

constexpr std::size_t kNamedFrom = 64;
constexpr std::size_t kNamedBytes = 32;

struct KeyHash {
  std::size_t operator()(const std::vector<std::uint32_t>& key) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const std::uint32_t value : key) hash = (hash ^ value) * 0xFF51AFD7ED558CCDu, hash ^= hash >> 29;
    return hash;
  }
};

class LanguageWriter {
 public:
  LanguageWriter(const TextLanguage& language, RuleText& rules) : language_(language), rules_(rules) {
    for (const auto& pattern : language.must) patterns_.push_back(pattern.get());
    for (const auto& pattern : language.must_not) patterns_.push_back(pattern.get());
    counts_to_ = language.most == GbnfPart::kNoLimit ? language.least : language.most;
  }

  Written write(std::string& out) {
    find_classes();
    State first;
    for (const TextPattern* pattern : patterns_) first.parts.push_back(pattern->begin());
    id_of(std::move(first));
    for (std::size_t i = 0; i < states_.size() && !too_large_; ++i) expand(i);
    if (too_large_) return Written::too_large;
    mark_live();
    if (!live_[0]) return Written::nothing_fits;
    out = write_states();
    return rules_.too_large() ? Written::too_large : Written::yes;
  }

 private:
  struct State {
    std::vector<TextPattern::States> parts;  // of patterns_
    std::uint32_t count = 0;                 // of characters so far, no further than counts_to_
  };
  struct Way {
    std::size_t codes = 0;  // index into classes_, or behind them for joined ones
    std::uint32_t to = 0;
  };

  bool work(std::uint64_t steps) {
    work_ += steps;
    if (work_ > kLanguageWorkMax) too_large_ = true;
    return !too_large_;
  }

  // Characters that no pattern tells apart are one class. has_[class][pattern][set]
  void find_classes() {
    std::vector<std::uint32_t> cuts{0};
    for (const TextPattern* pattern : patterns_) {
      for (const CodeSet& set : pattern->sets()) {
        for (const CodeRange& range : set) {
          cuts.push_back(range.first);
          cuts.push_back(range.last + 1);
        }
      }
    }
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::map<std::vector<bool>, CodeSet> found;
    for (std::size_t i = 0; i < cuts.size() && cuts[i] <= kLastCode; ++i) {
      std::vector<bool> in;
      for (const TextPattern* pattern : patterns_) {
        for (const CodeSet& set : pattern->sets()) in.push_back(has_code(set, cuts[i]));
      }
      if (!work(in.size() + 1)) return;
      found[std::move(in)].push_back({cuts[i], i + 1 < cuts.size() ? cuts[i + 1] - 1 : kLastCode});
    }
    for (auto& [in, codes] : found) {
      CodeSet set = code_set(std::move(codes));
      if (json_string_class(set).empty()) continue;
      classes_.push_back(std::move(set));
      has_.push_back(in);
    }
  }

  std::uint32_t id_of(State state) {
    std::vector<std::uint32_t> key{state.count};
    for (const TextPattern::States& part : state.parts) {
      key.push_back(static_cast<std::uint32_t>(part.size()));
      key.insert(key.end(), part.begin(), part.end());
    }
    // The first state is not met again: anchors tell it from those that have the same parts.
    key.push_back(states_.empty() ? 1 : 0);
    const auto [known, added] = ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(states_.size()));
    if (!added) return known->second;
    accepts_.push_back(accepts(state, states_.empty()));
    states_.push_back(std::move(state));
    ways_.emplace_back();
    if (states_.size() > kLanguageStatesMax) too_large_ = true;
    return known->second;
  }

  bool accepts(const State& state, bool first) const {
    if (state.count < language_.least) return false;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      const bool wanted = i < language_.must.size();
      if (patterns_[i]->accepts(state.parts[i], first) != wanted) return false;
    }
    return true;
  }

  void expand(std::size_t index) {
    if (language_.most != GbnfPart::kNoLimit && states_[index].count >= language_.most) return;
    std::map<std::uint32_t, CodeSet> targets;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      State next;
      next.count = std::min(states_[index].count + 1, counts_to_);
      std::size_t first_set = 0;
      bool dead = false;
      for (std::size_t k = 0; k < patterns_.size() && !dead; ++k) {
        const TextPattern& pattern = *patterns_[k];
        const TextPattern::States& from = states_[index].parts[k];
        next.parts.push_back(pattern.after(from, [&](std::uint32_t set) { return has_[i][first_set + set]; }));
        first_set += pattern.sets().size();
        if (!work(from.size() + next.parts.back().size() + pattern.states() / 64 + 1)) return;
        const bool wanted = k < language_.must.size();
        dead = wanted ? next.parts.back().empty() : pattern.accepts_all(next.parts.back());
      }
      if (dead) continue;
      CodeSet& codes = targets[id_of(std::move(next))];
      codes.insert(codes.end(), classes_[i].begin(), classes_[i].end());
    }
    for (auto& [to, codes] : targets) {
      ways_[index].push_back({made_classes_.size(), to});
      made_classes_.push_back(json_string_class(code_set(std::move(codes))));
    }
  }

  // Those from which an end can be reached.
  void mark_live() {
    std::vector<std::vector<std::uint32_t>> back(states_.size());
    live_.assign(states_.size(), false);
    std::vector<std::uint32_t> todo;
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      for (const Way& way : ways_[i]) back[way.to].push_back(i);
      if (accepts_[i]) {
        live_[i] = true;
        todo.push_back(i);
      }
    }
    while (!todo.empty()) {
      const std::uint32_t state = todo.back();
      todo.pop_back();
      for (const std::uint32_t from : back[state]) {
        if (live_[from]) continue;
        live_[from] = true;
        todo.push_back(from);
      }
    }
  }

  // Where a state has one way only, the next one is written behind it.
  std::string write_states() {
    std::vector<std::uint32_t> ways_in(states_.size());
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      if (!live_[i]) continue;
      std::erase_if(ways_[i], [&](const Way& way) { return !live_[way.to]; });
      for (const Way& way : ways_[i]) ++ways_in[way.to];
    }
    ++ways_in[0];
    const auto inlined = [&](std::uint32_t state) {
      return ways_in[state] == 1 && !accepts_[state] && ways_[state].size() == 1 && state != 0;
    };
    std::vector<std::string> names(states_.size());
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      if (live_[i] && !inlined(i)) names[i] = rules_.reserve();
    }
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      if (names[i].empty()) continue;
      std::string body = accepts_[i] ? "\"\"" : "";
      for (const Way& first : ways_[i]) {
        if (!body.empty()) body += " | ";
        Way way = first;
        body += term(way.codes);
        for (; names[way.to].empty(); body += ' ' + term(way.codes)) way = ways_[way.to].front();
        body += ' ' + names[way.to];
      }
      rules_.define(names[i], body);
      if (rules_.too_large()) break;
    }
    return names[0];
  }

  std::string term(std::size_t codes) {
    const std::string& written = made_classes_[codes];
    // Long ones are worth a rule where many states have them.
    if (states_.size() > kNamedFrom && written.size() > kNamedBytes) return rules_.rule(written);
    return written.find(" | ") == std::string::npos ? written : '(' + written + ')';
  }

  const TextLanguage& language_;
  RuleText& rules_;
  std::vector<const TextPattern*> patterns_;
  std::uint32_t counts_to_ = 0;
  std::vector<CodeSet> classes_;
  std::vector<std::vector<bool>> has_;
  std::vector<State> states_;
  std::vector<std::vector<Way>> ways_;
  std::vector<bool> accepts_;
  std::vector<bool> live_;
  std::vector<std::string> made_classes_;
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, KeyHash> ids_;
  std::uint64_t work_ = 0;
  bool too_large_ = false;
};

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

bool TextLanguage::has(std::string_view text) const {
  const std::size_t length = characters_of(text);
  if (length < least || (most != GbnfPart::kNoLimit && length > most)) return false;
  return std::ranges::all_of(must, [&](const auto& pattern) { return pattern->matches(text); }) &&
         std::ranges::none_of(must_not, [&](const auto& pattern) { return pattern->matches(text); });
}

std::string any_json_character(RuleText& rules) {
  return rules.rule(
      "[^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" ([0-9a-ce-fA-CE-F] [0-9a-fA-F]{3} | "
      "[dD] [0-7] [0-9a-fA-F]{2}))");
}

Written write_text_language(const TextLanguage& language, RuleText& rules, std::string& out) {
  if (language.most < language.least) return Written::nothing_fits;
  if (language.must.empty() && language.must_not.empty()) {
    out = gbnf_times(any_json_character(rules), language.least, language.most);
    return Written::yes;
  }
  return LanguageWriter(language, rules).write(out);
}

}  // namespace chasqui
