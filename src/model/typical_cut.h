// Finds the tokens of a row whose logits are nearest to one of them, until they weigh a part of the whole: what locally
// typical sampling keeps. They are an interval, so that nothing is sorted: a sample says where about it ends, one sweep
// sums up what is inside, and only what is near its ends is looked at one by one. Sums are of floats within 1e-6; what
// is as likely as the last one on its side is kept with it. Kept by a thread that samples; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/logit_row.h"

namespace chasqui {

class TypicalCut {
 public:
  // At least `low`, and below `high`.
  struct Interval {
    float low = 0;
    float high = 0;
  };
  // Those nearest to `middle` that weigh `target` by exp((logit - top) * scale), of those that are at least `floor`;
  // and `least` of them at least. REQUIRES: as LogitRow::mass()
  Interval around(LogitRow& row, float floor, float scale, float middle, double target, std::size_t least);

 private:
  static constexpr std::size_t kClasses = 512;

  Interval whole(LogitRow& row, float floor, float scale, float middle, double target, std::size_t least);
  void estimate(LogitRow& row, float floor, float scale, float middle);
  float expected(double target) const;
  double density(float distance) const;
  double collect(LogitRow& row, float floor, float scale, float middle, float inner, float outer);
  Interval take(float middle, Interval inside, double weight, std::size_t least);

  std::array<double, kClasses> weights_{};  // about, by distance
  float width_ = 0;                         // of a class
  std::vector<Candidate> list_;             // with minus its distance for a logit
  std::vector<Candidate> half_;
  std::vector<float> logits_;
};

}  // namespace chasqui
