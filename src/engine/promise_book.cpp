#include "engine/promise_book.h"

#include <limits>

#include "base/error.h"

namespace chasqui {

PromiseBook::Expired PromiseBook::advance(TimePoint now) {
  while (!coming_.empty() && (*coming_.begin())->hold_from <= now) {
    Entry* const entry = *coming_.begin();
    coming_.erase(coming_.begin());
    entry->held = true;
    held_.insert(entry);
  }
  Expired expired;
  while (!held_.empty() && (*held_.begin())->expires <= now) {
    const Entry& entry = **held_.begin();
    ++expired.promises;
    expired.never_came += entry.late ? 0 : 1;
    remove(entry);
  }
  return expired;
}

void PromiseBook::add(const Promise& promise) {
  CHECK(!full(), "the book of promises is full");
  promises_.emplace_back();
  Entry& entry = promises_.back();
  static_cast<Promise&>(entry) = promise;
  entry.number = next_number_++;
  entry.place = std::prev(promises_.end());
  by_request_.insert(&entry);
  coming_.insert(&entry);
}

const Promise* PromiseBook::first(Fingerprint fingerprint) const {
  Entry key;
  key.fingerprint = fingerprint;
  key.due = TimePoint::min();
  const auto found = by_request_.lower_bound(&key);
  return found != by_request_.end() && (*found)->fingerprint == fingerprint ? *found : nullptr;
}

const Promise* PromiseBook::last(Fingerprint fingerprint) const {
  Entry key;
  key.fingerprint = fingerprint;
  key.due = TimePoint::max();
  key.number = std::numeric_limits<std::uint64_t>::max();
  const auto after = by_request_.upper_bound(&key);
  if (after == by_request_.begin()) return nullptr;
  const Entry* const found = *std::prev(after);
  return found->fingerprint == fingerprint ? found : nullptr;
}

void PromiseBook::remove(const Promise& promise) {
  // Every promise that the book hands out is the front of an Entry of its own.
  Entry* const entry = const_cast<Entry*>(static_cast<const Entry*>(&promise));  // NOLINT
  by_request_.erase(entry);
  if (entry->held) {
    held_.erase(entry);
  } else {
    coming_.erase(entry);
  }
  promises_.erase(entry->place);
}

}  // namespace chasqui
