// The steps of sampling as a row of a large vocabulary takes them, in the order that a request wishes: each of them
// leaves an interval of logits, so that nothing is listed and nothing sorted. What libllama's chain of the same steps
// would take milliseconds for. Made once for a request; const after that.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/sampling.h"
#include "model/logit_cut.h"
#include "model/logit_row.h"
#include "model/typical_cut.h"

namespace chasqui {

class RowSteps {
 public:
  // What a token may be drawn from: all that are at least `least` and not banned in the row, by exp(logit * scale).
  // Where `certain`, only the most likely one of them.
  struct Left {
    float least = LogitRow::kLeast;
    float scale = 1;
    bool certain = false;
    float scale_before = 1;  // … of weights that typical-p saw
  };

  // Of a thread that samples.
  struct Tools {
    LogitCut& cut;
    TypicalCut& typical;
    std::vector<Candidate>& list;
  };

  // Nothing where a step cannot be done so: Mirostat, one that joins or draws tokens itself, one that changes logits
  // after another has narrowed them down, or top-n-sigma of a part of the tokens.
  static std::optional<RowSteps> of(const SamplingParams& params);

  // Leaves penalties and DRY, which come first, to the caller. Bans what is too likely in the row, for good. `drawn`: a
  // number from 0 to 1 that nothing else depends on. REQUIRES: a row with a largest logit
  Left narrow(LogitRow& row, const Tools& tools, double drawn) const { return narrow(row, tools, drawn, false); }

  // A token of what narrow() leaves, as often as it is likely there. `again`: another such number.
  Token draw(LogitRow& row, const Tools& tools, double drawn, double again) const;

 private:
  // The logit that is as likely as the average says, and what those nearest to it have to weigh.
  struct Typical {
    float middle = 0;
    double target = 0;
  };

  explicit RowSteps(const SamplingParams& params);

  float sigma_bound(const LogitRow& row) const;
  float keep_top_k(LogitRow& row, const Tools& tools, const Left& left) const;
  float keep_top_p(LogitRow& row, const Tools& tools, const Left& left) const;
  float keep_min_p(LogitRow& row, const Tools& tools, const Left& left) const;
  Left narrow(LogitRow& row, const Tools& tools, double drawn, bool all_but_typical) const;
  Typical typical(LogitRow& row, const Left& left) const;
  double weight_nearer(LogitRow& row, Token token, const Left& left, float middle) const;
  float keep_typical(LogitRow& row, const Tools& tools, const Left& left, const Typical& typical) const;
  Candidate kept_in_any_case(LogitRow& row, const Tools& tools, const Left& left) const;
  void leave_out_likely(LogitRow& row, const Tools& tools, const Left& left) const;
  void temper(LogitRow& row, Left& left) const;
  std::size_t keep_min() const { return static_cast<std::size_t>(params_.min_keep > 1 ? params_.min_keep : 1); }

  SamplingParams params_;
  std::vector<SamplingStep> steps_;
  bool cuts_late_ = false;  // typical-p leaves most, and a temperature is all that comes after it
};

}  // namespace chasqui
