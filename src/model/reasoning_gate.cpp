#include "model/reasoning_gate.h"

#include <limits>
#include <memory>
#include <utility>

#include <llama.h>
#include <reasoning-budget.h>

#include "model/llama_tokenizer.h"

namespace chasqui {
namespace {

struct Gate {
  LlamaSamplerPtr budget;
  GrammarGate grammar;
  std::shared_ptr<const Flag> end_now;  // null where none was given, and once it was obeyed
};

Gate& gate_of(const llama_sampler* sampler) { return *static_cast<Gate*>(sampler->ctx); }

bool forcing(const Gate& gate) {
  return common_reasoning_budget_get_state(gate.budget.get()) == REASONING_BUDGET_FORCING;
}

// What is asked for before the model thinks is done when it begins to.
void end_if_asked(Gate& gate) {
  if (gate.end_now == nullptr || !gate.end_now->raised()) return;
  if (common_reasoning_budget_force(gate.budget.get())) gate.end_now.reset();
}

void accept(llama_sampler* sampler, llama_token token) {
  Gate& gate = gate_of(sampler);
  if (gate.grammar.present() && (!forcing(gate) || gate.grammar.allows(token))) gate.grammar.accept(token);
  llama_sampler_accept(gate.budget.get(), token);
}

void apply(llama_sampler* sampler, llama_token_data_array* row) {
  Gate& gate = gate_of(sampler);
  end_if_asked(gate);
  if (forcing(gate) || !gate.grammar.present()) return llama_sampler_apply(gate.budget.get(), row);
  // Finding all that is allowed takes as long as asking about a few hundred tokens.
  constexpr std::size_t kMany = 512;
  std::uint64_t work = GrammarMasks::kStepWork;
  const TokenMask* mask = row->size > kMany ? gate.grammar.mask(work) : nullptr;
  if (mask != nullptr && !mask->whole) mask = nullptr;
  for (std::size_t i = 0; i < row->size; ++i) {
    if (!(mask != nullptr ? mask->has(row->data[i].id) : gate.grammar.allows(row->data[i].id)))
      row->data[i].logit = -std::numeric_limits<float>::infinity();
  }
}

const char* name(const llama_sampler*) { return "reasoning-gate"; }
void destroy(llama_sampler* sampler) { delete &gate_of(sampler); }

llama_sampler_i interface() {
  llama_sampler_i out{};
  out.name = &name;
  out.accept = &accept;
  out.apply = &apply;
  out.free = &destroy;
  return out;
}

}  // namespace

GrammarGate limit_reasoning(GrammarGate grammar, const ReasoningLimit& limit, const Tokenizer& tokenizer) {
  // With the vocabulary the end waits for the last token of a character.
  const auto* known = dynamic_cast<const LlamaTokenizer*>(&tokenizer);
  const llama_vocab* vocab = known != nullptr ? known->vocab() : nullptr;
  auto gate = std::make_unique<Gate>();
  gate->budget.reset(common_reasoning_budget_init(vocab, {limit.begin}, limit.ends, limit.forced, limit.tokens));
  for (const Token token : limit.begun) llama_sampler_accept(gate->budget.get(), token);
  gate->grammar = std::move(grammar);
  gate->end_now = limit.end_now;
  static llama_sampler_i kInterface = interface();
  return GrammarGate(LlamaSamplerPtr(llama_sampler_init(&kInterface, gate.release())));
}

SamplingPartsPtr limit_reasoning(SamplingPartsPtr parts, const ReasoningLimit& limit, const Tokenizer& tokenizer) {
  auto own = std::dynamic_pointer_cast<LlamaSamplingParts>(std::move(parts));
  if (own == nullptr) own = std::make_shared<LlamaSamplingParts>();
  own->grammar = limit_reasoning(std::move(own->grammar), limit, tokenizer);
  return own;
}

}  // namespace chasqui
