#include "model/sampling_parts.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string_view>

#include <llama.h>

#include "base/limits.h"
#include "base/log.h"
#include "model/lazy_grammar.h"
#include "model/llama_runtime.h"
#include "model/logit_row.h"
#include "model/repetition_steps.h"
#include "model/whole_row_steps.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

// Rows of a vocabulary are large, and a thread samples one sequence after the other.
std::vector<llama_token_data>& thread_row() {
  thread_local std::vector<llama_token_data> row;
  return row;
}

bool default_order(const SamplingParams& params) {
  return std::ranges::equal(steps_of(params), default_sampling_steps());
}

// It ends the text where it is not sure, and ends the process where there is no token for that, or one with a longer
// text than its buffer has room for.
llama_sampler* make_infill_step(const llama_vocab* vocab) {
  constexpr std::size_t kTokenText = 512;
  if (vocab == nullptr) return nullptr;
  if (llama_vocab_eot(vocab) == LLAMA_TOKEN_NULL && llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL) return nullptr;
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    if (std::string_view(llama_vocab_get_text(vocab, token)).size() > kTokenText) return nullptr;
  }
  return llama_sampler_init_infill(vocab);
}

llama_sampler* make_step(SamplingStep step, const SamplingParams& params, const llama_vocab* vocab,
                         const DryBreakersPtr& breakers) {
  const auto min_keep = static_cast<std::size_t>(std::max(params.min_keep, 0));
  switch (step) {
    case SamplingStep::penalties: return make_penalties_step(params);
    case SamplingStep::dry: return make_dry_step(params, breakers);
    case SamplingStep::top_n_sigma: return llama_sampler_init_top_n_sigma(params.top_n_sigma);
    case SamplingStep::top_k: return llama_sampler_init_top_k(params.top_k);
    case SamplingStep::typical_p: return make_typical_step(params);
    case SamplingStep::top_p: return llama_sampler_init_top_p(params.top_p, min_keep);
    case SamplingStep::min_p: return llama_sampler_init_min_p(params.min_p, min_keep);
    case SamplingStep::xtc: return make_xtc_step(params);
    case SamplingStep::temperature:
      return params.dynatemp_range > 0 ? make_dynamic_temperature_step(params)
                                       : llama_sampler_init_temp(params.temperature);
    case SamplingStep::infill: return make_infill_step(vocab);
    case SamplingStep::adaptive_p: return nullptr;  // it draws, so it comes last
  }
  return nullptr;
}

}  // namespace

void FreeLlamaSampler::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }

bool needs_chain(const SamplingParams& params) {
  if (params.mirostat != 0) return params.mirostat != 2;
  return !default_order(params) || params.typical_p < 1 || params.dynatemp_range > 0 || params.dry_multiplier > 0 ||
         params.xtc_probability > 0;
}

SamplerChain make_chain(const SamplingParams& params, const llama_vocab* vocab, TokenCount vocabulary,
                        const DryBreakersPtr& breakers) {
  llama_sampler_chain_params how = llama_sampler_chain_default_params();
  how.no_perf = true;
  LlamaSamplerPtr chain(llama_sampler_chain_init(how));
  const auto add = [&chain](llama_sampler* sampler) {
    if (sampler != nullptr) llama_sampler_chain_add(chain.get(), sampler);
  };
  const std::uint32_t seed = params.seed.value_or(0);
  if (params.mirostat == 1) {
    add(llama_sampler_init_temp(params.temperature));
    constexpr std::int32_t kTokensLookedAt = 100;  // of the paper
    add(llama_sampler_init_mirostat(vocabulary, seed, params.mirostat_tau, params.mirostat_eta, kTokensLookedAt));
    return SamplerChain(std::move(chain), chain_view(params));
  }
  for (const SamplingStep step : steps_of(params)) {
    // It compares each candidate with each other one: of a whole vocabulary that would take minutes for one token.
    if (step == SamplingStep::infill) add(llama_sampler_init_top_k(kCountLimit<"infill_candidates">));
    add(make_step(step, params, vocab, breakers));
  }
  add(has_step(params, SamplingStep::adaptive_p)
          ? llama_sampler_init_adaptive_p(params.adaptive_target, params.adaptive_decay, seed)
          : llama_sampler_init_dist(seed));
  return SamplerChain(std::move(chain), chain_view(params));
}

Token SamplerChain::draw(std::span<const float> logits, std::vector<Candidate>& left) {
  std::vector<llama_token_data>& row = thread_row();
  row.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > LogitRow::kBanned) {
      row.push_back({static_cast<llama_token>(i), std::min(logits[i], std::numeric_limits<float>::max()), 0.0f});
    }
  }
  const Token drawn = draw_thread_row(left);
  if (drawn < 0 || logits[static_cast<std::size_t>(drawn)] > LogitRow::kBanned) return drawn;
  const auto best = std::ranges::max_element(logits);
  return only({static_cast<Token>(best - logits.begin()), *best}, left);
}

Token SamplerChain::draw(std::span<const Candidate> candidates, std::vector<Candidate>& left) {
  std::vector<llama_token_data>& row = thread_row();
  row.clear();
  for (const Candidate& c : candidates) row.push_back({c.token, c.logit, 0.0f});
  const Token drawn = draw_thread_row(left);
  if (drawn < 0 || std::ranges::find(candidates, drawn, &Candidate::token) != candidates.end()) return drawn;
  return only(*std::ranges::max_element(candidates, {}, &Candidate::logit), left);
}

// `infill` draws a token that ends the text also where that is none of the row's, which a grammar, ignore_eos or
// min_tokens have banned.
Token SamplerChain::only(Candidate candidate, std::vector<Candidate>& left) {
  candidate.probability = 1;
  left.assign(1, candidate);
  return candidate.token;
}

Token SamplerChain::draw_thread_row(std::vector<Candidate>& left) {
  std::vector<llama_token_data>& row = thread_row();
  left.clear();
  if (row.empty()) return -1;
  llama_token_data_array array{row.data(), row.size(), -1, false};
  llama_sampler_apply(chain_.get(), &array);
  if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) return -1;
  for (std::size_t i = 0; i < array.size; ++i) {
    const llama_token_data& data = array.data[i];
    if (data.p > 0) left.push_back({data.id, data.logit, static_cast<double>(data.p)});
  }
  return array.data[array.selected].id;
}

void SamplerChain::change(LogitRow& row) const {
  std::vector<llama_token_data>& list = thread_row();
  list.clear();
  for (const auto& [token, times] : changed_.counts()) {
    if (row[token] > LogitRow::kBanned) list.push_back({token, std::min(row[token], LogitRow::kMost), 0.0f});
  }
  if (list.empty()) return;
  llama_token_data_array array{list.data(), list.size(), -1, false};
  for (std::int32_t i = 0; i < llama_sampler_chain_n(chain_.get()); ++i) {
    llama_sampler* const step = llama_sampler_chain_get(chain_.get(), i);
    const std::string_view name = llama_sampler_name(step);
    if (name == "penalties" || name == "dry") llama_sampler_apply(step, &array);
  }
  // None is banned for that: a row of what a grammar allows may have no others.
  for (std::size_t i = 0; i < array.size; ++i) {
    row.set(array.data[i].id, std::max(LogitRow::kLeast, array.data[i].logit));
  }
}

void SamplerChain::accept(Token token) {
  llama_sampler_accept(chain_.get(), token);
  changed_.push(token);
}

bool GrammarGate::allows(Token token) const {
  if (own_ != nullptr) return own_->allows(token);
  llama_token_data one{token, 1.0f, 0.0f};
  llama_token_data_array array{&one, 1, -1, false};
  return asked(array) && one.logit > LogitRow::kBanned;
}

// False where that takes longer than the thread's budget: nothing is allowed then.
bool GrammarGate::asked(llama_token_data_array& row) const {
  try {
    llama_sampler_apply(grammar_.get(), &row);
    return true;
  } catch (const std::exception& failed) {
    log_debug("a grammar was not asked to its end", {{"reason", failed.what()}});
    return false;
  }
}

void GrammarGate::filter(std::vector<Candidate>& candidates) const {
  if (own_ != nullptr) {
    std::erase_if(candidates, [this](const Candidate& candidate) { return !own_->allows(candidate.token); });
    return;
  }
  std::vector<llama_token_data>& row = thread_row();
  row.clear();
  for (const Candidate& candidate : candidates) row.push_back({candidate.token, 1.0f, 0.0f});
  llama_token_data_array array{row.data(), row.size(), -1, false};
  if (!asked(array)) return candidates.clear();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].logit > LogitRow::kBanned) candidates[kept++] = candidates[i];
  }
  candidates.resize(kept);
}

void GrammarGate::accept(Token token) {
  if (own_ != nullptr) {
    if (own_->accept(token)) return;
    // A lazy grammar may find at its trigger that what has been said already does not fit.
    log_debug("a grammar did not take a token", {{"token", token}});
    return own_.reset();
  }
  try {
    llama_sampler_accept(grammar_.get(), token);
  } catch (const std::exception& failed) {
    // A lazy grammar may find at its trigger that what has been said already does not fit.
    log_debug("a grammar did not take a token", {{"token", token}, {"reason", failed.what()}});
    grammar_.reset();
  }
}

Result<LlamaSamplerPtr> compile_grammar(const Grammar& grammar, const llama_vocab* vocab) {
  take_llama_error();
  LlamaSamplerPtr sampler;
  const WorkBudget budget(kTimeLimit<"schema_seconds">);
  try {
    sampler.reset(llama_sampler_init_grammar(vocab, grammar.text.c_str(), "root"));
    if (sampler != nullptr && grammar.lazy) {
      GrammarTriggers triggers{
          std::make_shared<TriggerPatterns>(grammar.trigger_patterns.begin(), grammar.trigger_patterns.end()),
          grammar.trigger_tokens};
      sampler = make_lazy_grammar(std::move(sampler), std::move(triggers), vocab);
    }
    if (sampler != nullptr) {
      for (const Token token : grammar.begun) llama_sampler_accept(sampler.get(), token);
    }
  } catch (const std::exception& failed) {
    return invalid_field("grammar", std::string("grammar cannot be used: ") + failed.what());
  }
  if (sampler == nullptr) {
    const std::string why = take_llama_error();
    return invalid_field("grammar",
                         "grammar must be valid GBNF with a rule named root" + (why.empty() ? "" : ": " + why));
  }
  return sampler;
}

GrammarGate GrammarGate::copy() const {
  if (own_ != nullptr) return GrammarGate(own_->copy());
  return grammar_ != nullptr ? GrammarGate(copy_sampler(*grammar_)) : GrammarGate();
}

LlamaSamplerPtr copy_sampler(const llama_sampler& sampler) { return LlamaSamplerPtr(llama_sampler_clone(&sampler)); }

}  // namespace chasqui
