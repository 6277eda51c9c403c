// How the next token is chosen. Defaults are llama-server's. Pure data, validated by make_request().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace chasqui {

struct LogitBias {
  Token token = 0;
  float bias = 0;  // added to the logit; -infinity bans the token
};

// The steps that narrow the vocabulary down before a token is drawn.
enum class SamplingStep : std::uint8_t {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,
  infill,      // joins candidates that begin alike, for code that is filled in; not among the default ones
  adaptive_p,  // draws near adaptive_target; not among the default ones
};

struct SamplingParams {
  float temperature = 0.8f;        // 0: greedy, the most likely token
  float dynatemp_range = 0.0f;     // the temperature is this much lower or higher, as the entropy is; 0: off
  float dynatemp_exponent = 1.0f;  // … along this curve
  std::int32_t top_k = 40;         // ≤ 0: the whole vocabulary
  float top_p = 0.95f;             // 1: off
  float min_p = 0.05f;             // 0: off
  float top_n_sigma = -1.0f;       // ≤ 0: off
  float typical_p = 1.0f;          // 1: off
  float xtc_probability = 0.0f;    // 0: off
  float xtc_threshold = 0.1f;      // above 0.5: off
  std::int32_t min_keep = 0;       // top_p, min_p, typical_p and xtc leave at least this many

  std::int32_t repeat_last_n = 64;  // how many of the last tokens the penalties look at; 0: off, -1: all
  float repeat_penalty = 1.0f;      // 1: off; divides positive and multiplies negative logits
  float frequency_penalty = 0.0f;   // subtracted once per occurrence
  float presence_penalty = 0.0f;    // subtracted once when the token occurred

  float dry_multiplier = 0.0f;           // 0: off
  float dry_base = 1.75f;                // the penalty grows by this with each token of a repetition
  std::int32_t dry_allowed_length = 2;   // repetitions up to this length cost nothing
  std::int32_t dry_penalty_last_n = 64;  // how far back repetitions are looked for; 0: off, -1: everywhere
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  std::int32_t mirostat = 0;  // 1, 2: that version of Mirostat instead of all other steps but the temperature
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
  float adaptive_target = -1.0f;  // for SamplingStep::adaptive_p; below 0: off
  float adaptive_decay = 0.9f;

  std::optional<std::vector<SamplingStep>> steps;  // none: default_sampling_steps()

  std::optional<std::uint32_t> seed;  // none: a random one
  bool ignore_eos = false;            // end-of-generation tokens are banned
  std::int32_t min_tokens = 0;        // … until so many tokens were generated
  std::vector<LogitBias> logit_bias;

  // How many of the most likely tokens are told with each token, besides itself; -1: nothing is told.
  std::int32_t chances = -1;
  bool chances_after = false;  // as the steps have left them, not as the model gave them
};

// In llama.cpp's order.
std::span<const SamplingStep> default_sampling_steps();
std::span<const SamplingStep> steps_of(const SamplingParams& params);  // its own, or the default ones
bool has_step(const SamplingParams& params, SamplingStep step);
std::string_view name(SamplingStep step);

// One row for each number that a client may send: the only place where their limits are written down.
struct SamplingRule {
  std::string_view field;
  double minimum;
  double maximum;
  float SamplingParams::*real = nullptr;  // one of the two
  std::int32_t SamplingParams::*whole = nullptr;

  double read(const SamplingParams& params) const {
    return real != nullptr ? static_cast<double>(params.*real) : static_cast<double>(params.*whole);
  }
};
std::span<const SamplingRule> sampling_rules();

// What an answer has to look like: a grammar in llama.cpp's notation (GBNF).
struct Grammar {
  std::string text;
  // A lazy one is in force from the first match of a pattern, or from one of the tokens.
  bool lazy = false;
  std::vector<std::string> trigger_patterns;
  std::vector<Token> trigger_tokens;
  std::vector<Token> begun;  // with one that is not lazy: tokens of the prompt that it describes already

  bool operator==(const Grammar&) const = default;
};

// What the model has made ready for one request before it was submitted, because it may take long: grammar, chains of
// samplers. The worker that samples takes it out, once; no other code looks into it.
class SamplingParts {
 public:
  virtual ~SamplingParts() = default;
};
using SamplingPartsPtr = std::shared_ptr<SamplingParts>;

// A token, and how likely it was.
struct TokenChance {
  Token token = 0;
  float logprob = 0;  // natural logarithm; -infinity: impossible
};

}  // namespace chasqui
