#include "model/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chasqui {
namespace {

constexpr std::size_t kBlock = 64;
constexpr float kNone = -std::numeric_limits<float>::infinity();

Candidate candidate(std::size_t index, float logit) {
  return {static_cast<Token>(index), std::min(logit, std::numeric_limits<float>::max()), 0.0};
}

// Eight independent maxima, so that the compiler may keep them in vector registers: with one, the order of the
// comparisons would be fixed. `v > m` is false for NaN.
float block_largest(const float* values) {
  float lanes[8] = {kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone};
  for (std::size_t i = 0; i < kBlock; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  return *std::max_element(lanes, lanes + 8);
}

// Calls found(index, value) for every value for which wanted(value) holds, ids ascending; blocks whose largest value
// is not wanted are skipped. `wanted` must be monotonous and false for -infinity and NaN; found() may narrow it.
template <class Wanted, class Found>
void sweep(std::span<const float> logits, const Wanted& wanted, const Found& found) {
  std::size_t i = 0;
  for (; i + kBlock <= logits.size(); i += kBlock) {
    if (!wanted(block_largest(logits.data() + i))) continue;
    for (std::size_t j = i; j < i + kBlock; ++j) {
      if (wanted(logits[j])) found(j, logits[j]);
    }
  }
  for (; i < logits.size(); ++i) {
    if (wanted(logits[i])) found(i, logits[i]);
  }
}

}  // namespace

Token largest(std::span<const float> logits) {
  float best = kNone;
  Token token = -1;
  sweep(
      logits, [&](float value) { return value > best; },
      [&](std::size_t index, float value) {
        best = value;
        token = static_cast<Token>(index);
      });
  return token;
}

void gather_top_k(std::span<const float> logits, std::size_t k, std::vector<Candidate>& out) {
  out.clear();
  if (k == 0) return;
  // Collects everything above the k-th largest so far; that bound is brought up to date whenever the buffer is full.
  // An equal value that comes later is dropped, since the lower id has precedence.
  const std::size_t full = std::max<std::size_t>(4 * k, 256);
  float bound = kNone;
  const auto shrink = [&] {
    if (out.size() <= k) return;
    const auto kth = out.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(out.begin(), kth, out.end(), more_likely);
    bound = kth->logit;
    out.resize(k);
  };
  sweep(
      logits, [&](float value) { return value > bound; },
      [&](std::size_t index, float value) {
        out.push_back(candidate(index, value));
        if (out.size() >= full) shrink();
      });
  shrink();
}

void gather_at_least(std::span<const float> logits, float least, std::vector<Candidate>& out) {
  out.clear();
  sweep(
      logits, [&](float value) { return value >= least && value > kNone; },
      [&](std::size_t index, float value) { out.push_back(candidate(index, value)); });
}

}  // namespace chasqui
