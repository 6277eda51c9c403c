// Finds how many of the most likely tokens of a row it takes until their weights add up to a part of the whole, without
// sorting the row: a sample says where about they end, one sweep sums up all and what is above there, and only what is
// near is looked at one by one. In a row of a few thousand tokens sums halve the range in which they end. Sums are of
// floats within 1e-6. Kept by a thread that samples; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/logit_row.h"

namespace chasqui {

class LogitCut {
 public:
  // The last of those that weigh `part` of all, by exp((logit - top) * scale); those below `floor` do not
  // count.
  // REQUIRES: as LogitRow::mass(), part < 1
  Candidate reach_part(LogitRow& row, float floor, double part, float scale = 1);
  // True: those that are at least `logit` weigh no more than `part` of all. False: the likely tokens do not tell.
  // REQUIRES: as there
  bool surely_within(LogitRow& row, float floor, double part, float logit);
  // Where the last of them is, without looking for it: at least `low`, and below `high`.
  struct Around {
    float low = 0;
    float high = 0;
    double higher = 0;  // what those from `high` on weigh
    double target = 0;  // … with all that are to be reached
  };
  // As reach_part() would say; nothing where a sample does not tell, or few tokens are above. REQUIRES: as there
  std::optional<Around> around_part(LogitRow& row, float floor, double part);
  // What reach_part() says. REQUIRES: nothing in the row has changed since
  Candidate reach(LogitRow& row, const Around& around);
  // The last of the `count` most likely ones from `floor` on; where there are not so many, below all of them.
  // REQUIRES: as LogitRow::mass()
  Candidate reach_count(LogitRow& row, float floor, double count);
  // A logit that more than `count` tokens are likely to reach, but few more.
  float about_count(LogitRow& row, double count);
  // Bans the tokens that are as likely as `last` and come after it in more_likely().
  void ban_after(LogitRow& row, const Candidate& last);
  // Puts back what was banned since forget().
  void take_back(LogitRow& row);
  // Another row comes.
  void forget();

 private:
  static constexpr std::size_t kClasses = 512;
  // What a sample says about the tokens below `bound`: their weights, by classes of about equal logits.
  struct Estimate {
    std::array<double, kClasses> weights{};
    std::array<double, kClasses> squares{};  // for doubt(): each weight of the sample stands for several tokens
    float bound = 0;
    float width = 0;   // of a class, in logits
    double error = 0;  // of their sum, as a share of it: the standard one
    void scale(double by) {
      for (double& weight : weights) weight *= by;
    }
  };

  Candidate last_of(LogitRow& row, float high, double target);
  std::optional<Candidate> last_of_likely(LogitRow& row, double least, double most, double part);
  double collect(LogitRow& row, float low, float high, float scale);
  double estimate(LogitRow& row, float bound, float floor, float scale, bool doubts = false);
  float expected(float floor, double needed) const;
  double doubt(double needed, double part) const;
  Candidate halve(LogitRow& row, float floor, float scale, double all, double target);
  double density(float logit) const;
  Candidate near(LogitRow& row, float floor, float bound, float scale, double target, float middle, double sum);

  std::vector<Candidate> list_;
  std::vector<float> logits_;
  Candidate last_;               // what was said of the row; no token: nothing yet
  std::vector<Candidate> ties_;  // … and what is as likely, and comes after it
  std::vector<Candidate> banned_;
  Estimate estimate_;
};

// How many of the candidates, the most likely ones first, it takes until their probabilities add up to `mass`; puts
// these first, and the last of them at their end.
std::size_t count_for_mass(std::span<Candidate> candidates, float top, double mass);

}  // namespace chasqui
