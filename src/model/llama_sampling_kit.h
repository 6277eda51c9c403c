// Makes SamplingParts ready. Keeps the grammars that were compiled last, found by their text, so that a schema that
// many requests share is compiled once, and so for the texts that end a repetition for DRY. Any thread; two that miss
// at the same time both compile.
//
// bounded: kGrammars grammars, of which the one that was used longest ago makes room, and kBreakers sets of such texts.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "core/request.h"
#include "model/model_config.h"
#include "model/sampling_parts.h"
#include "model/tokenizer.h"

namespace chasqui {

class SamplingKit {
 public:
  // `vocab` may be null, for a model that is not libllama's: no grammars then. What it points to lives as long as
  // `tokenizer`. With our own engine for grammars this makes a tree of the vocabulary; `forces`: what a grammar leaves
  // no choice about is not sampled then.
  SamplingKit(std::shared_ptr<const Tokenizer> tokenizer, const llama_vocab* vocab,
              GrammarEngine engine = GrammarEngine::chasqui, bool forces = true);

  // Null when the request needs none. Errors name `grammar`. Slow where something has to be compiled. The draft has its
  // seed already.
  Result<SamplingPartsPtr> prepare(const SamplingParams& sampling, const Grammar* grammar);

  bool has_grammars() const { return vocab_ != nullptr; }
  GrammarEngine engine() const { return engine_; }
  // Of the tree of the vocabulary; 0: there is none.
  std::size_t vocabulary_bytes() const { return tokens_ != nullptr ? tokens_->bytes() : 0; }
  std::uint64_t breakers_made() const { return breakers_made_.load(std::memory_order_relaxed); }
  std::uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }
  std::uint64_t found() const { return found_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kGrammars = 64;
  static constexpr std::size_t kBreakers = 8;

  struct Compiled {
    Grammar source;
    GrammarProgramPtr program;  // null with libllama's engine
    GrammarGate gate;           // never advanced; copies are
    mutable std::atomic<std::uint64_t> used{0};
  };

  DryBreakersPtr breakers_of(const std::vector<std::string>& texts);
  Result<GrammarGate> open(const Grammar& grammar);
  Result<void> compile(Compiled& entry);
  void keep(std::shared_ptr<const Compiled> compiled);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const llama_vocab* const vocab_;
  const GrammarEngine engine_;
  const bool forces_;
  std::shared_ptr<const TokenTrie> tokens_;  // with our own engine; constant
  std::array<std::atomic<std::shared_ptr<const Compiled>>, kGrammars> kept_;
  // Of DRY: those that were made last, and what they are made with.
  std::array<std::atomic<DryBreakersPtr>, kBreakers> breakers_;
  std::atomic<std::shared_ptr<const TokenTexts>> texts_;
  std::atomic<std::uint64_t> breakers_made_{0};
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> found_{0};
};

// What is too much to compile, or to follow: bytes, nesting, repetitions. Errors name `grammar`.
Result<void> check_grammar(const Grammar& grammar);

}  // namespace chasqui
