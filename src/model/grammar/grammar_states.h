// Where an answer can be in a grammar, and what each byte makes of that. A place is a position of the automaton and
// what the rules around it return to; all places that one text leads to are a configuration: an immutable value that
// shares its stacks with others, so that keeping an old one costs nothing and any thread can carry it on. GrammarStates
// numbers configurations and remembers their steps, which makes it a deterministic automaton that comes into being as
// it is used. Stacks that end alike are one graph, so that ambiguous grammars have few places. One thread at a time.
//
// bounded: places by `grammar_items`, those after all bytes that may come next together, depth by `grammar_depth`, and
// what one place may return to by 64: ways beyond are given up, so the language gets smaller, never larger. So one
// configuration has some megabytes of stacks at most. Memory: bytes() tells, forget() empties;
// numbers of before mean nothing then.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "model/grammar/automaton.h"

namespace chasqui {

struct GrammarStack;
using GrammarStackPtr = std::shared_ptr<const GrammarStack>;

struct GrammarReturn {
  std::uint32_t to = 0;
  GrammarStackPtr stack;  // of the rule that is returned to
  bool operator==(const GrammarReturn&) const = default;
};

// What may follow a rule: one or several ways.
struct GrammarStack {
  std::vector<GrammarReturn> returns;  // sorted
  std::uint32_t depth = 0;
};

struct GrammarPlace {
  std::uint32_t position = 0;
  GrammarStackPtr stack;
  bool operator==(const GrammarPlace&) const = default;
};

struct GrammarConfiguration {
  std::vector<GrammarPlace> places;  // sorted; only those that take a byte or a token
  bool complete = false;             // the text may end here
};
using GrammarConfigurationPtr = std::shared_ptr<const GrammarConfiguration>;

class GrammarStates {
 public:
  using Id = std::uint32_t;
  static constexpr Id kDead = 0;  // no text goes on from here

  explicit GrammarStates(std::shared_ptr<const GrammarAutomaton> automaton);

  const std::shared_ptr<const GrammarAutomaton>& automaton() const { return automaton_; }

  Id start();
  // The number of a configuration, be it one of another GrammarStates of the same automaton.
  Id adopt(const GrammarConfiguration& configuration);
  const GrammarConfigurationPtr& configuration(Id state) const { return states_[state].configuration; }

  Id next(Id state, std::uint8_t byte) { return row(state)[automaton_->byte_class(byte)]; }
  // By class of bytes. Valid until the next call.
  const Id* row(Id state) {
    if (states_[state].row == kNoRow) fill_row(state);
    return rows_.data() + states_[state].row;
  }
  Id after_bytes(Id state, std::string_view bytes);
  // Where the whole token is one step of the grammar.
  Id after_token(Id state, Token token);
  Id join(Id a, Id b);
  // Where every text goes on with the same byte: that one.
  std::optional<std::uint8_t> only_byte(Id state);

  bool is_complete(Id state) const { return states_[state].configuration->complete; }

  std::size_t count() const { return states_.size(); }
  std::size_t bytes() const { return bytes_; }
  void forget();
  // Steps that were looked at.
  std::uint64_t work() const { return work_; }

 private:
  static constexpr std::uint32_t kNoRow = 0xFFFFFFFF;

  struct State {
    GrammarConfigurationPtr configuration;
    std::uint32_t row = kNoRow;
  };
  struct PlaceHash {
    std::size_t operator()(const GrammarPlace& place) const;
  };
  struct StackHash {
    std::size_t operator()(const GrammarStack* stack) const;
  };
  struct SameStack {
    bool operator()(const GrammarStack* a, const GrammarStack* b) const { return a->returns == b->returns; }
  };
  using Places = std::vector<GrammarPlace>;

  void fill_row(Id state);
  Id after(Places places, std::size_t most = kSizeLimit<"grammar_items">);
  Id number(std::shared_ptr<GrammarConfiguration> configuration);
  GrammarStackPtr stack_of(std::vector<GrammarReturn> returns);

  const std::shared_ptr<const GrammarAutomaton> automaton_;
  std::vector<State> states_;
  std::vector<Id> rows_;
  std::unordered_multimap<std::size_t, Id> numbers_;  // by the hash of the configuration
  std::unordered_map<GrammarPlace, Id, PlaceHash> after_one_;
  std::unordered_map<const GrammarStack*, GrammarStackPtr, StackHash, SameStack> stacks_;
  std::size_t bytes_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace chasqui
