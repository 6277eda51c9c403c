#include "model/repetition_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <llama.h>

#include "model/llama_step.h"
#include "model/penalty_window.h"

namespace chasqui {
namespace {

class PenaltiesStep final : public LlamaStep {
 public:
  explicit PenaltiesStep(const SamplingParams& params)
      : window_(params.repeat_last_n),
        repeat_(params.repeat_penalty),
        frequency_(params.frequency_penalty),
        presence_(params.presence_penalty) {}

  const char* name() const override { return "penalties"; }
  void accept(Token token) override { window_.push(token); }
  std::unique_ptr<LlamaStep> copy() const override { return std::make_unique<PenaltiesStep>(*this); }

  void apply(llama_token_data_array& row) override {
    for (std::size_t i = 0; i < row.size; ++i) {
      const auto found = window_.counts().find(row.data[i].id);
      if (found == window_.counts().end()) continue;
      float& logit = row.data[i].logit;
      // Dividing a negative logit would make the token more likely.
      logit = logit <= 0 ? logit * repeat_ : logit / repeat_;
      logit -= static_cast<float>(found->second) * frequency_ + presence_;
    }
    row.sorted = false;
  }

 private:
  PenaltyWindow window_;
  float repeat_;
  float frequency_;
  float presence_;
};

// Finds, in the tokens that it is told one by one, the last place where a repetition is broken.
class BreakSearch {
 public:
  explicit BreakSearch(DryBreakersPtr breakers) : breakers_(std::move(breakers)) {}

  bool whole(Token token) const { return breakers_ != nullptr && breakers_->whole(token); }

  void push(Token token) {
    const std::size_t position = count_++;
    if (breakers_ == nullptr) return;
    for (Walk& walk : walks_) {
      walk.node = breakers_->after(walk.node, token);
      if (walk.node != DryBreakers::kNone && breakers_->complete(walk.node, walk.head)) found(walk.position, position);
    }
    if (breakers_->begins(token)) {
      walks_.push_back({position, token, DryBreakers::kRoot});
      if (breakers_->whole(token)) found(position, position);
    }
    std::erase_if(walks_, [this](const Walk& walk) {
      return walk.node == DryBreakers::kNone || (broken_ && walk.position < head_);
    });
  }

  // How many of the last `window` tokens may repeat something: those after the break.
  std::size_t after_break(std::size_t window) const {
    return broken_ && count_ - head_ <= window ? count_ - 1 - end_ : window;
  }

 private:
  struct Walk {
    std::size_t position;  // of its first token
    Token head;
    DryBreakers::Node node;
  };

  // The one that begins last counts, and of those that begin there the longest.
  void found(std::size_t head, std::size_t end) {
    if (broken_ && head < head_) return;
    broken_ = true;
    head_ = head;
    end_ = end;
  }

  DryBreakersPtr breakers_;
  std::vector<Walk> walks_;  // bounded by the longest sequence
  std::size_t count_ = 0;
  bool broken_ = false;
  std::size_t head_ = 0;
  std::size_t end_ = 0;
};

// What one call of DryStep::apply() needs; kept by each thread that samples.
struct DryScratch {
  std::vector<std::size_t> repeated;
  std::unordered_map<Token, std::size_t> longest;
};

// repeated[k]: how many tokens at the end are also there k tokens before the end (the Z-algorithm, from the end).
void count_repeated(std::span<const Token> tokens, std::size_t limit, std::vector<std::size_t>& repeated) {
  const std::size_t size = tokens.size();
  const auto back = [&](std::size_t i) { return tokens[size - 1 - i]; };
  repeated.assign(size, 0);
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t k = 1; k < size; ++k) {
    std::size_t same = 0;
    if (k <= right) {
      const std::size_t known = repeated[k - left];
      if (known < right - k + 1) {
        repeated[k] = std::min(known, limit);
        continue;
      }
      same = right - k + 1;
    }
    const bool inside = k <= right;
    while (k + same < size && back(same) == back(k + same)) ++same;
    repeated[k] = std::min(same, limit);
    if (same > 0 || inside) {
      left = k;
      right = k + same - 1;
    }
  }
}

class DryStep final : public LlamaStep {
 public:
  DryStep(const SamplingParams& params, DryBreakersPtr breakers)
      : breaks_(std::move(breakers)),
        multiplier_(params.dry_multiplier),
        base_(params.dry_base),
        allowed_(static_cast<std::size_t>(std::max(params.dry_allowed_length, 0))),
        look_back_(params.dry_penalty_last_n) {}

  const char* name() const override { return "dry"; }
  std::unique_ptr<LlamaStep> copy() const override { return std::make_unique<DryStep>(*this); }

  void accept(Token token) override {
    tokens_.push_back(token);
    breaks_.push(token);
    // In large pieces: what is forgotten is moved once for each token at most.
    if (look_back_ > 0 && tokens_.size() >= 2 * static_cast<std::size_t>(look_back_) + kForgottenAtOnce) {
      tokens_.erase(tokens_.begin(), tokens_.end() - look_back_);
    }
  }

  void apply(llama_token_data_array& row) override {
    thread_local DryScratch scratch;
    std::span<const Token> tokens = tokens_;
    if (look_back_ > 0) tokens = tokens.last(std::min(tokens.size(), static_cast<std::size_t>(look_back_)));
    if (tokens.size() <= allowed_) return;
    const std::size_t limit = breaks_.after_break(tokens.size());
    if (limit < allowed_) return;
    count_repeated(tokens, limit, scratch.repeated);
    scratch.longest.clear();
    for (std::size_t k = 1; k < tokens.size(); ++k) {
      if (scratch.repeated[k] < allowed_) continue;
      std::size_t& longest = scratch.longest[tokens[tokens.size() - k]];  // that would go on with it
      longest = std::max(longest, scratch.repeated[k]);
    }
    lower(row, scratch.longest);
  }

 private:
  static constexpr std::size_t kForgottenAtOnce = 64;

  void lower(llama_token_data_array& row, const std::unordered_map<Token, std::size_t>& longest) const {
    constexpr float kFloatMaxLog = 88.7228391f;  // so that nothing overflows
    const int most = base_ > 1.000001f ? static_cast<int>(kFloatMaxLog / std::log(base_)) : 0;
    for (std::size_t i = 0; i < row.size; ++i) {
      const auto found = longest.find(row.data[i].id);
      if (found == longest.end() || breaks_.whole(found->first)) continue;
      int exponent = static_cast<int>(found->second - allowed_);
      if (most > 0) exponent = std::min(exponent, most);
      const double penalty = static_cast<double>(multiplier_) * std::pow(static_cast<double>(base_), exponent);
      row.data[i].logit -= static_cast<float>(penalty);
    }
    row.sorted = false;
  }

  BreakSearch breaks_;
  std::vector<Token> tokens_;  // those that it looks back at are its last ones
  float multiplier_;
  float base_;
  std::size_t allowed_;
  std::int32_t look_back_;  // -1: at all
};

}  // namespace

bool penalties_on(const SamplingParams& params) {
  return params.repeat_last_n != 0 &&
         (params.repeat_penalty != 1.0f || params.frequency_penalty != 0.0f || params.presence_penalty != 0.0f);
}

llama_sampler* make_penalties_step(const SamplingParams& params) {
  return penalties_on(params) ? new_step(std::make_unique<PenaltiesStep>(params)) : nullptr;
}

llama_sampler* make_dry_step(const SamplingParams& params, DryBreakersPtr breakers) {
  const bool off = params.dry_multiplier == 0.0f || params.dry_base < 1.0f || params.dry_penalty_last_n == 0;
  return off ? nullptr : new_step(std::make_unique<DryStep>(params, std::move(breakers)));
}

}  // namespace chasqui
