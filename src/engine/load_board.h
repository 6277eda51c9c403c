// Where the worker writes how busy it is and the loop reads it: a Load in relaxed atomics. The parts of one reading may
// be from two different steps, which estimates can stand. Owned by the Engine. One writer, any number of readers.
#pragma once

#include <array>
#include <atomic>

#include "core/load.h"

namespace chasqui {

class LoadBoard {
 public:
  void write(const Load& load) {
    slots_.store(load.slots, std::memory_order_relaxed);
    running_.store(load.running, std::memory_order_relaxed);
    running_since_.store(load.running_since.time_since_epoch().count(), std::memory_order_relaxed);
    waiting_tokens_.store(load.waiting_tokens, std::memory_order_relaxed);
    unread_tokens_.store(load.unread_tokens, std::memory_order_relaxed);
    row_time_.store(load.row_time.count(), std::memory_order_relaxed);
    slot_time_known_.store(load.slot_time_known, std::memory_order_relaxed);
    slot_time_.store(load.slot_time.count(), std::memory_order_relaxed);
    for (std::size_t c = 0; c < kServiceClasses; ++c) {
      waiting_[c].store(load.waiting[c], std::memory_order_relaxed);
      wait_[c].store(load.wait[c].count(), std::memory_order_relaxed);
    }
  }

  Load read() const {
    Load load;
    load.slots = slots_.load(std::memory_order_relaxed);
    load.running = running_.load(std::memory_order_relaxed);
    load.running_since = TimePoint(Duration(running_since_.load(std::memory_order_relaxed)));
    load.waiting_tokens = waiting_tokens_.load(std::memory_order_relaxed);
    load.unread_tokens = unread_tokens_.load(std::memory_order_relaxed);
    load.row_time = Duration(row_time_.load(std::memory_order_relaxed));
    load.slot_time_known = slot_time_known_.load(std::memory_order_relaxed);
    load.slot_time = Duration(slot_time_.load(std::memory_order_relaxed));
    for (std::size_t c = 0; c < kServiceClasses; ++c) {
      load.waiting[c] = waiting_[c].load(std::memory_order_relaxed);
      load.wait[c] = Duration(wait_[c].load(std::memory_order_relaxed));
    }
    return load;
  }

 private:
  std::atomic<std::int32_t> slots_{0};
  std::atomic<std::int32_t> running_{0};
  std::atomic<TimePoint::rep> running_since_{0};
  std::atomic<std::int64_t> waiting_tokens_{0};
  std::atomic<std::int64_t> unread_tokens_{0};
  std::atomic<bool> slot_time_known_{false};
  std::atomic<Duration::rep> slot_time_{0};
  std::atomic<Duration::rep> row_time_{0};
  std::array<std::atomic<std::int32_t>, kServiceClasses> waiting_{};
  std::array<std::atomic<Duration::rep>, kServiceClasses> wait_{};
};

}  // namespace chasqui
