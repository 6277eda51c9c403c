// What is kept of tenants for a while, by names of theirs: the store behind responses and idempotent answers. Nothing
// is seen by another tenant than its own. Loop thread only.
//
// bounded: entries and bytes, in all and of each tenant; the oldest makes room, and each is forgotten when its time
// is over. What leaves may be made of half a million parts: more than a little of it is freed by another thread, and of
// entries whose time is over, which no caller finds any more, each call removes some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/free_later.h"

namespace chasqui {

struct TenantStoreLimits {
  std::size_t entries = SIZE_MAX;
  std::size_t bytes = SIZE_MAX;
  std::size_t tenant_entries = SIZE_MAX;
  std::size_t tenant_bytes = SIZE_MAX;
  Duration ttl{};
};

template <class Value>
class TenantStore {
 public:
  using Name = std::pair<std::uint32_t, std::string>;  // of the tenant

  static constexpr std::size_t kExpiredAtOnce = 256;      // entries that one call removes because their time is over
  static constexpr std::size_t kFreedAtOnce = 64 * 1024;  // bytes that a call frees itself

  explicit TenantStore(const TenantStoreLimits& limits) : limits_(limits) {}

  // Takes what leaves, where it is more than a little.
  void set_free_later(FreeLater call) { free_later_ = std::move(call); }

  // Replaces what has this name, which keeps its time.
  void put(const Name& name, Value value, std::size_t bytes, TimePoint now) {
    expire(now);
    if (const auto before = by_name_.find(name); before != by_name_.end() && over(*before->second, now)) {
      forget(before->second);
    }
    auto [found, fresh] = by_name_.try_emplace(name);
    if (fresh) {
      found->second = entries_.insert(entries_.end(), Entry{found, {}, now + limits_.ttl});
      ++all_.entries;
      ++tenants_[name.first].entries;
    }
    Entry& entry = *found->second;
    if (!fresh) {
      gone_.push_back({found, std::move(entry.value), entry.expires, entry.bytes});
      gone_bytes_ += entry.bytes;
    }
    entry.value = std::move(value);
    all_.bytes += bytes - entry.bytes;
    tenants_[name.first].bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    make_room(name.first);
    let_go();
  }

  // Null when there is none. Valid until the next call that changes the store.
  const Value* find(const Name& name, TimePoint now) {
    expire(now);
    const auto found = by_name_.find(name);
    return found != by_name_.end() && !over(*found->second, now) ? &found->second->value : nullptr;
  }

  // All of a tenant's.
  template <class Look>
  void each_of(std::uint32_t tenant, TimePoint now, Look&& look) {
    expire(now);
    for (auto found = by_name_.lower_bound({tenant, ""}); found != by_name_.end() && found->first.first == tenant;
         ++found) {
      if (!over(*found->second, now)) look(std::as_const(found->second->value));
    }
  }

  bool erase(const Name& name, TimePoint now) {
    expire(now);
    const auto found = by_name_.find(name);
    if (found == by_name_.end() || over(*found->second, now)) return false;
    forget(found->second);
    let_go();
    return true;
  }

  // Of those, too, whose time is over and that are still to be removed.
  std::size_t size() const { return all_.entries; }
  std::size_t bytes() const { return all_.bytes; }
  std::size_t bytes(std::uint32_t tenant) const {
    const auto found = tenants_.find(tenant);
    return found != tenants_.end() ? found->second.bytes : 0;
  }

 private:
  struct Entry;
  using Entries = std::list<Entry>;  // the oldest first
  using ByName = std::map<Name, typename Entries::iterator>;
  struct Entry {
    typename ByName::iterator name;
    Value value;
    TimePoint expires;
    std::size_t bytes = 0;
  };
  struct Share {
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };

  static bool over(const Entry& entry, TimePoint now) { return entry.expires <= now; }

  void expire(TimePoint now) {
    for (std::size_t n = 0; n < kExpiredAtOnce && !entries_.empty() && over(entries_.front(), now); ++n) {
      forget(entries_.begin());
    }
    let_go();
  }

  // The tenant's own goes first, so that what is too much of it costs no other tenant anything.
  void make_room(std::uint32_t tenant) {
    const auto too_much = [this, tenant] {
      const auto share = tenants_.find(tenant);
      return share != tenants_.end() &&
             (share->second.entries > limits_.tenant_entries || share->second.bytes > limits_.tenant_bytes);
    };
    for (auto entry = entries_.begin(); too_much();) {
      const auto next = std::next(entry);
      if (entry->name->first.first == tenant) forget(entry);
      entry = next;
    }
    while (all_.entries > limits_.entries || all_.bytes > limits_.bytes) forget(entries_.begin());
  }

  void forget(typename Entries::iterator entry) {
    const auto share = tenants_.find(entry->name->first.first);
    all_.bytes -= entry->bytes;
    share->second.bytes -= entry->bytes;
    --all_.entries;
    if (--share->second.entries == 0) tenants_.erase(share);
    by_name_.erase(entry->name);
    gone_bytes_ += entry->bytes;
    gone_.splice(gone_.end(), entries_, entry);
  }

  // Every call ends with it.
  void let_go() {
    if (std::exchange(gone_bytes_, 0) <= kFreedAtOnce) {
      gone_.clear();
    } else {
      free_later_(std::make_shared<const Entries>(std::exchange(gone_, {})));
    }
  }

  const TenantStoreLimits limits_;
  Entries entries_;
  ByName by_name_;
  std::map<std::uint32_t, Share> tenants_;
  Share all_;
  Entries gone_;  // not here any more; their names are not valid
  std::size_t gone_bytes_ = 0;
  FreeLater free_later_ = free_now;
};

}  // namespace chasqui
