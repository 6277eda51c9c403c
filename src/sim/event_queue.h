// What will happen at which virtual time, outside the scheduler: arrivals, further tries, clients that leave, disks.
// Things of the same time happen in the order in which they were noted. Owned by the simulation; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace chasqui {

struct Due {
  enum class Kind : std::uint8_t { arrival, turn, another_try, leaving, disk };

  TimePoint at{};
  std::uint64_t order = 0;
  std::uint64_t serial = 0;  // of the request that is meant; its record may have another owner by then
  // … in the table of lives. Of an arrival: the client; of a turn: the conversation; of a disk: the worker.
  std::uint32_t place = 0;
  Kind kind = Kind::arrival;
};

class EventQueue {
 public:
  void add(TimePoint at, Due::Kind kind, std::uint64_t serial = 0, std::uint32_t place = 0) {
    heap_.push_back({at, ++order_, serial, place, kind});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  // REQUIRES: !empty()
  TimePoint next() const { return heap_.front().at; }
  Due take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Due due = heap_.back();
    heap_.pop_back();
    return due;
  }

 private:
  static bool later(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Due> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace chasqui
