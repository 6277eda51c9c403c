// How the next token is chosen. Defaults are llama-server's. Pure data, validated by make_request().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.h"

namespace chasqui {

struct LogitBias {
  Token token = 0;
  float bias = 0;  // added to the logit; -infinity bans the token
};

struct SamplingParams {
  float temperature = 0.8f;   // 0: greedy, the most likely token
  std::int32_t top_k = 40;    // ≤ 0: the whole vocabulary
  float top_p = 0.95f;        // 1: off
  float min_p = 0.05f;        // 0: off
  std::int32_t min_keep = 0;  // top_p and min_p leave at least this many

  std::int32_t repeat_last_n = 64;  // how many of the last tokens the penalties look at; 0: off, -1: all
  float repeat_penalty = 1.0f;      // 1: off; divides positive and multiplies negative logits
  float frequency_penalty = 0.0f;   // subtracted once per occurrence
  float presence_penalty = 0.0f;    // subtracted once when the token occurred

  std::optional<std::uint32_t> seed;  // none: a random one
  bool ignore_eos = false;            // end-of-generation tokens are banned
  std::vector<LogitBias> logit_bias;
};

}  // namespace chasqui
