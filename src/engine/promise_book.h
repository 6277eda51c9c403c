// The queue behind the queue: which refused requests were promised a place, and from when on. A promise is known by
// the fingerprint of its request, so that a client that retries is recognised without its cooperation. Several may
// have one fingerprint: clients do send equal requests. Owned by Admission; pure, time is an argument.
//
//   made ──────▶ hold_from ──────▶ due ──────▶ expires
//   coming       held: the place should be free by now, and no other request may take it
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <tuple>

#include "base/clock.h"

namespace chasqui {

// Whose request it is, and what it says. Chance collisions cost one of two clients its place in the order.
using Fingerprint = std::uint64_t;

struct Promise {
  Fingerprint fingerprint = 0;
  TimePoint made{};
  TimePoint hold_from{};
  TimePoint due{};  // what the client was told
  TimePoint expires{};
  bool late = false;  // its client came when it was told, and there was no place yet
};

class PromiseBook {
 public:
  struct Expired {
    std::size_t promises = 0;
    std::size_t never_came = 0;  // of those, the ones whose client was not seen again
  };

  explicit PromiseBook(std::size_t promises_max) : promises_max_(promises_max) {}

  // Holds what has to be held from now on, and forgets what was not claimed; says how many those were.
  Expired advance(TimePoint now);

  // REQUIRES: !full()
  void add(const Promise& promise);
  // The promise with this fingerprint that is due first, or the one that was made last; null when there is none. The
  // pointer lives until the next call that changes the book.
  const Promise* first(Fingerprint fingerprint) const;
  const Promise* last(Fingerprint fingerprint) const;
  void remove(const Promise& promise);

  std::size_t open() const { return promises_.size(); }
  std::size_t held() const { return held_.size(); }
  bool full() const { return promises_.size() >= promises_max_; }

 private:
  struct Entry : Promise {
    std::uint64_t number = 0;  // in the order of add(); makes equal times different
    bool held = false;
    std::list<Entry>::iterator place{};
  };
  template <TimePoint Promise::*time>
  struct Earlier {
    bool operator()(const Entry* a, const Entry* b) const {
      return std::tie(a->*time, a->number) < std::tie(b->*time, b->number);
    }
  };
  struct SameRequest {
    bool operator()(const Entry* a, const Entry* b) const {
      return std::tie(a->fingerprint, a->due, a->number) < std::tie(b->fingerprint, b->due, b->number);
    }
  };

  const std::size_t promises_max_;
  std::uint64_t next_number_ = 0;
  std::list<Entry> promises_;
  std::set<Entry*, SameRequest> by_request_;
  std::set<Entry*, Earlier<&Promise::hold_from>> coming_;
  std::set<Entry*, Earlier<&Promise::expires>> held_;
};

}  // namespace chasqui
