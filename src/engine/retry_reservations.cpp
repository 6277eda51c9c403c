#include "engine/retry_reservations.h"

#include <limits>

#include "base/error.h"

namespace chasqui {

RetryReservations::Expired RetryReservations::advance(TimePoint now) {
  while (!coming_.empty() && (*coming_.begin())->hold_from <= now) {
    Entry* const entry = *coming_.begin();
    coming_.erase(coming_.begin());
    entry->held = true;
    held_.insert(entry);
  }
  Expired expired;
  while (!held_.empty() && (*held_.begin())->expires <= now) {
    const Entry& entry = **held_.begin();
    ++expired.reservations;
    expired.never_came += entry.late ? 0 : 1;
    remove(entry);
  }
  return expired;
}

void RetryReservations::add(const Reservation& reservation) {
  CHECK(!full(), "the book of reservations is full");
  reservations_.emplace_back();
  Entry& entry = reservations_.back();
  static_cast<Reservation&>(entry) = reservation;
  entry.number = next_number_++;
  entry.place = std::prev(reservations_.end());
  by_request_.insert(&entry);
  coming_.insert(&entry);
}

const Reservation* RetryReservations::first(RequestHash request_hash) const {
  Entry key;
  key.request_hash = request_hash;
  key.due = TimePoint::min();
  const auto found = by_request_.lower_bound(&key);
  return found != by_request_.end() && (*found)->request_hash == request_hash ? *found : nullptr;
}

const Reservation* RetryReservations::last(RequestHash request_hash) const {
  Entry key;
  key.request_hash = request_hash;
  key.due = TimePoint::max();
  key.number = std::numeric_limits<std::uint64_t>::max();
  const auto after = by_request_.upper_bound(&key);
  if (after == by_request_.begin()) return nullptr;
  const Entry* const found = *std::prev(after);
  return found->request_hash == request_hash ? found : nullptr;
}

void RetryReservations::remove(const Reservation& reservation) {
  // Every reservation that the book hands out is the front of an Entry of its own.
  Entry* const entry = const_cast<Entry*>(static_cast<const Entry*>(&reservation));  // NOLINT
  by_request_.erase(entry);
  if (entry->held) {
    held_.erase(entry);
  } else {
    coming_.erase(entry);
  }
  reservations_.erase(entry->place);
}

}  // namespace chasqui
