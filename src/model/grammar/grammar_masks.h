// Which tokens may come next at each place of a grammar: found by walking the tree of tokens along with the automaton,
// which leaves out at once all tokens that begin with what cannot come, and kept for the next time. One thread at a
// time; each thread that samples has its own.
//
// bounded: the work of one call by what its caller allows, `grammar_mask_work` at most, and a row of GrammarStates;
// after it the mask is what has been found so far, and the next call goes on. Memory by GrammarMaskPool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "model/grammar/grammar_states.h"
#include "model/grammar/token_trie.h"

namespace chasqui {

// A grammar for the vocabulary of one model.
struct GrammarProgram {
  std::shared_ptr<const GrammarAutomaton> automaton;
  std::shared_ptr<const TokenTrie> tokens;
};
using GrammarProgramPtr = std::shared_ptr<const GrammarProgram>;

// What masks have cost.
struct GrammarMaskCost {
  std::uint64_t found = 0;     // that were there already
  std::uint64_t computed = 0;  // that were not
  std::uint64_t put_off = 0;   // calls that were allowed too little work for that
  Duration computing{};        // of the processor

  GrammarMaskCost& operator+=(const GrammarMaskCost& other) {
    found += other.found;
    computed += other.computed;
    put_off += other.put_off;
    computing += other.computing;
    return *this;
  }
};

// Tokens: a list of them, or where there are many, bits.
struct TokenMask {
  static constexpr std::size_t kListed = 256;
  std::vector<Token> list;
  TokenBits bits;      // empty: the list counts
  bool whole = false;  // no token is missing

  bool empty() const { return list.empty() && bits.empty(); }
  bool has(Token token) const;
};

class GrammarMasks {
 public:
  using Id = GrammarStates::Id;

  // What masks may take after one step of a model, all together, and what each of them may take in any case.
  static constexpr std::uint64_t kStepWork = kCountLimit<"grammar_mask_work">;
  static constexpr std::uint64_t kLeastWork = kStepWork / 8;

  explicit GrammarMasks(GrammarProgramPtr program);

  const GrammarProgramPtr& program() const { return program_; }
  GrammarStates& states() { return states_; }

  // kDead where the token may not come. A token that ends the generation may come where the text may end.
  Id after(Id state, Token token);
  bool allows(Id state, Token token);
  // Not empty, unless no token at all may come. Valid until the next call.
  const TokenMask& mask(Id state);
  // What is found with about so much work, which is taken off: the rest is found by the next calls.
  const TokenMask& mask(Id state, std::uint64_t& work);

  // The text that every text goes on with, or its first bytes: kForcedBytes, or what was found in the time of a part of
  // a mask. Valid until forget().
  const std::string& forced_text(Id state);
  // What that becomes after a token, once it is kept; null before.
  const std::vector<Token>* forced_tokens(Id state, Token last) const;
  const std::vector<Token>& keep_forced_tokens(Id state, Token last, std::vector<Token> tokens);

  std::size_t bytes() const { return states_.bytes() + bytes_; }
  void forget();

  const GrammarMaskCost& cost() const { return cost_; }
  // Nodes of trees that were visited; a place of the grammar counts as several.
  std::uint64_t work() const { return work_ + states_.work() * kPlaceWork; }

 private:
  static constexpr std::uint64_t kPlaceWork = 16;
  static constexpr std::size_t kForcedBytes = 256;

  enum class Plain : std::uint8_t { unknown, mixed, dead, steps };
  struct PlainStep {
    Plain kind = Plain::unknown;
    Id to = 0;  // steps: every plain character leads there
  };
  enum class Stage : std::uint8_t { begin, plain, others, done };
  struct Entry {
    TokenMask mask;
    Stage stage = Stage::begin;
    std::uint32_t at = 0;  // the next node
    std::vector<Id> path;  // states by depth
  };

  void go_on(Id state, Entry& entry);
  void begin(Id state, Entry& entry);
  void begin_tree(Id state, Entry& entry, Stage stage, const TokenTrie::Tree& tree);
  bool walk(Entry& entry, const TokenTrie::Tree& tree, bool plain);
  void add_tokens_by_number(Id state, TokenMask& mask);
  void add(TokenMask& mask, Token token);
  void make_bits(TokenMask& mask);
  static std::size_t bytes_of(const Entry& entry);
  bool is_used_up() const { return work() > work_end_; }
  PlainStep plain_step(Id state);
  PlainStep find_plain_step(Id state);
  // How many plain characters may come, whatever they are: kPlainMost for that many and more.
  std::size_t plain_room(Id state, bool& closed);
  bool leads_to(Id state, std::size_t sequence, std::size_t byte, Id target);
  static std::uint64_t key_of(Id state, Token last) {
    return std::uint64_t{state} << 32 | static_cast<std::uint32_t>(last);
  }
  std::size_t words() const { return (static_cast<std::size_t>(program_->tokens->vocabulary()) + 63) / 64; }

  const GrammarProgramPtr program_;
  GrammarStates states_;
  std::unordered_map<Id, Entry> entries_;
  std::unordered_map<Id, std::string> forced_texts_;
  std::unordered_map<std::uint64_t, std::vector<Token>> forced_tokens_;  // by state and the token before
  std::vector<PlainStep> plain_steps_;
  std::vector<std::uint8_t> plain_classes_;  // of bytes that are plain characters by themselves
  std::size_t bytes_ = 0;
  GrammarMaskCost cost_;
  std::uint64_t work_ = 0;
  std::uint64_t work_end_ = 0;  // of the call
};

}  // namespace chasqui
