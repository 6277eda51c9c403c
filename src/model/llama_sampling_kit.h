// Makes SamplingParts ready. Keeps the grammars that were compiled last, found by their text, so that a schema that
// many requests share is compiled once. Any thread; two that miss at the same time both compile.
//
// bounded: kGrammars grammars; the one that was used longest ago makes room.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "core/request.h"
#include "model/sampling_parts.h"
#include "model/tokenizer.h"

namespace chasqui {

class SamplingKit {
 public:
  // `vocab` may be null, for a model that is not libllama's: no grammars then. What it points to lives as long as
  // `tokenizer`.
  SamplingKit(std::shared_ptr<const Tokenizer> tokenizer, const llama_vocab* vocab)
      : tokenizer_(std::move(tokenizer)), vocab_(vocab) {}

  // Null when the request needs none. Errors name `grammar`. Slow where something has to be compiled. The draft has its
  // seed already.
  Result<SamplingPartsPtr> prepare(const SamplingParams& sampling, const Grammar* grammar, TokenCount longest);

  bool has_grammars() const { return vocab_ != nullptr; }
  std::uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }
  std::uint64_t found() const { return found_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kGrammars = 64;

  struct Compiled {
    Grammar source;
    LlamaSamplerPtr grammar;  // never advanced; copies are
    mutable std::atomic<std::uint64_t> used{0};
  };

  Result<LlamaSamplerPtr> open(const Grammar& grammar);
  void keep(std::shared_ptr<const Compiled> compiled);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const llama_vocab* const vocab_;
  std::array<std::atomic<std::shared_ptr<const Compiled>>, kGrammars> kept_;
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> found_{0};
};

// What is too much to compile, or to follow: bytes, nesting, repetitions. Errors name `grammar`.
Result<void> check_grammar(const Grammar& grammar);

}  // namespace chasqui
