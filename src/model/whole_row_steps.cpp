#include "model/whole_row_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <llama.h>

#include "model/candidates.h"
#include "model/llama_step.h"
#include "model/logit_cut.h"
#include "model/logit_row.h"
#include "model/row_kernels.h"

namespace chasqui {
namespace {

constexpr float kFar = 1e30f;  // a request can make logits infinite, whose differences would be no numbers

// What one call needs; kept by each thread that samples.
struct WholeRow {
  float top = 0;
  double sum = 0;              // of all weights
  std::vector<float> logits;   // filled up to what kernels take
  std::vector<float> weights;  // exp(logit - top)
  std::vector<std::uint16_t> classes;
  std::vector<Candidate> order;

  // REQUIRES: row.size > 0
  void weigh(const llama_token_data_array& row) {
    constexpr std::size_t kStep = 16;
    logits.assign((row.size + kStep - 1) / kStep * kStep, LogitRow::kBanned);
    top = LogitRow::kBanned;
    for (std::size_t i = 0; i < row.size; ++i) {
      const float logit = row.data[i].logit;
      logits[i] = logit > -kFar ? std::min(logit, kFar) : -kFar;  // also where it is no number
      top = std::max(top, logits[i]);
    }
    weights.resize(logits.size());
    row_kernels().weights(logits.data(), logits.size(), top, 1.0f, weights.data());
    sum = 0;
    for (std::size_t i = 0; i < row.size; ++i) sum += static_cast<double>(weights[i]);
  }

  // How much a token says on average, in nats.
  double entropy(std::size_t size) const {
    constexpr float kWeighsNothing = 87;  // below the top: kernels give such a token the smallest weight there is
    double below_top = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (top - logits[i] < kWeighsNothing)
        below_top += static_cast<double>(weights[i]) * static_cast<double>(top - logits[i]);
    }
    return std::log(sum) + below_top / sum;
  }
};

WholeRow& thread_whole_row() {
  thread_local WholeRow row;
  return row;
}

template <class Keeps>
void keep_tokens(llama_token_data_array& row, Keeps keeps) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < row.size; ++i) {
    if (keeps(i)) row.data[kept++] = row.data[i];
  }
  row.size = kept;
}

// Locally typical sampling (Meister et al., 2022): the tokens that say about as much as a token says on average, as
// many as it takes to weigh more than p.
class TypicalStep final : public LlamaStep {
 public:
  explicit TypicalStep(const SamplingParams& params)
      : p_(static_cast<double>(params.typical_p)), least_(static_cast<std::size_t>(std::max(params.min_keep, 1))) {}

  const char* name() const override { return "typical"; }
  std::unique_ptr<LlamaStep> copy() const override { return std::make_unique<TypicalStep>(*this); }

  void apply(llama_token_data_array& row) override {
    if (row.size == 0) return;
    WholeRow& whole = thread_whole_row();
    whole.weigh(row);
    // A token says log(sum) + top - logit, so how far it is from the average is how far its logit is from this.
    const auto typical = static_cast<float>(std::log(whole.sum) - whole.entropy(row.size)) + whole.top;
    float farthest = 0;
    for (float& logit : whole.logits) logit = std::abs(logit - typical);
    for (std::size_t i = 0; i < row.size; ++i) farthest = std::max(farthest, whole.logits[i]);
    keep(row, whole, std::clamp(farthest, 1e-30f, kUsualDistance));
  }

 private:
  static constexpr std::size_t kClasses = 1024;  // of about equal distances
  static constexpr float kUsualDistance = 32;    // what is farther weighs nothing

  // The nearest classes as a whole, and of the last one the nearest tokens. REQUIRES: whole.logits are distances
  void keep(llama_token_data_array& row, WholeRow& whole, float range) const {
    const float classes_for_one = static_cast<float>(kClasses - 1) / range;
    std::array<double, kClasses> weights{};
    std::array<std::size_t, kClasses> counts{};
    whole.classes.resize(row.size);
    for (std::size_t i = 0; i < row.size; ++i) {
      const float place = std::min(whole.logits[i] * classes_for_one, static_cast<float>(kClasses - 1));
      const auto of = static_cast<std::uint16_t>(place);
      whole.classes[i] = of;
      weights[of] += static_cast<double>(whole.weights[i]);
      ++counts[of];
    }
    double wanted = p_ * whole.sum;
    std::size_t least = std::min(least_, row.size);
    std::size_t last = 0;
    while (last + 1 < kClasses && (weights[last] < wanted || counts[last] < least)) {
      wanted -= weights[last];
      least -= std::min(least, counts[last]);
      ++last;
    }
    std::vector<Candidate>& order = whole.order;
    order.clear();
    for (std::size_t i = 0; i < row.size; ++i) {
      if (whole.classes[i] != last) continue;
      order.push_back({static_cast<Token>(i), -whole.logits[i], static_cast<double>(whole.weights[i])});
      whole.classes[i] = kClasses;
    }
    for (const Candidate& one : nearest(order, wanted, least)) whole.classes[static_cast<std::size_t>(one.token)] = 0;
    keep_tokens(row, [&whole, last](std::size_t i) { return whole.classes[i] < last || whole.classes[i] == 0; });
  }

  static std::span<const Candidate> nearest(std::span<Candidate> order, double weight, std::size_t least) {
    if (order.empty()) return order;
    const float top = std::ranges::max_element(order, {}, &Candidate::logit)->logit;
    const std::size_t count = count_for_mass(order, top, weight);
    if (count >= least) return order.first(count);
    least = std::min(least, order.size());
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(least - 1), more_likely);
    return order.first(least);
  }

  double p_;
  std::size_t least_;
};

// Leaves out, as often as `probability` says, all tokens that are at least as likely as the threshold but the least
// likely of them.
class XtcStep final : public LlamaStep {
 public:
  explicit XtcStep(const SamplingParams& params)
      : probability_(params.xtc_probability),
        threshold_(static_cast<double>(params.xtc_threshold)),
        least_(static_cast<std::size_t>(std::max(params.min_keep, 0))),
        generator_(params.seed.value_or(0)) {}

  const char* name() const override { return "xtc"; }
  std::unique_ptr<LlamaStep> copy() const override { return std::make_unique<XtcStep>(*this); }

  void apply(llama_token_data_array& row) override {
    constexpr double kMostThreshold = 0.5;  // two tokens cannot be more likely
    if (threshold_ > kMostThreshold || row.size < 2) return;
    if (std::uniform_real_distribution<float>(0, 1)(generator_) > probability_) return;
    WholeRow& whole = thread_whole_row();
    whole.weigh(row);
    const double bound = threshold_ * whole.sum;
    std::size_t likely = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < row.size; ++i) {
      if (static_cast<double>(whole.weights[i]) < bound) continue;
      if (likely++ == 0 || whole.logits[i] <= whole.logits[last]) last = i;
    }
    if (likely < 2 || row.size - (likely - 1) < least_) return;
    keep_tokens(row, [&](std::size_t i) { return i == last || static_cast<double>(whole.weights[i]) < bound; });
  }

 private:
  float probability_;
  double threshold_;
  std::size_t least_;
  std::mt19937 generator_;
};

// A temperature between two others, the higher the less the model knows what comes.
class DynamicTemperatureStep final : public LlamaStep {
 public:
  explicit DynamicTemperatureStep(const SamplingParams& params)
      : least_(std::max(0.0f, params.temperature - params.dynatemp_range)),
        most_(params.temperature + params.dynatemp_range),
        exponent_(params.dynatemp_exponent) {}

  const char* name() const override { return "temp-ext"; }
  std::unique_ptr<LlamaStep> copy() const override { return std::make_unique<DynamicTemperatureStep>(*this); }

  void apply(llama_token_data_array& row) override {
    if (row.size < 2) return;
    WholeRow& whole = thread_whole_row();
    whole.weigh(row);
    const double share = std::clamp(whole.entropy(row.size) / std::log(static_cast<double>(row.size)), 0.0, 1.0);
    const float temperature = least_ + (most_ - least_) * std::pow(static_cast<float>(share), exponent_);
    if (temperature > 0) {
      for (std::size_t i = 0; i < row.size; ++i) row.data[i].logit /= temperature;
      return;
    }
    const auto top = std::ranges::find(whole.logits, whole.top) - whole.logits.begin();
    row.data[0] = row.data[top];
    row.size = 1;
  }

 private:
  float least_;
  float most_;
  float exponent_;
};

}  // namespace

llama_sampler* make_typical_step(const SamplingParams& params) {
  return params.typical_p < 1 ? new_step(std::make_unique<TypicalStep>(params)) : nullptr;
}

llama_sampler* make_xtc_step(const SamplingParams& params) {
  return params.xtc_probability > 0 ? new_step(std::make_unique<XtcStep>(params)) : nullptr;
}

llama_sampler* make_dynamic_temperature_step(const SamplingParams& params) {
  return new_step(std::make_unique<DynamicTemperatureStep>(params));
}

}  // namespace chasqui
