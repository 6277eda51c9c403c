// How busy several workers are together, for admission: their loads, added up. A plain value.
#pragma once

#include <algorithm>

#include "core/load.h"

namespace chasqui {

class LoadSum {
 public:
  void add(const Load& load) {
    all_.slots += load.slots;
    all_.running += load.running;
    all_.waiting_tokens += load.waiting_tokens;
    all_.tokens_to_prefill += load.tokens_to_prefill;
    all_.row_time = std::max(all_.row_time, load.row_time);
    all_.newer += load.newer;
    for (std::size_t c = 0; c < kServiceClasses; ++c) {
      all_.waiting[c] += load.waiting[c];
      // New work may choose, so it waits where the wait is shortest. What belongs to a session waits for its worker,
      // and may find that it was told too little.
      all_.room[c] += load.room[c];
      const auto least = [this](Duration& all, Duration one) { all = any_ ? std::min(all, one) : one; };
      least(all_.wait.of_short[c], load.wait.of_short[c]);
      least(all_.wait.of_long[c], load.wait.of_long[c]);
    }
    any_ = true;
    if (load.slot_time > Duration::zero()) {
      slots_known_ += load.slots;
      places_a_second_ += load.slots / to_seconds(load.slot_time);
    }
  }

  Load all() const {
    Load all = all_;
    // A place frees up every slot_time / slots: so it does for all together.
    if (places_a_second_ > 0) {
      const std::chrono::duration<double> each(slots_known_ / places_a_second_);
      all.slot_time = std::chrono::duration_cast<Duration>(each);
    }
    return all;
  }

 private:
  Load all_;
  bool any_ = false;
  double slots_known_ = 0;      // of workers that know how long a slot is held
  double places_a_second_ = 0;  // that these free up
};

}  // namespace chasqui
