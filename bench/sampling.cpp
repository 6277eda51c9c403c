// sampling_cost: what choosing one token costs, by vocabulary and settings, with our Sampler and with llama.cpp's chain
// of the same steps. Rows are normal noise with a few likely tokens, as a model gives them; each is copied in before it
// is sampled, since both change it, and the price of the copy is taken off.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include <llama.h>

#include "model/sampler.h"

namespace {

using chasqui::Sampler;
using chasqui::SamplerScratch;
using chasqui::SamplingParams;
using chasqui::Token;

constexpr std::size_t kRows = 32;  // of a step; together they do not fit into a core's own cache
constexpr int kRounds = 15;

struct Setting {
  const char* name;
  SamplingParams params;
};

std::vector<Setting> settings() {
  SamplingParams greedy;
  greedy.temperature = 0;
  SamplingParams penalized;
  penalized.repeat_penalty = 1.1f;
  SamplingParams whole;
  whole.top_k = 0;
  whole.min_p = 0;
  return {{"greedy", greedy},
          {"default of chats", SamplingParams{}},
          {"… with a penalty", penalized},
          {"top-p 0.95 alone", whole}};
}

std::vector<float> rows_of(std::size_t vocabulary) {
  std::mt19937 generator(1);
  std::normal_distribution<float> noise(0, 2);
  std::vector<float> rows(kRows * vocabulary);
  for (float& logit : rows) logit = noise(generator);
  for (std::size_t i = 0; i < kRows * 8; ++i) rows[i / 8 * vocabulary + generator() % vocabulary] += 12;
  return rows;
}

// Median microseconds for a row of `each(row)`, over rounds of all rows.
double cost(const std::vector<float>& rows, std::size_t vocabulary, const std::function<void(std::span<float>)>& each) {
  std::vector<float> copy(vocabulary);
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t row = 0; row < kRows; ++row) {
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * vocabulary), vocabulary, copy.begin());
      each(copy);
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    rounds.push_back(took.count() / kRows);
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
  return rounds[kRounds / 2];
}

using Chain = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;

Chain chain_of(const SamplingParams& params, std::size_t vocabulary) {
  Chain chain(llama_sampler_chain_init(llama_sampler_chain_default_params()), &llama_sampler_free);
  const auto add = [&chain](llama_sampler* step) { llama_sampler_chain_add(chain.get(), step); };
  if (params.repeat_penalty != 1.0f) {
    const auto tokens = static_cast<std::int32_t>(vocabulary);
    add(llama_sampler_init_penalties(tokens, params.repeat_last_n, params.repeat_penalty, 0, 0));
  }
  if (params.temperature <= 0) {
    add(llama_sampler_init_greedy());
    return chain;
  }
  if (params.top_k > 0) add(llama_sampler_init_top_k(params.top_k));
  add(llama_sampler_init_top_p(params.top_p, 1));
  if (params.min_p > 0) add(llama_sampler_init_min_p(params.min_p, 1));
  add(llama_sampler_init_temp(params.temperature));
  add(llama_sampler_init_dist(1));
  return chain;
}

double cost_of_chain(const SamplingParams& params, const std::vector<float>& rows, std::size_t vocabulary) {
  const Chain chain = chain_of(params, vocabulary);
  std::vector<llama_token_data> candidates(vocabulary);
  return cost(rows, vocabulary, [&](std::span<float> row) {
    for (std::size_t i = 0; i < vocabulary; ++i) candidates[i] = {static_cast<Token>(i), row[i], 0.0f};
    llama_token_data_array array = {candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(chain.get(), &array);
    llama_sampler_accept(chain.get(), array.data[array.selected].id);
  });
}

double cost_of_ours(SamplingParams params, const std::vector<float>& rows, std::size_t vocabulary) {
  params.seed = 1;
  Sampler sampler(params, static_cast<chasqui::TokenCount>(vocabulary), {});
  SamplerScratch scratch;
  return cost(rows, vocabulary, [&](std::span<float> row) { sampler.accept(sampler.sample(row, scratch)); });
}

}  // namespace

int main() {
  std::printf("%-12s%-20s%12s%16s%10s\n", "vocabulary", "settings", "ours, µs", "llama.cpp, µs", "share");
  for (const std::size_t vocabulary : {4096u, 32000u, 151936u}) {
    const std::vector<float> rows = rows_of(vocabulary);
    const double copy = cost(rows, vocabulary, [](std::span<float>) {});
    for (const Setting& setting : settings()) {
      const double ours = cost_of_ours(setting.params, rows, vocabulary) - copy;
      const double theirs = cost_of_chain(setting.params, rows, vocabulary) - copy;
      std::printf("%-12zu%-20s%12.1f%16.1f%10.2f\n", vocabulary, setting.name, ours, theirs, ours / theirs);
    }
  }
  return 0;
}
