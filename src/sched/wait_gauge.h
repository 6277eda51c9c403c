// How wrong the predicted waits have been, so that the next ones are not. When slots come free says when the next one
// in line starts; until its first token it then reads its prompt beside others, and slots may come later than the last
// ones did. What that took lately is added to what is predicted. Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <unordered_map>

#include "base/clock.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

class WaitGauge {
 public:
  // A request has come, and a free slot is predicted for it after `predicted`.
  void arrived(const Request& request, Duration predicted);
  // It has waited so long, what its own prompt takes not counted; `over`: the wait has ended. Counted once, when it
  // has ended or is longer than nearly all before it.
  void waited(RequestId id, Duration wait, bool over);
  // It has gone without a first token.
  void left(RequestId id) { open_.erase(id.value); }

  // What nearly all requests of the class waited beyond their prediction, lately; never negative.
  Duration excess(ServiceClass service_class) const { return excess_[static_cast<std::size_t>(service_class)]; }

 private:
  struct Open {
    ServiceClass service_class;
    Duration predicted;
    bool counted = false;
  };
  // The newest excesses of a class, in a ring.
  struct Lately {
    static constexpr std::size_t kNewest = 64;
    std::array<Duration, kNewest> values{};
    std::size_t count = 0;
  };

  void count(ServiceClass service_class, Duration excess);

  std::unordered_map<std::uint64_t, Open> open_;
  std::array<Lately, kServiceClasses> lately_{};
  std::array<Duration, kServiceClasses> excess_{};
};

}  // namespace chasqui
