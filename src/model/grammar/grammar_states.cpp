#include "model/grammar/grammar_states.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kPlacesMax = kSizeLimit<"grammar_items">;
constexpr std::size_t kPlacesOfWay = 512;   // at least, of each of many next bytes
constexpr std::uint64_t kLooksAtPlace = 4;  // on average
constexpr std::size_t kReturnsMax = kSizeLimit<"grammar_returns">;
constexpr std::size_t kFewReturns = 16;     // … where there is no room for more
constexpr std::uint32_t kDepthMax = kSizeLimit<"grammar_depth">;

std::size_t mix(std::size_t hash, std::size_t value) {
  hash = (hash ^ value) * 0x9FB21C651E98DF25u;
  return hash ^ hash >> 32;
}

bool before(const GrammarPlace& a, const GrammarPlace& b) {
  return a.position != b.position ? a.position < b.position : a.stack < b.stack;
}

std::size_t hash_of(const GrammarConfiguration& configuration) {
  std::size_t hash = configuration.complete ? 1 : 0;
  for (const GrammarPlace& place : configuration.places) {
    hash = mix(mix(hash, place.position), reinterpret_cast<std::size_t>(place.stack.get()));
  }
  return hash;
}

// The places of one closure, each once.
class PlaceSet {
 public:
  bool add(const GrammarPlace& place) {
    constexpr std::size_t kFew = 24;
    if (list_.size() < kFew) {
      if (std::ranges::find(list_, place) != list_.end()) return false;
    } else {
      if (hashed_.empty()) hashed_.insert(list_.begin(), list_.end());
      if (!hashed_.insert(place).second) return false;
    }
    list_.push_back(place);
    return true;
  }
  std::size_t size() const { return list_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const GrammarPlace& place) const {
      return mix(place.position, reinterpret_cast<std::size_t>(place.stack.get()));
    }
  };
  std::vector<GrammarPlace> list_;
  std::unordered_set<GrammarPlace, Hash> hashed_;
};

}  // namespace

std::size_t GrammarStates::PlaceHash::operator()(const GrammarPlace& place) const {
  return mix(place.position, reinterpret_cast<std::size_t>(place.stack.get()));
}

std::size_t GrammarStates::StackHash::operator()(const GrammarStack* stack) const {
  std::size_t hash = stack->returns.size();
  for (const GrammarReturn& each : stack->returns) {
    hash = mix(mix(hash, each.to), reinterpret_cast<std::size_t>(each.stack.get()));
  }
  return hash;
}

GrammarStates::GrammarStates(std::shared_ptr<const GrammarAutomaton> automaton) : automaton_(std::move(automaton)) {
  forget();
}

void GrammarStates::forget() {
  states_.clear();
  rows_.assign(automaton_->byte_classes(), kDead);
  numbers_.clear();
  after_one_.clear();
  stacks_.clear();
  bytes_ = 0;
  states_.push_back({std::make_shared<const GrammarConfiguration>(), 0});
  numbers_.emplace(hash_of(*states_[kDead].configuration), kDead);
}

GrammarStates::Id GrammarStates::start() {
  const GrammarStackPtr bottom = stack_of({{GrammarAutomaton::kEnd, nullptr}});
  return after({{automaton_->rule(automaton_->root()).start, bottom}});  // not entered: the text may be empty
}

GrammarStates::Id GrammarStates::adopt(const GrammarConfiguration& configuration) {
  std::unordered_map<const GrammarStack*, GrammarStackPtr> known;
  const auto own = [&](const auto& self, const GrammarStackPtr& stack) -> GrammarStackPtr {
    if (stack == nullptr) return nullptr;
    if (const auto found = known.find(stack.get()); found != known.end()) return found->second;
    std::vector<GrammarReturn> returns;
    for (const GrammarReturn& each : stack->returns) returns.push_back({each.to, self(self, each.stack)});
    work_ += returns.size();
    return known[stack.get()] = stack_of(std::move(returns));
  };
  auto copy = std::make_shared<GrammarConfiguration>();
  copy->complete = configuration.complete;
  for (const GrammarPlace& place : configuration.places)
    copy->places.push_back({place.position, own(own, place.stack)});
  return number(std::move(copy));
}

GrammarStates::Id GrammarStates::after_bytes(Id state, std::string_view bytes) {
  for (const char byte : bytes) {
    if (state == kDead) break;
    state = next(state, static_cast<std::uint8_t>(byte));
  }
  return state;
}

GrammarStates::Id GrammarStates::after_token(Id state, Token token) {
  Places places;
  const GrammarConfigurationPtr from = states_[state].configuration;
  for (const GrammarPlace& place : from->places) {
    for (const GrammarAutomaton::TokenStep& step : automaton_->token_steps(place.position)) {
      if ((step.token == token) != step.inverse) places.push_back({step.to, place.stack});
    }
  }
  return places.empty() ? kDead : after(std::move(places));
}

GrammarStates::Id GrammarStates::join(Id a, Id b) {
  if (a == b || b == kDead) return a;
  if (a == kDead) return b;
  auto both = std::make_shared<GrammarConfiguration>(*states_[a].configuration);
  const GrammarConfiguration& other = *states_[b].configuration;
  both->complete = both->complete || other.complete;
  both->places.insert(both->places.end(), other.places.begin(), other.places.end());
  return number(std::move(both));
}

std::optional<std::uint8_t> GrammarStates::only_byte(Id state) {
  const GrammarConfigurationPtr from = states_[state].configuration;
  if (from->complete) return std::nullopt;
  for (const GrammarPlace& place : from->places) {
    if (!automaton_->token_steps(place.position).empty()) return std::nullopt;
  }
  const Id* const steps = row(state);
  std::optional<std::uint8_t> only;
  for (int byte = 0; byte < 256; ++byte) {
    if (steps[automaton_->byte_class(static_cast<std::uint8_t>(byte))] == kDead) continue;
    if (only) return std::nullopt;
    only = static_cast<std::uint8_t>(byte);
  }
  return only;
}

void GrammarStates::fill_row(Id state) {
  const std::uint32_t classes = automaton_->byte_classes();
  const GrammarConfigurationPtr from = states_[state].configuration;
  std::vector<Id> row(classes, kDead);
  if (from->places.size() == 1 && automaton_->has_one_way(from->places.front().position)) {
    const GrammarPlace& place = from->places.front();
    for (const GrammarAutomaton::ByteStep& step : automaton_->byte_steps(place.position)) {
      const Id to = after({{step.to, place.stack}});
      std::fill(row.begin() + step.low, row.begin() + step.high + 1, to);
    }
  } else {
    std::vector<Places> targets(classes);
    for (const GrammarPlace& place : from->places) {
      for (const GrammarAutomaton::ByteStep& step : automaton_->byte_steps(place.position)) {
        for (std::size_t i = step.low; i <= step.high; ++i) targets[i].push_back({step.to, place.stack});
      }
    }
    std::vector<std::size_t> ways;  // classes that lead elsewhere than the one before
    for (std::size_t i = 0; i < classes; ++i) {
      if (!targets[i].empty() && (i == 0 || targets[i] != targets[i - 1])) ways.push_back(i);
    }
    // Of the whole row: where most bytes lead to most places, each has its share of them.
    const std::size_t share = std::max(kPlacesOfWay, kPlacesMax / std::max<std::size_t>(ways.size(), 1));
    for (const std::size_t way : ways) row[way] = after(targets[way], share);
    for (std::size_t i = 1; i < classes; ++i) {
      if (!targets[i].empty() && targets[i] == targets[i - 1]) row[i] = row[i - 1];
    }
  }
  states_[state].row = static_cast<std::uint32_t>(rows_.size());
  rows_.insert(rows_.end(), row.begin(), row.end());
  bytes_ += classes * sizeof(Id);
}

// The configuration of `places` and of those that are reached from them without a byte; of `most` places about, and
// what is found with a few looks at each: the others are given up.
GrammarStates::Id GrammarStates::after(Places places, std::size_t most) {
  const bool one = places.size() == 1;
  const GrammarPlace only = places.front();
  if (one) {
    if (const auto found = after_one_.find(only); found != after_one_.end()) return found->second;
  }
  auto out = std::make_shared<GrammarConfiguration>();
  PlaceSet seen;
  most = one ? kPlacesMax : std::max(most, std::min(places.size(), kPlacesMax));  // of one it is kept
  const std::uint64_t work_most = work_ + kLooksAtPlace * most;
  // By their order, so that all calls of a rule are known before it is entered: it is entered once, with one stack.
  std::map<std::uint32_t, std::pair<std::uint32_t, std::vector<GrammarReturn>>> called;
  while (!places.empty() || !called.empty()) {
    const bool entered = places.empty();
    if (entered) {
      auto [rule, returns] = std::move(called.begin()->second);
      called.erase(called.begin());
      places.push_back({automaton_->rule(rule).start, stack_of(std::move(returns))});
    }
    const GrammarPlace place = std::move(places.back());
    places.pop_back();
    // Rules that are called are entered in any case, or no way on might be left.
    const bool full = seen.size() >= most || work_ > work_most;
    if ((full && !entered) || !seen.add(place)) continue;
    ++work_;
    if (place.position == GrammarAutomaton::kEnd) {
      out->complete = true;
      continue;
    }
    const std::vector<GrammarReturn>& around = place.stack->returns;
    // A rule that matches nothing has been stepped over by its caller.
    if (!entered && !full && automaton_->is_final(place.position)) {
      for (const GrammarReturn& each : around) places.push_back({each.to, each.stack});
      work_ += around.size();
    }
    for (const GrammarAutomaton::Call& call : automaton_->calls(place.position)) {
      if (place.stack->depth >= kDepthMax) continue;
      auto& [rule, returns] = called[automaton_->rule(call.rule).order];
      rule = call.rule;
      if (automaton_->only_ends(call.to)) {  // the last thing that a rule does needs no stack of its own
        const auto taken = static_cast<std::ptrdiff_t>(full ? std::min(around.size(), kFewReturns) : around.size());
        returns.insert(returns.end(), around.begin(), around.begin() + taken);
        work_ += static_cast<std::uint64_t>(taken);
      } else {
        returns.push_back({call.to, place.stack});
        ++work_;
      }
    }
    const bool takes =
        !automaton_->byte_steps(place.position).empty() || !automaton_->token_steps(place.position).empty();
    if (takes) out->places.push_back(place);
  }
  const Id id = number(std::move(out));
  if (one) {
    after_one_.emplace(only, id);
    bytes_ += sizeof(GrammarPlace) + 48;
  }
  return id;
}

GrammarStates::Id GrammarStates::number(std::shared_ptr<GrammarConfiguration> configuration) {
  std::vector<GrammarPlace>& places = configuration->places;
  std::ranges::sort(places, before);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  const std::size_t hash = hash_of(*configuration);
  const auto [first, last] = numbers_.equal_range(hash);
  for (auto found = first; found != last; ++found) {
    const GrammarConfiguration& known = *states_[found->second].configuration;
    if (known.complete == configuration->complete && known.places == places) return found->second;
  }
  const auto id = static_cast<Id>(states_.size());
  bytes_ += sizeof(State) + sizeof(GrammarConfiguration) + places.size() * sizeof(GrammarPlace) + 96;
  states_.push_back({std::move(configuration)});
  numbers_.emplace(hash, id);
  return id;
}

GrammarStackPtr GrammarStates::stack_of(std::vector<GrammarReturn> returns) {
  const auto earlier = [](const GrammarReturn& a, const GrammarReturn& b) {
    return a.to != b.to ? a.to < b.to : a.stack < b.stack;
  };
  std::ranges::sort(returns, earlier);
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  if (returns.size() > kReturnsMax) {  // those that are over soonest stay
    const auto way = [](const GrammarReturn& each) {
      return std::pair(each.stack == nullptr ? 0 : each.stack->depth, each.to);
    };
    std::ranges::stable_sort(returns, {}, way);
    returns.resize(kReturnsMax);
    std::ranges::sort(returns, earlier);
  }
  auto stack = std::make_shared<GrammarStack>();
  for (const GrammarReturn& each : returns) {
    stack->depth = std::max(stack->depth, each.stack == nullptr ? 0 : each.stack->depth + 1);
  }
  stack->returns = std::move(returns);
  if (const auto found = stacks_.find(stack.get()); found != stacks_.end()) return found->second;
  bytes_ += sizeof(GrammarStack) + stack->returns.size() * sizeof(GrammarReturn) + 80;
  stacks_.emplace(stack.get(), stack);
  return stack;
}

}  // namespace chasqui
