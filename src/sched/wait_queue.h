// Sequences that have no slot yet: by class, first come first served within a class. Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <deque>
#include <memory>

#include "core/sequence.h"

namespace chasqui {

class WaitQueue {
 public:
  void push(std::unique_ptr<Sequence> sequence);
  // The next to get a slot; null when empty.
  const Sequence* front() const;
  // REQUIRES: !empty()
  std::unique_ptr<Sequence> pop();
  // Takes a sequence out, wherever it stands; null when it is not here.
  std::unique_ptr<Sequence> remove(RequestId id);
  // Takes out one sequence whose deadline has passed; null when there is none.
  std::unique_ptr<Sequence> remove_expired(TimePoint now);

  std::size_t size() const;
  bool empty() const { return size() == 0; }

 private:
  using Line = std::deque<std::unique_ptr<Sequence>>;

  template <class Predicate>
  std::unique_ptr<Sequence> remove_first(Predicate matches);
  const Line* first_line() const;

  std::array<Line, 3> lines_;  // indexed by ServiceClass, most urgent first
};

}  // namespace chasqui
