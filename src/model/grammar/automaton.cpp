#include "model/grammar/automaton.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "model/grammar/rule_steps.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kAutomatonStepsMax = kCountLimit<"grammar_automaton_steps">;

// States of a rule that an input leads to at the same time: sorted, those that take something and the end only.
using StateSet = std::vector<std::uint32_t>;

struct StateSetHash {
  std::size_t operator()(const StateSet& states) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const std::uint32_t state : states) hash = (hash ^ state) * 0xFF51AFD7ED558CCDu, hash ^= hash >> 29;
    return hash;
  }
};

}  // namespace

// Makes rules deterministic one after the other, which merges alternatives that begin alike. Where that would take far
// more positions than the rule has states, further sets stay apart: a walk through the automaton is in several at
// once.
class AutomatonBuilder {
 public:
  AutomatonBuilder(const Gbnf& grammar, RuleAnalysis& analysis, CompileWork& work)
      : grammar_(grammar), analysis_(analysis), work_(work) {}

  Result<GrammarAutomaton> build() {
    find_byte_classes();
    out_.rules_.resize(analysis_.rules().size());
    out_.root_ = grammar_.root;
    out_.positions_.push_back({{}, true, true});  // kEnd
    std::vector<bool> needed(out_.rules_.size());
    std::vector<std::uint32_t> todo{grammar_.root};
    needed[grammar_.root] = true;
    while (!todo.empty()) {
      const std::uint32_t rule = todo.back();
      todo.pop_back();
      const std::size_t calls_before = out_.calls_.size();
      if (!build_rule(rule)) {
        return invalid_field("grammar",
                             "grammar is too large: rule " + grammar_.rules[rule].name + " takes too long to compile");
      }
      for (std::size_t i = calls_before; i < out_.calls_.size(); ++i) {
        const std::uint32_t called = out_.calls_[i].rule;
        if (needed[called]) continue;
        needed[called] = true;
        todo.push_back(called);
      }
    }
    close_positions();
    return std::move(out_);
  }

 private:
  void find_byte_classes() {
    std::bitset<257> cut;
    cut[1] = true;  // U+0000 is in no step
    for (const RuleStates& rule : analysis_.rules()) {
      for (const RuleStep& step : rule.steps) {
        if (step.kind == RuleStep::Kind::byte) cut[step.low] = cut[step.high + 1u] = true;
      }
    }
    std::uint8_t byte_class = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte > 0 && cut[byte]) ++byte_class;
      out_.byte_class_[byte] = byte_class;
    }
    out_.byte_class_count_ = byte_class + 1u;
  }

  bool build_rule(std::uint32_t index) {
    rule_ = &analysis_.rules()[index];
    ids_.clear();
    sets_.clear();
    first_id_ = static_cast<std::uint32_t>(out_.positions_.size());
    sets_max_ = 2 * rule_->first.size() + 1024;
    seen_.assign(rule_->first.size(), 0);
    stamp_ = 0;
    out_.rules_[index] = {grammar_.rules[index].name, id_of(closure({0})), analysis_.order()[index]};
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (!build_position(StateSet(*sets_[i]))) return false;
    }
    return true;
  }

  // Those that are reached from `states` without taking anything.
  StateSet closure(StateSet states) {
    StateSet out;
    ++stamp_;
    std::uint64_t steps = 0;
    const auto reach = [&](std::uint32_t state) {
      if (!rule_->useful[state] || seen_[state] == stamp_) return;
      seen_[state] = stamp_;
      states.push_back(state);
    };
    StateSet begin = std::move(states);
    states.clear();
    for (const std::uint32_t state : begin) reach(state);
    while (!states.empty()) {
      const std::uint32_t state = states.back();
      states.pop_back();
      bool takes = state == rule_->end;
      for (std::uint32_t i = rule_->first[state]; i != RuleStep::kNone; i = rule_->steps[i].next, ++steps) {
        if (rule_->steps[i].kind == RuleStep::Kind::nothing) {
          reach(rule_->steps[i].to);
        } else {
          takes = true;
        }
      }
      if (takes) out.push_back(state);
    }
    within_ = work_.count(steps + out.size()) && within_;
    std::ranges::sort(out);
    return out;
  }

  std::uint32_t id_of(StateSet set) {
    const auto [found, added] = ids_.try_emplace(std::move(set), first_id_ + static_cast<std::uint32_t>(sets_.size()));
    if (added) sets_.push_back(&found->first);
    return found->second;
  }

  // The positions for what `states` leads to: one, or where there are too many already, one for each state.
  template <class Each>
  void for_targets(const StateSet& states, const Each& each) {
    StateSet set = closure(states);
    if (set.empty()) return;
    if (set.size() == 1 || sets_.size() < sets_max_ || ids_.contains(set)) return each(id_of(std::move(set)));
    for (const std::uint32_t state : set) each(id_of({state}));
  }

  bool build_position(const StateSet& states) {
    GrammarAutomaton::Position position;
    position.begin = {static_cast<std::uint32_t>(out_.byte_steps_.size()),
                      static_cast<std::uint32_t>(out_.calls_.size()),
                      static_cast<std::uint32_t>(out_.token_steps_.size())};
    std::vector<const RuleStep*> bytes;
    std::map<std::uint32_t, StateSet> calls;
    std::map<std::pair<Token, bool>, StateSet> tokens;
    for (const std::uint32_t state : states) {
      position.final = position.final || state == rule_->end;
      for (std::uint32_t i = rule_->first[state]; i != RuleStep::kNone; i = rule_->steps[i].next) {
        const RuleStep& step = rule_->steps[i];
        if (!rule_->useful[step.to]) continue;
        if (step.kind == RuleStep::Kind::byte) {
          bytes.push_back(&step);
        } else if (step.kind == RuleStep::Kind::call) {
          if (analysis_.rules()[step.value].matches_something) calls[step.value].push_back(step.to);
        } else if (step.kind != RuleStep::Kind::nothing) {
          tokens[{static_cast<Token>(step.value), step.kind == RuleStep::Kind::other_token}].push_back(step.to);
        }
      }
    }
    position.one_way = add_byte_steps(bytes);
    for (const auto& call : calls) {
      for_targets(call.second, [&](std::uint32_t to) { out_.calls_.push_back({call.first, to}); });
    }
    for (const auto& step : tokens) {
      const auto [token, inverse] = step.first;
      for_targets(step.second, [&, token = token, inverse = inverse](std::uint32_t to) {
        out_.token_steps_.push_back({token, inverse, to});
      });
    }
    position.only_ends = position.final && bytes.empty() && calls.empty() && tokens.empty();
    out_.positions_.push_back(position);
    return within_ && out_.byte_steps_.size() + out_.calls_.size() <= 4 * kAutomatonStepsMax;
  }

  // False: a byte leads to several positions.
  bool add_byte_steps(const std::vector<const RuleStep*>& steps) {
    if (steps.empty()) return true;
    bool one_way = true;
    // From cut to cut the same steps apply.
    std::vector<std::vector<std::uint32_t>> targets;
    std::vector<std::uint32_t> cuts;
    for (const RuleStep* step : steps) {
      cuts.push_back(step->low);
      cuts.push_back(step->high + 1u);
    }
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    targets.resize(cuts.size());
    for (const RuleStep* step : steps) {
      auto at = static_cast<std::size_t>(std::ranges::lower_bound(cuts, step->low) - cuts.begin());
      for (; cuts[at] <= step->high; ++at) targets[at].push_back(step->to);
    }
    const std::size_t before = out_.byte_steps_.size();
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (targets[i].empty()) continue;
      std::ranges::sort(targets[i]);
      const std::uint8_t low = out_.byte_class_[cuts[i]];
      const std::uint8_t high = out_.byte_class_[cuts[i + 1] - 1];
      std::size_t ways = 0;
      for_targets(targets[i], [&](std::uint32_t to) {
        one_way = one_way && ++ways == 1;
        const bool joins = out_.byte_steps_.size() > before && out_.byte_steps_.back().to == to &&
                           out_.byte_steps_.back().high + 1 == low;
        if (joins) {
          out_.byte_steps_.back().high = high;
        } else {
          out_.byte_steps_.push_back({low, high, to});
        }
      });
    }
    return one_way;
  }

  void close_positions() {
    GrammarAutomaton::Position last;
    last.begin = {static_cast<std::uint32_t>(out_.byte_steps_.size()), static_cast<std::uint32_t>(out_.calls_.size()),
                  static_cast<std::uint32_t>(out_.token_steps_.size())};
    out_.positions_.push_back(last);
  }

  const Gbnf& grammar_;
  RuleAnalysis& analysis_;
  CompileWork& work_;
  bool within_ = true;
  GrammarAutomaton out_;
  // Of the rule at hand:
  const RuleStates* rule_ = nullptr;
  std::unordered_map<StateSet, std::uint32_t, StateSetHash> ids_;
  std::vector<const StateSet*> sets_;  // keys of ids_, in the order of their ids
  std::uint32_t first_id_ = 0;
  std::size_t sets_max_ = 0;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
};

Result<GrammarAutomaton> GrammarAutomaton::compile(const Gbnf& grammar) {
  CompileWork work;
  RuleAnalysis analysis(grammar, work);
  if (auto ok = analysis.run(); !ok) return ok.error();
  return AutomatonBuilder(grammar, analysis, work).build();
}

std::size_t GrammarAutomaton::bytes() const {
  return positions_.size() * sizeof(Position) + byte_steps_.size() * sizeof(ByteStep) + calls_.size() * sizeof(Call) +
         token_steps_.size() * sizeof(TokenStep) + rules_.size() * sizeof(Rule);
}

}  // namespace chasqui
