// sampling_cost: what choosing one token costs, by vocabulary and settings, with our Sampler and with llama.cpp's chain
// of the same steps. Rows are normal noise with a few likely tokens, as a model gives them; each is copied in before it
// is sampled, since both change it, and the price of the copy is taken off. The last column is of the best of our
// instruction sets.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include <llama.h>

#include "base/thread_time.h"
#include "model/sampler.h"
#include "model/sampling_parts.h"

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

template <class Change>
SamplingParams changed(SamplingParams params, const Change& change) {
  change(params);
  return params;
}

std::vector<Setting> settings() {
  SamplingParams greedy;
  greedy.temperature = 0;
  SamplingParams penalized;
  penalized.repeat_penalty = 1.1f;
  SamplingParams told;
  told.chances = 5;
  SamplingParams whole;
  whole.top_k = 0;
  whole.min_p = 0;
  SamplingParams min_p;
  min_p.top_k = 0;
  min_p.top_p = 1;
  SamplingParams many = SamplingParams{};
  many.top_k = 5000;
  SamplingParams wide = many;
  wide.min_p = 0;
  SamplingParams most = wide;
  most.top_k = 30000;
  SamplingParams hot = whole;
  hot.temperature = 1.5;
  SamplingParams hottest = whole;
  hottest.temperature = 10;
  SamplingParams hot_many = wide;
  hot_many.temperature = 1.5;
  SamplingParams half = whole;
  half.top_p = 0.5;
  SamplingParams open = whole;
  open.top_p = 1;
  SamplingParams dry;
  dry.dry_multiplier = 0.8f;
  SamplingParams xtc = dry;
  xtc.xtc_probability = 0.5f;
  xtc.top_k = 0;
  xtc.top_p = 1;
  SamplingParams ordered;
  ordered.steps = std::vector{chasqui::SamplingStep::temperature, chasqui::SamplingStep::top_k};
  SamplingParams sigma;
  sigma.top_n_sigma = 1;
  SamplingParams mirostat;
  mirostat.mirostat = 2;
  return {{"greedy", greedy},
          {"default of chats", SamplingParams{}},
          {"… with a penalty", penalized},
          {"… 5 log-probs", told},
          {"top-p 0.95 alone", whole},
          {"… at temperature 1.5", hot},
          {"… at temperature 10", hottest},
          {"top-p 0.5 alone", half},
          {"min-p 0.05 alone", min_p},
          {"top-k 5000", many},
          {"top-k 5000, top-p", wide},
          {"… at temperature 1.5", hot_many},
          {"top-k 30000, top-p", most},
          {"temperature alone", open},
          {"default and DRY", dry},
          {"DRY, min-p and XTC", xtc},
          {"temperature, top-k", ordered},
          {"top-n-sigma 1", sigma},
          {"Mirostat 2", mirostat},
          {"typical-p 0.9 alone", changed(open, [](SamplingParams& p) { p.typical_p = 0.9f; })},
          {"typical-p 0.2 alone", changed(open, [](SamplingParams& p) { p.typical_p = 0.2f; })},
          {"dynamic temperature", changed(open, [](SamplingParams& p) { p.dynatemp_range = 0.5f; })},
          {"temperature, top-p", changed(whole, [](SamplingParams& p) {
             p.steps = std::vector{chasqui::SamplingStep::temperature, chasqui::SamplingStep::top_p};
           })}};
}

enum class Kind {
  usual,
  flat,    // of a model that knows nothing
  peaked,  // … and of one that is certain
};
constexpr const char* kKinds[] = {"usual", "flat", "peaked"};

std::vector<float> rows_of(std::size_t vocabulary, Kind kind) {
  std::mt19937 generator(1);
  std::normal_distribution<float> noise(0, kind == Kind::flat ? 0.5f : 2.0f);
  std::vector<float> rows(kRows * vocabulary);
  for (float& logit : rows) logit = noise(generator);
  if (kind == Kind::flat) return rows;
  if (kind == Kind::peaked) {
    for (std::size_t row = 0; row < kRows; ++row) rows[row * vocabulary + generator() % vocabulary] = 30;
  }
  for (std::size_t i = 0; i < kRows * 8; ++i) rows[i / 8 * vocabulary + generator() % vocabulary] += 12;
  return rows;
}

// Median microseconds of the processor for a row of `each(row)`, over rounds of all rows.
double cost(const std::vector<float>& rows, std::size_t vocabulary, const std::function<void(std::span<float>)>& each) {
  std::vector<float> copy(vocabulary);
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = chasqui::thread_time();
    for (std::size_t row = 0; row < kRows; ++row) {
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * vocabulary), vocabulary, copy.begin());
      each(copy);
    }
    const std::chrono::duration<double, std::micro> took = chasqui::thread_time() - begin;
    rounds.push_back(took.count() / kRows);
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
  return rounds[kRounds / 2];
}

using Chain = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;

Chain chain_of(const SamplingParams& params, std::size_t vocabulary) {
  Chain chain(llama_sampler_chain_init(llama_sampler_chain_default_params()), &llama_sampler_free);
  const auto add = [&chain](llama_sampler* step) { llama_sampler_chain_add(chain.get(), step); };
  if (params.mirostat == 2) {
    add(llama_sampler_init_temp(params.temperature));
    add(llama_sampler_init_mirostat_v2(1, params.mirostat_tau, params.mirostat_eta));
    return chain;
  }
  if (params.repeat_penalty != 1.0f) {
    const auto tokens = static_cast<std::int32_t>(vocabulary);
    add(llama_sampler_init_penalties(tokens, params.repeat_last_n, params.repeat_penalty, 0, 0));
  }
  if (params.temperature <= 0) {
    add(llama_sampler_init_greedy());
    return chain;
  }
  if (params.top_n_sigma > 0) add(llama_sampler_init_top_n_sigma(params.top_n_sigma));
  if (params.top_k > 0) add(llama_sampler_init_top_k(params.top_k));
  if (params.top_p < 1) add(llama_sampler_init_top_p(params.top_p, 1));
  if (params.min_p > 0) add(llama_sampler_init_min_p(params.min_p, 1));
  add(llama_sampler_init_temp(params.temperature));
  add(llama_sampler_init_dist(1));
  return chain;
}

// With steps that we have not ourselves: over the whole row.
double cost_of_whole_chain(SamplingParams params, const std::vector<float>& rows, std::size_t vocabulary) {
  params.seed = 1;
  chasqui::SamplerChain chain = make_chain(params, nullptr, static_cast<chasqui::TokenCount>(vocabulary));
  std::vector<chasqui::Candidate> left;
  return cost(rows, vocabulary, [&](std::span<float> row) { chain.accept(chain.draw(row, left)); });
}

double cost_of_chain(const SamplingParams& params, const std::vector<float>& rows, std::size_t vocabulary) {
  if (needs_chain(params)) return cost_of_whole_chain(params, rows, vocabulary);
  const Chain chain = chain_of(params, vocabulary);
  std::vector<llama_token_data> candidates(vocabulary);
  return cost(rows, vocabulary, [&](std::span<float> row) {
    for (std::size_t i = 0; i < vocabulary; ++i) candidates[i] = {static_cast<Token>(i), row[i], 0.0f};
    llama_token_data_array array = {candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(chain.get(), &array);
    llama_sampler_accept(chain.get(), array.data[array.selected].id);
  });
}

Sampler sampler_of(const SamplingParams& params, std::size_t vocabulary) {
  const auto tokens = static_cast<chasqui::TokenCount>(vocabulary);
  chasqui::LlamaSamplingParts parts;
  if (needs_chain(params)) parts.chain = make_chain(params, nullptr, tokens);
  return Sampler(params, tokens, {}, &parts);
}

double cost_of_ours(SamplingParams params, const std::vector<float>& rows, std::size_t vocabulary,
                    const chasqui::RowKernels& kernels) {
  params.seed = 1;
  Sampler sampler = sampler_of(params, vocabulary);
  SamplerScratch scratch;
  scratch.row = chasqui::LogitRow(kernels);
  scratch.listed = chasqui::LogitRow(kernels);
  std::vector<chasqui::TokenChance> chances;
  return cost(rows, vocabulary, [&](std::span<float> row) { sampler.accept(sampler.sample(row, scratch, &chances)); });
}

// Milliseconds for 128 rows by two threads, as after a step of so many streams; the copies of rows are part of it.
double cost_of_step(SamplingParams params, const std::vector<float>& rows, std::size_t vocabulary) {
  constexpr int kThreads = 2;
  constexpr int kRowsOfThread = 64;
  params.seed = 1;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        Sampler sampler = sampler_of(params, vocabulary);
        SamplerScratch scratch;
        std::vector<float> copy(vocabulary);
        std::vector<chasqui::TokenChance> chances;
        for (int row = 0; row < kRowsOfThread; ++row) {
          std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row % kRows * vocabulary), vocabulary, copy.begin());
          sampler.accept(sampler.sample(copy, scratch, &chances));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    rounds.push_back(took.count());
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
  return rounds[kRounds / 2];
}

}  // namespace

// With an argument, only the settings whose name begins with it; with --ours before it, only our Sampler.
int main(int argc, char** argv) {
  const bool ours_only = argc > 1 && std::string_view(argv[1]) == "--ours";
  const std::string_view only = argc > (ours_only ? 2 : 1) ? argv[argc - 1] : "";
  std::printf("%-12s%-8s%-24s%12s%12s%12s%16s%16s\n", "vocabulary", "rows", "settings", "plain, µs", "avx2, µs",
              "avx512, µs", "llama.cpp, µs", "128 rows, ms");
  for (const std::size_t vocabulary : {32000u, 151936u}) {
    for (const Kind kind : {Kind::usual, Kind::flat, Kind::peaked}) {
      const std::vector<float> rows = rows_of(vocabulary, kind);
      const double copy = cost(rows, vocabulary, [](std::span<float>) {});
      for (const Setting& setting : settings()) {
        if (!std::string_view(setting.name).starts_with(only)) continue;
        std::printf("%-12zu%-8s%-24s", vocabulary, kKinds[static_cast<int>(kind)], setting.name);
        for (const chasqui::RowKernels* kernels : chasqui::all_row_kernels()) {
          const double ours = kernels->usable() ? cost_of_ours(setting.params, rows, vocabulary, *kernels) - copy : 0;
          std::printf("%12.1f", ours);
        }
        const double chain = ours_only ? 0 : cost_of_chain(setting.params, rows, vocabulary) - copy;
        std::printf("%16.1f%16.2f\n", chain, cost_of_step(setting.params, rows, vocabulary));
      }
    }
  }
  return 0;
}
