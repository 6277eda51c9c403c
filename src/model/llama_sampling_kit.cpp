#include "model/llama_sampling_kit.h"

#include <limits>

#include "model/grammar_shape.h"

namespace chasqui {
Result<void> check_grammar(const Grammar& grammar) { return check_grammar_shape(grammar.text); }

Result<SamplingPartsPtr> SamplingKit::prepare(const SamplingParams& sampling, const Grammar* grammar,
                                              TokenCount longest) {
  const bool chain = needs_chain(sampling);
  if (!chain && grammar == nullptr) return SamplingPartsPtr();
  auto parts = std::make_shared<LlamaSamplingParts>();
  if (chain) parts->chain = make_chain(sampling, vocab_, tokenizer_->vocabulary(), longest);
  if (grammar != nullptr) {
    auto opened = open(*grammar);
    if (!opened) return opened.error();
    parts->grammar = GrammarGate(std::move(*opened));
  }
  return SamplingPartsPtr(std::move(parts));
}

Result<LlamaSamplerPtr> SamplingKit::open(const Grammar& grammar) {
  if (vocab_ == nullptr) return invalid_field("grammar", "grammar cannot be used with this model: it is simulated");
  for (auto& place : kept_) {
    const std::shared_ptr<const Compiled> entry = place.load(std::memory_order_acquire);
    if (entry == nullptr || entry->source != grammar) continue;
    entry->used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    found_.fetch_add(1, std::memory_order_relaxed);
    return copy_sampler(*entry->grammar);
  }
  if (auto ok = check_grammar(grammar); !ok) return ok.error();
  auto compiled = compile_grammar(grammar, vocab_);
  if (!compiled) return compiled.error();
  compiled_.fetch_add(1, std::memory_order_relaxed);
  auto entry = std::make_shared<Compiled>();
  entry->source = grammar;
  entry->grammar = std::move(*compiled);
  entry->used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  LlamaSamplerPtr copy = copy_sampler(*entry->grammar);
  keep(std::move(entry));
  return copy;
}

void SamplingKit::keep(std::shared_ptr<const Compiled> compiled) {
  std::size_t oldest = 0;
  std::uint64_t used = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < kept_.size() && used > 0; ++i) {
    const auto entry = kept_[i].load(std::memory_order_acquire);
    const std::uint64_t last = entry == nullptr ? 0 : entry->used.load(std::memory_order_relaxed);
    if (last < used) {
      used = last;
      oldest = i;
    }
  }
  kept_[oldest].store(std::move(compiled), std::memory_order_release);
}

}  // namespace chasqui
