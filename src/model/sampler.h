// Chooses the next token of one sequence from a row of logits. The order is llama.cpp's default one: logit bias,
// penalties, top-n-sigma, top-k, top-p, min-p, temperature, draw; or logit bias, temperature and Mirostat 2. One per
// sequence; one thread at a time.
//
// Reproducible: the same seed, parameters, accepted tokens and logits give the same token, whatever else the process
// does. The generator is std::mt19937, seeded with the 32-bit seed; a draw with a temperature takes exactly two of its
// 32-bit outputs, a greedy one none; where a grammar refuses what was drawn, there is a second draw. llama.cpp draws
// differently, so its tokens for a seed are others.
//
// The mask of a grammar may take longer than there is time for after one step: then, where the caller can wait, the
// token is put off, and drawn from the same row when the caller asks again. What is drawn is the same.
//
// Sums over a whole vocabulary are of floats, within 1e-6; where top-p cuts is exact but for that. They are the same on
// every machine (model/row_kernels).
//
// A row of a broken model is survived: NaN counts as -infinity, +infinity as the largest float, and where no logit is
// left, the lowest token id that the request has not banned is chosen.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/sampling.h"
#include "core/types.h"
#include "model/candidates.h"
#include "model/logit_cut.h"
#include "model/logit_row.h"
#include "model/penalty_window.h"
#include "model/row_steps.h"
#include "model/sampling_parts.h"

namespace chasqui {

// Buffers that the samplers of one thread share; nothing in them outlives a call but their capacity.
struct SamplerScratch {
  LogitRow row;
  LogitRow listed;  // of some of its tokens
  LogitCut cut;
  TypicalCut typical;
  std::vector<Candidate> candidates;
  // The row itself is what was drawn from: all that are at least `least`, with weights that add up to `mass`, which are
  // known where the request asks for SamplingParams::chances_after. Otherwise it was the candidates.
  bool drew_row = false;
  float least = 0;
  double mass = 0;
  float scale = 1;  // of logits, in these weights
  // The caller asks again for a token that is put off. Work that is left for masks until it does; each of them may take
  // so much in any case.
  bool can_wait = false;
  std::uint64_t mask_work = 0;
  std::uint64_t mask_least = GrammarMasks::kLeastWork;
  std::vector<Candidate> allowed;  // by the grammar
  TokenBits mask;                  // … where it is not to be had as bits
  std::vector<float> masked;       // the row without the others
  std::vector<float> changed_row;  // the row as steps leave it, where its own logits are asked for after that
  std::vector<float> logits;       // of candidates
  // Of the row as the model gave it.
  double log_sum = 0;
  std::vector<Candidate> likely;
  std::vector<std::pair<Token, float>> changed;  // logits that the request has changed
};

// How likely `token` is as the model says it, then the `wanted` most likely ones.
void tell_likelihood(std::span<float> logits, Token token, std::size_t wanted, SamplerScratch& scratch,
                     std::vector<TokenChance>& out);

class Sampler {
 public:
  static constexpr Token kPutOff = -1;

  // REQUIRES: params as make_request() leaves them, with a seed and tokens inside the vocabulary.
  // What `parts` holds is taken out of it; null where the request needs none.
  Sampler(const SamplingParams& params, TokenCount vocabulary, std::span<const Token> end_of_generation,
          SamplingParts* parts = nullptr);

  // Tells the token that sample() chose.
  void accept(Token token);
  // What comes next whatever is drawn, behind `last`, which was accepted, up to the first token whose likelihood the
  // request has changed; nothing where it asks how likely tokens are. Valid until the next call, of any sampler of the
  // thread.
  std::span<const Token> forced(Token last) const;
  // Tells a token of the answer that it goes on with, which another sampler has chosen. What the grammar does not take
  // ends nothing.
  void follow(Token token);
  // … and that it drew so many of them. Takes as much from the generator as it did, but for the second draws where a
  // grammar refused the first: which those were is not known.
  void skip_draws(std::size_t tokens);
  // Behind follow() and skip_draws() it draws as the other would have; not with a temperature and Mirostat, or one of
  // libllama's chains: their state comes from what was drawn from.
  // Tells the tokens that the model has been given before the first sample(): what the penalties look at.
  void accept(std::span<const Token> tokens);

  // Does not accept() the token. Applies bias and penalties to the row in place. With a grammar the token is one that
  // it allows, or where it allows none, one that ends the generation. With SamplingParams::chances, `chances` gets the
  // token's and those of the most likely ones. Where SamplerScratch::can_wait, it may be kPutOff: then this is to be
  // called again, with the same row, before anything else.
  // REQUIRES: logits.size() == vocabulary
  Token sample(std::span<float> logits, SamplerScratch& scratch, std::vector<TokenChance>* chances = nullptr);

  // What sample() would draw from: most likely first, probabilities adding up to 1, one candidate when greedy. A view
  // into `scratch`. Takes nothing from the generator; changes the row as sample() does.
  std::span<const Candidate> distribution(std::span<float> logits, SamplerScratch& scratch) const;

  // What a token may take is bounded by counted work, not by time.
  bool counts_work() const { return !chain_.present() && (!grammar_.present() || grammar_.has_masks()); }

 private:
  Token draw(SamplerScratch& scratch);
  Token draw_in_steps(SamplerScratch& scratch, double drawn);
  bool list_for_chain(SamplerScratch& scratch) const;
  bool lists_top_k(const LogitRow& row) const;
  float sigma_bound(const LogitRow& row) const;
  Token draw_of_top_k(SamplerScratch& scratch, float bound, double drawn);
  Token draw_row(LogitRow& row, float floor, SamplerScratch& scratch, double drawn);
  std::optional<Token> draw_without_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn);
  Token draw_before_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn);
  std::optional<Token> draw_around_cut(LogitRow& row, float least, SamplerScratch& scratch, double drawn);
  Token draw_down_to(const Candidate& last, LogitRow& row, SamplerScratch& scratch, double drawn) const;
  Token draw_mirostat(SamplerScratch& scratch, double drawn);
  Token draw_candidate(SamplerScratch& scratch);
  Token draw_allowed(std::span<float> logits, SamplerScratch& scratch);
  const TokenMask* find_mask(SamplerScratch& scratch);
  Token draw_masked(SamplerScratch& scratch);
  Token draw_listed(std::span<const Token> list, SamplerScratch& scratch);
  void find_likely_allowed(SamplerScratch& scratch) const;
  Token end_without_way(SamplerScratch& scratch);
  void ask_about_likely(SamplerScratch& scratch) const;
  void note_chances(SamplerScratch& scratch) const;
  static void tell_chances(Token token, std::span<const float> logits, SamplerScratch& scratch,
                           std::vector<TokenChance>& out);
  void tell_drawn_chances(Token token, SamplerScratch& scratch, std::vector<TokenChance>& out) const;
  void list_drawn(LogitRow& row, Token token, SamplerScratch& scratch) const;
  bool adjusts() const;
  void adjust(std::span<float> logits) const;
  bool few_candidates() const;
  void build(SamplerScratch& scratch) const;
  float narrow(LogitRow& row, float least, SamplerScratch& scratch) const;
  float narrow_by_top_k(LogitRow& row, float floor, SamplerScratch& scratch) const;
  Token fallback() const;
  float min_p_bound(float top) const;
  double weight_of_min_p(const std::vector<Candidate>& candidates, float top) const;
  std::size_t keep_min() const { return static_cast<std::size_t>(params_.min_keep > 1 ? params_.min_keep : 1); }
  bool greedy() const { return !(params_.temperature > 0.0f) && has_step(params_, SamplingStep::temperature); }

  // Constant after construction.
  SamplingParams params_;
  TokenCount vocabulary_;
  std::vector<Token> ends_;      // end-of-generation tokens
  std::vector<LogitBias> bias_;  // the request's, and the end-of-generation tokens under ignore_eos
  bool penalties_;

  std::mt19937 generator_;
  SamplerChain chain_;             // draws instead of us, if it is there
  std::optional<RowSteps> steps_;  // … unless these do, of a row that is too large for it
  GrammarGate grammar_;            // refuses, if it is there
  bool allowed_ = true;            // the grammar takes the last token that was chosen
  int put_off_ = 0;                // how often the token was, that was drawn first and refused
  TokenCount generated_ = 0;
  double surprise_max_ = 0;  // Mirostat's mu: bits that a token may say at most
  PenaltyWindow window_;
};

}  // namespace chasqui
