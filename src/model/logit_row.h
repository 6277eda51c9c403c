// A row of logits, and what sampling asks of it, made for vocabularies of 150,000: one sweep finds the largest logit of
// each block, and most of what comes after has to look at few blocks. NaN counts as -infinity, +infinity as the largest
// float. Kept by a thread that samples, for one row after the other, so that nothing is allocated; one thread.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/types.h"
#include "model/candidates.h"
#include "model/row_kernels.h"

namespace chasqui {

class LogitRow {
 public:
  static constexpr float kBanned = -std::numeric_limits<float>::infinity();
  static constexpr float kLeast = std::numeric_limits<float>::lowest();  // at least this: all that are not banned
  static constexpr float kMost = std::numeric_limits<float>::max();
  static constexpr float kNoHigh = std::numeric_limits<float>::quiet_NaN();  // as `below`: of any height
  static constexpr std::size_t kLikely = 128;  // tokens that tell where most of the weight of a row is

  struct Masses {
    double all = 0;
    double above = 0;
    double higher = 0;
  };
  struct Surprise {
    double mass = 0;
    double below = 0;  // each weight times how far the logit is below the top
  };
  struct Found {
    std::span<const std::uint32_t> tokens;
    std::span<float> logits;
  };

  LogitRow() : kernels_(&row_kernels()) {}
  explicit LogitRow(const RowKernels& kernels) : kernels_(&kernels) {}

  // Takes up another row, which is the caller's and stays as it is until the next one, but for what is said here.
  void look(std::span<float> logits);
  // The same; what has no bit is banned in the row. REQUIRES: a bit for each logit
  void look(std::span<float> logits, std::span<const std::uint64_t> allowed);
  void set(Token token, float logit);

  std::size_t size() const { return logits_.size(); }
  std::span<const float> logits() const { return logits_; }
  float operator[](Token token) const { return logits_[static_cast<std::size_t>(token)]; }

  // The lowest id among the largest logits; -1 when none is above -infinity.
  Token largest() const { return largest_; }
  // REQUIRES: largest() ≥ 0
  float top() const;

  // The standard deviation of all that are above -infinity; no number where they are too far apart. REQUIRES: as top()
  double deviation() const;

  // The k largest, in no particular order; fewer when fewer are above -infinity.
  void top_k(std::size_t k, std::vector<Candidate>& out);
  // All that are at least `least`, but not `below`, ids ascending. REQUIRES: least ≥ kLeast
  void at_least(float least, std::vector<Candidate>& out, float below = kNoHigh);
  // The same as lists, +infinity among them; valid until the next call of this or of another that lists tokens.
  Found found(float least);

  // The sum of exp((logit - top()) * scale) over all that are at least `least`.
  // REQUIRES: largest() ≥ 0, least ≥ kLeast, scale ≥ 0
  double mass(float least, float scale) { return weigh(least, scale, least, least, 1).all; }
  // The same, and in one sweep the sum over those that are at least `middle`. REQUIRES: middle ≥ least
  Masses masses(float least, float scale, float middle) { return weigh(least, scale, middle, middle, 2); }
  // … and over those that are at least `high`. REQUIRES: high ≥ middle
  Masses masses(float least, float scale, float middle, float high) { return weigh(least, scale, middle, high, 3); }
  // The same sum, and what makes the entropy of the weights: log(mass) + scale * below / mass. REQUIRES: as mass()
  Surprise surprise(float least, float scale);
  // Bans all that are at least `high`.
  void cap(float high);
  // One of those that are at least `least`, as often as their weights in mass() say, without a sweep over the row.
  // `drawn` says which, and all that it takes to say it: the same number gives the same token.
  // REQUIRES: as mass(), least ≤ top(), 0 ≤ drawn < 1
  Token draw(float least, float scale, double drawn);

  // So small a bound that at least k are as large; kLeast when so many cannot be vouched for.
  float bound_of(std::size_t k);
  // Some of the logits, from all over the row.
  std::span<const float> sample(std::size_t most);
  // exp((logit - top()) * scale) of a list. Valid until the next call.
  std::span<const float> weights(std::span<const float> logits, float scale);
  // What of a temperature is the scale of weights.
  static float scale_of(double temperature);

 private:
  Masses weigh(float least, float scale, float middle, float high, int bounds);
  void begin(std::span<float> logits);
  void survey();
  std::size_t gather(float least, float below);
  float weight(float logit, float scale) const;
  Token token_at(double part, float least, float scale) const;
  std::size_t blocks() const { return maxima_.size(); }
  std::size_t whole_blocks() const { return logits_.size() / RowKernels::kBlock; }
  bool has_rest() const { return logits_.size() % RowKernels::kBlock != 0; }

  const RowKernels* kernels_;
  std::span<float> logits_;
  float rest_[RowKernels::kBlock] = {};  // the last block, when the row ends within it; filled up with -infinity
  std::vector<float> maxima_;
  Token largest_ = -1;
  std::vector<float> sums_;
  std::vector<float> above_;
  std::vector<float> higher_;
  std::vector<float> coarse_;
  std::vector<double> ends_;
  std::vector<std::uint32_t> places_;
  std::vector<float> found_;
  std::vector<float> sample_;
  std::vector<float> weighed_;
};

// As LogitRow::largest(), where a row is asked nothing else.
Token largest(std::span<float> logits);

}  // namespace chasqui
