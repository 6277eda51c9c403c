// The samplers of libllama that one request needs besides our own Sampler: a grammar, and a chain where its parameters
// ask for more than temperature, penalties, top-k, top-p and min-p. Made in the offload pool, because grammars are
// compiled and the words that break a repetition looked for in the whole vocabulary; taken out once by the worker.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "core/sampling.h"
#include "model/candidates.h"
#include "model/chain_view.h"
#include "model/dry_breakers.h"
#include "model/logit_row.h"
#include "model/penalty_window.h"
#include "model/token_gate.h"

struct llama_sampler;
struct llama_token_data_array;
struct llama_vocab;

namespace chasqui {

struct FreeLlamaSampler {
  void operator()(llama_sampler* sampler) const;
};
using LlamaSamplerPtr = std::unique_ptr<llama_sampler, FreeLlamaSampler>;

// Draws with libllama's samplers, in the order that the request wishes. One thread at a time.
class SamplerChain {
 public:
  SamplerChain() = default;
  explicit SamplerChain(LlamaSamplerPtr chain, const ChainView& view = {})
      : chain_(std::move(chain)), view_(view), changed_(view.look_back) {}

  bool present() const { return chain_ != nullptr; }
  // -1 when no logit is above -infinity. `left` gets what it was drawn from.
  Token draw(std::span<const float> logits, std::vector<Candidate>& left);
  // As from a row that has no other tokens. REQUIRES: ids ascending
  Token draw(std::span<const Candidate> candidates, std::vector<Candidate>& left);
  void accept(Token token);
  // Does its penalties and DRY to the row, which change the logits of tokens in changed() and of no others.
  // REQUIRES: they come before all other steps
  void change(LogitRow& row) const;

  const ChainView& view() const { return view_; }
  // The tokens whose logits may be changed first.
  const PenaltyWindow& changed() const { return changed_; }

 private:
  Token draw_thread_row(std::vector<Candidate>& left);
  static Token only(Candidate candidate, std::vector<Candidate>& left);

  LlamaSamplerPtr chain_;
  ChainView view_;
  PenaltyWindow changed_{0};
};

// Which tokens may come next. One thread at a time.
class GrammarGate {
 public:
  GrammarGate() = default;
  explicit GrammarGate(LlamaSamplerPtr grammar) : grammar_(std::move(grammar)) {}
  explicit GrammarGate(std::unique_ptr<TokenGate> own) : own_(std::move(own)) {}

  bool present() const { return grammar_ != nullptr || own_ != nullptr; }
  bool allows(Token token) const;
  // Takes out those that may not come next; keeps the order of the others.
  void filter(std::vector<Candidate>& candidates) const;
  bool has_masks() const { return own_ != nullptr; }
  // All that may come next; null where only asking one by one tells, or all may come. With so much work at most; see
  // TokenGate.
  const TokenMask* mask(std::uint64_t& work) const { return own_ != nullptr ? own_->mask(work) : nullptr; }
  // What must come next behind `last`, which was accepted; see TokenGate.
  std::span<const Token> forced(Token last) const {
    return own_ != nullptr ? own_->forced(last) : std::span<const Token>();
  }
  // REQUIRES: allows(token)
  void accept(Token token);
  // With its own state.
  GrammarGate copy() const;

 private:
  bool asked(llama_token_data_array& row) const;

  // One of the two, or none.
  LlamaSamplerPtr grammar_;
  std::unique_ptr<TokenGate> own_;
};

class LlamaSamplingParts final : public SamplingParts {
 public:
  SamplerChain chain;
  GrammarGate grammar;
};

// These parameters need a SamplerChain.
bool needs_chain(const SamplingParams& params);

// `vocab` may be null: then there is no infill. `breakers` may be: then nothing ends a repetition for DRY.
SamplerChain make_chain(const SamplingParams& params, const llama_vocab* vocab, TokenCount vocabulary,
                        const DryBreakersPtr& breakers = {});

// A grammar that was compiled once can be copied; the copy has its own state.
Result<LlamaSamplerPtr> compile_grammar(const Grammar& grammar, const llama_vocab* vocab);
LlamaSamplerPtr copy_sampler(const llama_sampler& sampler);

}  // namespace chasqui
