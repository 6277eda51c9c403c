#include "api/core/idempotency_store.h"

#include <algorithm>

#include "base/error.h"

namespace chasqui {

IdempotencyStore::Found IdempotencyStore::begin(const Name& name, const net::Sha256& request, TimePoint now) {
  make_room(name.first, now);
  const auto [entry, fresh] = entries_.try_emplace(name, Entry{request});
  if (fresh) return {};
  if (entry->second.request != request) {
    metrics_.other.add();
    return {State::other_request};
  }
  if (entry->second.answer == nullptr) {
    metrics_.running.add();
    return {State::running};
  }
  metrics_.replayed.add();
  return {State::answered, entry->second.answer};
}

void IdempotencyStore::keep(const Name& name, AnswerPtr answer, TimePoint now) {
  Entry& entry = entries_.at(name);
  CHECK(entry.answer == nullptr, "it is answered once");
  entry.bytes = answer->bytes() + name.second.size() + sizeof(Entry);
  entry.answer = std::move(answer);
  entry.expires = now + limits_.ttl;
  bytes_ += entry.bytes;
  tenant_bytes_[name.first] += entry.bytes;
  answered_.push_back(name);
  make_room(name.first, now);
}

void IdempotencyStore::forget(const Name& name) { entries_.erase(name); }

void IdempotencyStore::make_room(std::uint32_t tenant, TimePoint now) {
  while (!answered_.empty() && entries_.at(answered_.front()).expires <= now) drop(answered_.begin());
  while (answered_.size() > limits_.answers || bytes_ > limits_.bytes) drop(answered_.begin());
  const auto own = tenant_bytes_.find(tenant);
  while (own != tenant_bytes_.end() && own->second > limits_.tenant_bytes) {
    drop(std::ranges::find(answered_, tenant, &Name::first));
  }
  metrics_.answers.set(static_cast<std::int64_t>(answered_.size()));
  metrics_.bytes.set(static_cast<std::int64_t>(bytes_));
}

// Tenants stay in the table of bytes: there are as many as there are keys.
void IdempotencyStore::drop(std::list<Name>::iterator answered) {
  const auto entry = entries_.find(*answered);
  bytes_ -= entry->second.bytes;
  tenant_bytes_[answered->first] -= entry->second.bytes;
  entries_.erase(entry);
  answered_.erase(answered);
}

}  // namespace chasqui
