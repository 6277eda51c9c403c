#include "model/grammar/rule_steps.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kRuleStepsMax = kCountLimit<"grammar_automaton_steps">;
constexpr std::uint64_t kCompileWorkMax = kCountLimit<"grammar_compile_work">;

Error too_large(const std::string& rule) {
  return invalid_field("grammar", "grammar is too large: with the repetitions of rule " + rule +
                                      " written out it has more than " + std::to_string(kRuleStepsMax) + " steps");
}

Error too_much_work() {
  return invalid_field("grammar", "grammar takes too long to compile; use fewer or simpler rules");
}

template <class Each>
void for_steps(const RuleStates& rule, std::uint32_t state, const Each& each) {
  for (std::uint32_t i = rule.first[state]; i != RuleStep::kNone; i = rule.steps[i].next) each(rule.steps[i]);
}

}  // namespace

bool CompileWork::count(std::uint64_t steps) {
  done += steps;
  return done <= kCompileWorkMax;
}

Result<void> RuleAnalysis::run() {
  rules_.resize(grammar_.rules.size());
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    RuleStates& rule = rules_[i];
    const std::uint32_t start = rule.add_state();
    rule.end = build(rule, grammar_.rules[i].body, start);
    made_ += rule.steps.size();
    if (too_large_) return too_large(grammar_.rules[i].name);
  }
  if (!settle_rules()) return too_much_work();
  const GbnfRule& root = grammar_.rules[grammar_.root];
  if (!rules_[grammar_.root].matches_something) {
    return invalid_field("grammar", "grammar matches no text: rule " + root.name + " never comes to an end");
  }
  for (RuleStates& rule : rules_) {
    mark_useful(rule);
    step_over_empty_rules(rule);
  }
  return order_rules();
}

// Returns the state behind `part`. Never adds a step into `from`, so that parts can be put side by side.
std::uint32_t RuleAnalysis::build(RuleStates& rule, const GbnfPart& part, std::uint32_t from) {
  if (made_ + rule.steps.size() > kRuleStepsMax) too_large_ = true;
  if (too_large_) return from;
  switch (part.kind) {
    case GbnfPart::Kind::text:
      for (const char c : part.text) {
        const std::uint32_t to = rule.add_state();
        const auto byte = static_cast<std::uint8_t>(c);
        rule.add(from, {.kind = RuleStep::Kind::byte, .low = byte, .high = byte, .to = to});
        from = to;
      }
      return from;
    case GbnfPart::Kind::characters: return build_characters(rule, part, from);
    case GbnfPart::Kind::rule: {
      const std::uint32_t to = rule.add_state();
      rule.add(from, {.kind = RuleStep::Kind::call, .to = to, .value = part.rule});
      return to;
    }
    case GbnfPart::Kind::token: {
      const std::uint32_t to = rule.add_state();
      const auto kind = part.inverse ? RuleStep::Kind::other_token : RuleStep::Kind::token;
      rule.add(from, {.kind = kind, .to = to, .value = static_cast<std::uint32_t>(part.token)});
      return to;
    }
    case GbnfPart::Kind::sequence:
      for (const GbnfPart& each : part.parts) from = build(rule, each, from);
      return from;
    case GbnfPart::Kind::choice: {
      if (part.parts.size() == 1) return build(rule, part.parts.front(), from);
      const std::uint32_t end = rule.add_state();
      for (const GbnfPart& each : part.parts) rule.add(build(rule, each, from), {.to = end});
      return end;
    }
    case GbnfPart::Kind::repeat: return build_repeat(rule, part, from);
  }
  return from;
}

std::uint32_t RuleAnalysis::build_characters(RuleStates& rule, const GbnfPart& part, std::uint32_t from) {
  const CharacterBytes bytes = bytes_of_characters(part.ranges);
  const std::uint32_t end = rule.add_state();
  const std::uint32_t inner = end + 1;
  for (std::uint32_t i = 2; i < bytes.states; ++i) rule.add_state();
  const auto state = [&](std::uint32_t i) { return i == 0 ? from : i == 1 ? end : inner + i - 2; };
  for (const CharacterBytes::Step& step : bytes.steps) {
    rule.add(state(step.from),
             {.kind = RuleStep::Kind::byte, .low = step.low, .high = step.high, .to = state(step.to)});
  }
  return end;
}

std::uint32_t RuleAnalysis::build_repeat(RuleStates& rule, const GbnfPart& part, std::uint32_t from) {
  const GbnfPart& what = part.parts.front();
  for (std::uint32_t i = 0; i < part.least && !too_large_; ++i) {
    const std::uint32_t begin = rule.add_state();  // what is repeated may itself be a loop
    rule.add(from, {.to = begin});
    from = build(rule, what, begin);
  }
  if (part.most == GbnfPart::kNoLimit) {
    const std::uint32_t loop = rule.add_state();
    rule.add(from, {.to = loop});
    const std::uint32_t begin = rule.add_state();
    rule.add(loop, {.to = begin});
    rule.add(build(rule, what, begin), {.to = loop});
    return loop;
  }
  if (part.most == part.least) return from;
  const std::uint32_t end = rule.add_state();
  for (std::uint32_t i = part.least; i < part.most && !too_large_; ++i) {
    rule.add(from, {.to = end});
    const std::uint32_t begin = rule.add_state();
    rule.add(from, {.to = begin});
    from = build(rule, what, begin);
  }
  rule.add(from, {.to = end});
  return end;
}

// Looks at a rule again when what it calls has turned out to match something, or nothing.
bool RuleAnalysis::settle_rules() {
  std::vector<std::vector<std::uint32_t>> callers(rules_.size());
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    for (const RuleStep& step : rules_[i].steps) {
      if (step.kind == RuleStep::Kind::call) callers[step.value].push_back(i);
    }
  }
  std::deque<std::uint32_t> todo;
  std::vector<bool> waits(rules_.size(), true);
  for (std::uint32_t i = 0; i < rules_.size(); ++i) todo.push_back(static_cast<std::uint32_t>(rules_.size()) - 1 - i);
  while (!todo.empty()) {
    const std::uint32_t rule = todo.front();
    todo.pop_front();
    waits[rule] = false;
    if (!work_.count(rules_[rule].steps.size() + callers[rule].size())) return false;
    if (!look_at(rule)) continue;
    for (const std::uint32_t caller : callers[rule]) {
      if (!waits[caller]) todo.push_back(caller);
      waits[caller] = true;
    }
  }
  return true;
}

// Whether something new came out.
bool RuleAnalysis::look_at(std::uint32_t index) {
  RuleStates& rule = rules_[index];
  const auto reaches_end = [&](bool empty) {
    std::vector<bool> seen(rule.first.size());
    std::vector<std::uint32_t> todo{0};
    seen[0] = true;
    while (!todo.empty()) {
      const std::uint32_t state = todo.back();
      todo.pop_back();
      for_steps(rule, state, [&](const RuleStep& step) {
        const bool call = step.kind == RuleStep::Kind::call;
        const bool passes =
            step.kind == RuleStep::Kind::nothing ||
            (call ? (empty ? rules_[step.value].may_be_empty : rules_[step.value].matches_something) : !empty);
        if (!passes || seen[step.to]) return;
        seen[step.to] = true;
        todo.push_back(step.to);
      });
    }
    return static_cast<bool>(seen[rule.end]);
  };
  bool news = false;
  if (!rule.matches_something && reaches_end(false)) news = rule.matches_something = true;
  if (!rule.may_be_empty && reaches_end(true)) news = rule.may_be_empty = true;
  return news;
}

void RuleAnalysis::mark_useful(RuleStates& rule) {
  std::vector<std::vector<std::uint32_t>> back(rule.first.size());
  for (std::uint32_t state = 0; state < rule.first.size(); ++state) {
    for_steps(rule, state, [&](const RuleStep& step) {
      if (step.kind == RuleStep::Kind::call && !rules_[step.value].matches_something) return;
      back[step.to].push_back(state);
    });
  }
  rule.useful.assign(rule.first.size(), false);
  std::vector<std::uint32_t> todo{rule.end};
  rule.useful[rule.end] = true;
  while (!todo.empty()) {
    const std::uint32_t state = todo.back();
    todo.pop_back();
    for (const std::uint32_t from : back[state]) {
      if (rule.useful[from]) continue;
      rule.useful[from] = true;
      todo.push_back(from);
    }
  }
}

void RuleAnalysis::step_over_empty_rules(RuleStates& rule) {
  for (std::uint32_t state = 0; state < rule.first.size(); ++state) {
    std::vector<std::uint32_t> over;
    for_steps(rule, state, [&](const RuleStep& step) {
      if (step.kind == RuleStep::Kind::call && rules_[step.value].may_be_empty) over.push_back(step.to);
    });
    for (const std::uint32_t to : over) rule.add(state, {.to = to});
  }
}

// The rules that are called before the first byte.
std::vector<std::uint32_t> RuleAnalysis::called_first(const RuleStates& rule) {
  std::vector<std::uint32_t> out;
  std::vector<bool> seen(rule.first.size());
  std::vector<std::uint32_t> todo{0};
  seen[0] = true;
  while (!todo.empty()) {
    const std::uint32_t state = todo.back();
    todo.pop_back();
    for_steps(rule, state, [&](const RuleStep& step) {
      if (!rule.useful[state] || !rule.useful[step.to]) return;
      if (step.kind == RuleStep::Kind::call && rules_[step.value].matches_something) out.push_back(step.value);
      if (step.kind != RuleStep::Kind::nothing || seen[step.to]) return;
      seen[step.to] = true;
      todo.push_back(step.to);
    });
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Depth first, without recursion: chains of rules are as long as there are rules.
Result<void> RuleAnalysis::order_rules() {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(rules_.size(), Mark::fresh);
  std::vector<std::uint32_t> finished;
  struct Open {
    std::uint32_t rule;
    std::vector<std::uint32_t> calls;
    std::size_t next = 0;
  };
  for (std::uint32_t start = 0; start < rules_.size(); ++start) {
    if (marks[start] != Mark::fresh) continue;
    std::vector<Open> path;
    path.push_back({start, called_first(rules_[start])});
    marks[start] = Mark::open;
    while (!path.empty()) {
      Open& last = path.back();
      if (last.next == last.calls.size()) {
        marks[last.rule] = Mark::done;
        finished.push_back(last.rule);
        path.pop_back();
        continue;
      }
      const std::uint32_t called = last.calls[last.next++];
      if (marks[called] == Mark::open) {
        return invalid_field("grammar", "grammar must not be left-recursive: rule " + grammar_.rules[called].name +
                                            " can begin with itself");
      }
      if (marks[called] == Mark::done) continue;
      marks[called] = Mark::open;
      path.push_back({called, called_first(rules_[called])});
    }
  }
  order_.resize(rules_.size());
  for (std::uint32_t i = 0; i < finished.size(); ++i) {
    order_[finished[i]] = static_cast<std::uint32_t>(finished.size()) - 1 - i;
  }
  return {};
}

}  // namespace chasqui
