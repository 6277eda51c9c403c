// What samplers are tested with: rows of noise, and a sampler by the book. Tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "model/sampler.h"

namespace chasqui {

inline std::vector<float> random_row(std::size_t size, unsigned seed, float deviation = 3.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> row(size);
  for (float& value : row) value = normal(generator);
  return row;
}

// Chooses parameters.
class Dice {
 protected:
  template <class... Values>
  auto one_of(Values... values) {
    const std::array all{values...};
    return all[random_() % all.size()];
  }

  std::mt19937 random_{5};
};

inline SamplingParams plain() {
  SamplingParams params;
  params.temperature = 1.0f;
  params.top_k = 0;
  params.top_p = 1.0f;
  params.min_p = 0.0f;
  params.seed = 1;
  return params;
}

inline std::map<Token, double> distribution_of(const Sampler& sampler, std::vector<float> row) {
  SamplerScratch scratch;
  std::map<Token, double> probabilities;
  for (const Candidate& c : sampler.distribution(row, scratch)) probabilities[c.token] = c.probability;
  return probabilities;
}

// The same by the book: one step after the other over the whole vocabulary, everything sorted, in double.
inline std::map<Token, double> reference(const SamplingParams& p, const std::vector<float>& row) {
  std::vector<std::pair<double, Token>> all;
  for (std::size_t i = 0; i < row.size(); ++i) all.emplace_back(-row[i], static_cast<Token>(i));
  std::ranges::sort(all);
  if (p.top_n_sigma > 0) {
    double sum = 0;
    for (const auto& [negative, token] : all) sum -= negative;
    const double mean = sum / static_cast<double>(all.size());
    double squares = 0;
    for (const auto& [negative, token] : all) squares += (mean + negative) * (mean + negative);
    const double sigma = std::sqrt(squares / static_cast<double>(all.size()));
    const double least = -all.front().first - static_cast<double>(p.top_n_sigma) * sigma;
    std::erase_if(all, [least](const auto& each) { return -each.first < least; });
  }
  if (p.top_k > 0) all.resize(std::min(all.size(), static_cast<std::size_t>(p.top_k)));
  const auto weights = [&](double temperature) {
    std::vector<double> w;
    for (const auto& [negative, token] : all) w.push_back(std::exp((all.front().first - negative) / temperature));
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (double& value : w) value /= sum;
    return w;
  };
  const auto keep = static_cast<std::size_t>(std::max(p.min_keep, 1));
  std::vector<double> w = weights(1.0);
  double sum = 0;
  for (std::size_t i = 0; p.top_p < 1.0f && i < all.size(); ++i) {
    sum += w[i];
    if (sum >= static_cast<double>(p.top_p) && i + 1 >= keep) all.resize(i + 1);
  }
  w = weights(1.0);
  for (std::size_t i = keep; p.min_p > 0.0f && i < all.size(); ++i) {
    if (w[i] < static_cast<double>(p.min_p) * w[0]) all.resize(i);
  }
  w = weights(p.temperature);
  std::map<Token, double> result;
  for (std::size_t i = 0; i < all.size(); ++i) result[all[i].second] = w[i];
  return result;
}

}  // namespace chasqui
