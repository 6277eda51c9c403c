#include "model/sampling_kit.h"

#include <algorithm>
#include <limits>
#include <string>

namespace chasqui {
namespace {

constexpr std::size_t kGrammarBytesMax = 256 * 1024;  // what a schema of 64 KiB may become
constexpr int kNestingMax = 100;
constexpr std::size_t kRulesMax = 10'000;

// Counts brackets and rules outside of literals, classes and comments.
struct GrammarShape {
  int nesting = 0;
  std::size_t rules = 0;
};

// From an opening quote or bracket to behind what closes it.
std::size_t skip_quoted(std::string_view text, std::size_t i) {
  const char end = text[i] == '[' ? ']' : text[i];
  for (++i; i < text.size() && text[i] != end; ++i) {
    if (text[i] == '\\') ++i;
  }
  return i;
}

GrammarShape shape_of(std::string_view text) {
  GrammarShape shape;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
      case '[': i = skip_quoted(text, i); break;
      case '#': i = std::min(text.find('\n', i), text.size()); break;
      case '(': shape.nesting = std::max(shape.nesting, ++depth); break;
      case ')': --depth; break;
      case '|':
      case '=': ++shape.rules; break;  // of ::=
      default: break;
    }
  }
  return shape;
}

}  // namespace

Result<void> check_grammar(const Grammar& grammar) {
  const std::string& text = grammar.text;
  if (text.size() > kGrammarBytesMax) {
    return invalid_field("grammar", "grammar may have at most " + std::to_string(kGrammarBytesMax) + " bytes");
  }
  if (text.find('\0') != std::string::npos) return invalid_field("grammar", "grammar must not contain zero bytes");
  const GrammarShape shape = shape_of(text);
  if (shape.nesting > kNestingMax) {
    return invalid_field("grammar", "grammar may be nested at most " + std::to_string(kNestingMax) + " levels deep");
  }
  if (shape.rules > kRulesMax) {
    return invalid_field("grammar", "grammar may have at most " + std::to_string(kRulesMax) + " alternatives");
  }
  return {};
}

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
