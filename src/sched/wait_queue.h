// Sequences that have no slot: new ones, and preempted ones that will come back. Keeps counts; who goes next is the
// Scheduler's question, since it changes with the load. Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/sequence.h"

namespace chasqui {

class WaitQueue {
 public:
  using Line = std::vector<std::unique_ptr<Sequence>>;

  void push(std::unique_ptr<Sequence> sequence);
  // Takes a sequence out, wherever it stands; null when it is not here.
  std::unique_ptr<Sequence> remove(RequestId id);
  // Takes out one sequence whose deadline has passed, or its patience; null when there is none.
  std::unique_ptr<Sequence> remove_expired(TimePoint now);
  // REQUIRES: !empty()
  std::unique_ptr<Sequence> pop() { return remove_at(line_.size() - 1); }

  // In no order that means anything.
  const Line& all() const { return line_; }
  std::size_t size() const { return line_.size(); }
  bool empty() const { return line_.empty(); }
  std::int32_t of_class(ServiceClass service_class) const { return counts_[static_cast<std::size_t>(service_class)]; }
  // Tokens to compute of all that wait.
  std::int64_t tokens() const { return tokens_; }

 private:
  std::unique_ptr<Sequence> remove_at(std::size_t place);

  Line line_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // in line_, by their ids: thousands may be cancelled at once
  std::array<std::int32_t, kServiceClasses> counts_{};
  std::int64_t tokens_ = 0;
  TimePoint next_deadline_ = kNever;  // no deadline here is earlier
};

}  // namespace chasqui
