// Chooses the next token of one sequence from a row of logits. The order is llama.cpp's default one: logit bias,
// penalties, top-k, top-p, min-p, temperature, draw. One per sequence; one thread at a time.
//
// Reproducible: the same seed, parameters, accepted tokens and logits give the same token, whatever else the process
// does. The generator is std::mt19937, seeded with the 32-bit seed; a sample() with a temperature takes exactly two of
// its 32-bit outputs, a greedy one none. llama.cpp draws differently, so its tokens for a seed are others.
//
// A row of a broken model is survived: NaN counts as -infinity, +infinity as the largest float, and where no logit is
// left, the lowest token id that the request has not banned is chosen.
#pragma once

#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/sampling.h"
#include "core/types.h"
#include "model/candidates.h"

namespace chasqui {

// Buffers that the samplers of one thread share; nothing in them outlives a call but their capacity.
struct SamplerScratch {
  std::vector<Candidate> candidates;
};

class Sampler {
 public:
  // REQUIRES: params as make_request() leaves them, with a seed and tokens inside the vocabulary.
  Sampler(const SamplingParams& params, TokenCount vocabulary, std::span<const Token> end_of_generation);

  // Tells every token that the model has been given, the prompt first: what the penalties look at.
  void accept(Token token) {
    if (penalties_) remember(token);
  }
  void accept(std::span<const Token> tokens);

  // Does not accept() the token. Applies bias and penalties to the row in place.
  // REQUIRES: logits.size() == vocabulary
  Token sample(std::span<float> logits, SamplerScratch& scratch);

  // What sample() would draw from: most likely first, probabilities adding up to 1, one candidate when greedy. A view
  // into `scratch`. Takes nothing from the generator; changes the row as sample() does.
  std::span<const Candidate> distribution(std::span<float> logits, SamplerScratch& scratch) const;

 private:
  void remember(Token token);
  void adjust(std::span<float> logits) const;
  void build(std::span<float> logits, std::vector<Candidate>& candidates) const;
  float min_p_bound(float top) const;
  Token fallback() const;
  std::size_t keep_min() const { return static_cast<std::size_t>(params_.min_keep > 1 ? params_.min_keep : 1); }
  bool greedy() const { return !(params_.temperature > 0.0f); }

  // Constant after construction.
  SamplingParams params_;
  TokenCount vocabulary_;
  std::vector<LogitBias> bias_;  // the request's, and the end-of-generation tokens under ignore_eos
  bool penalties_;

  std::mt19937 generator_;
  // The penalty window: how often each token is in it, and, when it is bounded, the tokens as a ring.
  std::unordered_map<Token, std::int32_t> counts_;
  std::vector<Token> window_;
  std::size_t oldest_ = 0;
};

}  // namespace chasqui
