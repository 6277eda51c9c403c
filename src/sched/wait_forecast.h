// How long a request that comes now will wait for its first token, what its own prompt takes not counted. Three parts:
// when slots come free, by how long sequences hold them; what has to be read before it, by the pace at which prompts
// lately were read beside everything else; and how much longer than both nearly all of its class waited of late, which
// fades when nothing confirms it. Owned by the Scheduler; pure, times ascend.
#pragma once

#include <array>
#include <unordered_map>

#include "base/clock.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

class WaitForecast {
 public:
  // A sequence gave its slot back after `held`.
  void slot_held(Duration held);
  // A step took `took` while prompts were to be read, and computed `rows` of them; `alone` is what a row takes when
  // nothing else is computed.
  void read(TokenCount rows, Duration took, double alone);
  // A request has come, for which `wait` was predicted without excess().
  void arrived(const Request& request, Duration wait);
  // It has waited so long in all and had `rows` of its own to read; `over`: the wait has ended. Counted once, when it
  // has ended or is longer than nearly all before it.
  void waited(RequestId id, Duration wait, TokenCount rows, bool over, TimePoint now);
  // It has gone without a first token.
  void left(RequestId id) { open_.erase(id.value); }

  // 0: not known yet.
  double slot_seconds() const { return slot_seconds_; }
  // For one prompt row, at the pace of late; 0: not known yet.
  double row_seconds() const { return row_seconds_; }
  // What nearly all requests of the class waited beyond their prediction; never negative.
  Duration excess(ServiceClass service_class, TimePoint now) const;

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
    Duration nearly_all{};
    TimePoint confirmed{};
  };

  void count(ServiceClass service_class, Duration excess, TimePoint now);

  std::unordered_map<std::uint64_t, Open> open_;
  std::array<Lately, kServiceClasses> lately_{};
  double slot_seconds_ = 0;
  double row_seconds_ = 0;
  double rows_lately_ = 0;
  double seconds_lately_ = 0;
};

}  // namespace chasqui
