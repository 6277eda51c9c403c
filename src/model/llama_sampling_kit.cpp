#include "model/llama_sampling_kit.h"

#include <limits>

#include "model/automaton_gate.h"
#include "model/grammar_shape.h"

namespace chasqui {

SamplingKit::SamplingKit(std::shared_ptr<const Tokenizer> tokenizer, const llama_vocab* vocab, GrammarEngine engine,
                         bool forces)
    : tokenizer_(std::move(tokenizer)), vocab_(vocab), engine_(engine), forces_(forces) {
  if (vocab_ != nullptr && engine_ == GrammarEngine::chasqui) tokens_ = make_token_trie(*tokenizer_);
}

Result<void> check_grammar(const Grammar& grammar) { return check_grammar_shape(grammar.text); }

Result<SamplingPartsPtr> SamplingKit::prepare(const SamplingParams& sampling, const Grammar* grammar) {
  const bool chain = needs_chain(sampling);
  if (!chain && grammar == nullptr) return SamplingPartsPtr();
  auto parts = std::make_shared<LlamaSamplingParts>();
  if (chain) {
    const DryBreakersPtr breakers = sampling.dry_multiplier > 0 ? breakers_of(sampling.dry_sequence_breakers) : nullptr;
    parts->chain = make_chain(sampling, vocab_, tokenizer_->vocabulary(), breakers);
  }
  if (grammar != nullptr) {
    auto opened = open(*grammar);
    if (!opened) return opened.error();
    parts->grammar = std::move(*opened);
  }
  return SamplingPartsPtr(std::move(parts));
}

// The vocabulary is read once, and looked through once for the texts that most requests have in common.
DryBreakersPtr SamplingKit::breakers_of(const std::vector<std::string>& texts) {
  if (vocab_ == nullptr || texts.empty()) return nullptr;
  for (const auto& place : breakers_) {
    DryBreakersPtr known = place.load(std::memory_order_acquire);
    if (known != nullptr && known->texts() == texts) return known;
  }
  std::shared_ptr<const TokenTexts> tokens = texts_.load(std::memory_order_acquire);
  if (tokens == nullptr) {
    tokens = std::make_shared<const TokenTexts>(vocab_);
    texts_.store(tokens, std::memory_order_release);
  }
  auto made = std::make_shared<const DryBreakers>(texts, *tokens, *tokenizer_);
  const std::uint64_t place = breakers_made_.fetch_add(1, std::memory_order_relaxed);
  breakers_[place % breakers_.size()].store(made, std::memory_order_release);
  return made;
}

Result<GrammarGate> SamplingKit::open(const Grammar& grammar) {
  if (vocab_ == nullptr) return invalid_field("grammar", "grammar cannot be used with this model: it is simulated");
  auto entry = std::make_shared<Compiled>();
  for (auto& place : kept_) {
    const std::shared_ptr<const Compiled> known = place.load(std::memory_order_acquire);
    if (known == nullptr || known->source.text != grammar.text) continue;
    entry->program = known->program;
    if (known->source != grammar) continue;  // it begins elsewhere
    known->used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    found_.fetch_add(1, std::memory_order_relaxed);
    return known->gate.copy();
  }
  entry->source = grammar;
  if (auto ok = compile(*entry); !ok) return ok.error();
  compiled_.fetch_add(1, std::memory_order_relaxed);
  entry->used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  GrammarGate copy = entry->gate.copy();
  // Sixty-four of the largest would take gigabytes.
  constexpr std::size_t kKeptBytes = std::size_t{4} << 20;
  if (entry->program == nullptr || entry->program->automaton->bytes() <= kKeptBytes) keep(std::move(entry));
  return copy;
}

Result<void> SamplingKit::compile(Compiled& entry) {
  if (auto ok = check_grammar(entry.source); !ok) return ok.error();
  if (engine_ == GrammarEngine::llama) {
    auto compiled = compile_grammar(entry.source, vocab_);
    if (!compiled) return compiled.error();
    entry.gate = GrammarGate(std::move(*compiled));
    return {};
  }
  if (entry.program == nullptr) {
    auto program = compile_program(entry.source, *tokenizer_, tokens_);
    if (!program) return program.error();
    entry.program = std::move(*program);
  }
  auto gate = make_automaton_gate(entry.source, entry.program, forces_ ? tokenizer_ : nullptr);
  if (!gate) return gate.error();
  entry.gate = GrammarGate(std::move(*gate));
  return {};
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
