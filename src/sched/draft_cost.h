// What the draft model takes: for each of its draft tokens, by how many sequences it drafts for, and for each row that
// it only reads. From the steps before, the newest most. Pure value; owned by DraftPlan.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "base/clock.h"
#include "core/types.h"
#include "sched/moving_average.h"

namespace chasqui {

class DraftCost {
 public:
  // Seconds for one draft token for each of so many sequences; 0: nothing is known yet.
  double token_seconds(std::size_t sequences) const {
    const std::size_t place = place_of(sequences);
    for (std::size_t i = place + 1; i-- > 0;) {
      if (draft_tokens_[i] > 0) return draft_tokens_[i] * static_cast<double>(std::size_t{1} << (place - i));
    }
    for (std::size_t i = place + 1; i < draft_tokens_.size(); ++i) {
      if (draft_tokens_[i] > 0) return draft_tokens_[i];
    }
    return 0;
  }
  double row_seconds() const { return row_; }

  void drafted(std::size_t sequences, TokenCount draft_tokens, Duration took) {
    follow(draft_tokens_[place_of(sequences)], to_seconds(took) / draft_tokens);
  }
  void read(std::size_t rows, Duration took) { follow(row_, to_seconds(took) / static_cast<double>(rows)); }

 private:
  static std::size_t place_of(std::size_t sequences) { return static_cast<std::size_t>(std::bit_width(sequences)) - 1; }
  // The first time costs more than all others, so what is less is believed sooner.
  static void follow(double& known, double seen) {
    known += (known == 0 ? 1 : seen < known ? kLess : kQuickWeight) * (seen - known);
  }

  static constexpr double kLess = 0.5;

  std::array<double, 9> draft_tokens_{};  // 1, 2 … 3, 4 … 7, up to 256 sequences
  double row_ = 0;
};

}  // namespace chasqui
