// The queue behind the queue: which refused requests have a reservation, and from when on. A reservation is known by
// the hash of its request, so that a client that retries is recognised without its cooperation. Several may
// have one hash: clients do send equal requests. Owned by Admission; pure, time is an argument.
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
using RequestHash = std::uint64_t;

struct Reservation {
  RequestHash request_hash = 0;
  TimePoint made{};
  TimePoint hold_from{};
  TimePoint due{};  // what the client was told
  TimePoint expires{};
  bool late = false;  // its client came when it was told, and there was no place yet
};

class RetryReservations {
 public:
  struct Expired {
    std::size_t reservations = 0;
    std::size_t never_came = 0;  // of those, the ones whose client was not seen again
  };

  explicit RetryReservations(std::size_t reservations_max) : reservations_max_(reservations_max) {}

  // Holds what has to be held from now on, and forgets what was not claimed; says how many those were.
  Expired advance(TimePoint now);

  // REQUIRES: !full()
  void add(const Reservation& reservation);
  // The reservation with this hash that is due first, or the one that was made last; null when there is none.
  // The pointer lives until the next call that changes them.
  const Reservation* first(RequestHash request_hash) const;
  const Reservation* last(RequestHash request_hash) const;
  void remove(const Reservation& reservation);

  std::size_t open() const { return reservations_.size(); }
  std::size_t held() const { return held_.size(); }
  bool full() const { return reservations_.size() >= reservations_max_; }

 private:
  struct Entry : Reservation {
    std::uint64_t number = 0;  // in the order of add(); makes equal times different
    bool held = false;
    std::list<Entry>::iterator place{};
  };
  template <TimePoint Reservation::*time>
  struct Earlier {
    bool operator()(const Entry* a, const Entry* b) const {
      return std::tie(a->*time, a->number) < std::tie(b->*time, b->number);
    }
  };
  struct SameRequest {
    bool operator()(const Entry* a, const Entry* b) const {
      return std::tie(a->request_hash, a->due, a->number) < std::tie(b->request_hash, b->due, b->number);
    }
  };

  const std::size_t reservations_max_;
  std::uint64_t next_number_ = 0;
  std::list<Entry> reservations_;
  std::set<Entry*, SameRequest> by_request_;
  std::set<Entry*, Earlier<&Reservation::hold_from>> coming_;
  std::set<Entry*, Earlier<&Reservation::expires>> held_;
};

}  // namespace chasqui
