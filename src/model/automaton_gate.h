// A request's grammar as an automaton (model/grammar): which tokens may come next, from the first one on or from a
// trigger. What a thread has found out about a grammar is kept for the next request that has it.
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "core/sampling.h"
#include "model/lazy_grammar.h"
#include "model/token_gate.h"
#include "model/tokenizer.h"

namespace chasqui {

// The tree of a vocabulary; control tokens are the text that they are written as.
std::shared_ptr<const TokenTrie> make_token_trie(const Tokenizer& tokenizer);

// Slow. Errors name `grammar`.
Result<GrammarProgramPtr> compile_program(const Grammar& grammar, const Tokenizer& tokenizer,
                                          std::shared_ptr<const TokenTrie> tokens);

// Errors name `grammar`: its triggers are no regular expressions, or what is said already does not fit.
// `forces` tokens by this tokenizer; null: none.
Result<std::unique_ptr<TokenGate>> make_automaton_gate(const Grammar& grammar, GrammarProgramPtr program,
                                                       std::shared_ptr<const Tokenizer> forces = nullptr);

// Of all masks that gates have asked for on this thread.
GrammarMaskCost grammar_mask_cost();

}  // namespace chasqui
