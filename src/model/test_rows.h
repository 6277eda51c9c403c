// For the tests of this folder: rows for a model, and what comes out of them. One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "model/heads.h"
#include "model/model.h"

namespace chasqui {

// The last one with logits.
inline void add_rows(Batch& batch, std::int32_t slot, TokenCount position, std::span<const Token> tokens) {
  for (Token token : tokens) batch.rows.push_back({token, position++, SlotId{slot}, false});
  batch.rows.back().output = true;
}

inline std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

inline Token best(std::span<const float> row) {
  return static_cast<Token>(std::ranges::max_element(row) - row.begin());
}

// Logits after the last token.
inline std::vector<float> run(Model& model, std::int32_t slot, TokenCount position, std::span<const Token> tokens) {
  Batch batch;
  add_rows(batch, slot, position, tokens);
  CHECK(model.decode(batch) == DecodeStatus::ok);
  if (model.heads() != nullptr) model.heads()->learn(batch);
  return copy(model.logits(static_cast<std::int32_t>(batch.rows.size()) - 1));
}

// Root mean square of the difference, relative to the deviation of the logits themselves.
inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double square = 0, own = 0, mean = 0;
  for (float x : a) mean += x / static_cast<double>(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    square += std::pow(a[i] - b[i], 2);
    own += std::pow(a[i] - mean, 2);
  }
  return std::sqrt(square / own);
}
constexpr double kClose = 0.03;

inline std::vector<Token> greedy(Model& model, std::int32_t slot, TokenCount position, std::vector<float> logits,
                                 int count) {
  std::vector<Token> said;
  for (int i = 0; i < count; ++i) {
    said.push_back(best(logits));
    logits = run(model, slot, position++, std::span(&said.back(), 1));
  }
  return said;
}

}  // namespace chasqui
