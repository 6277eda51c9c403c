#include "api/core/idempotency_store.h"

#include "base/error.h"

namespace chasqui {

IdempotencyStore::Found IdempotencyStore::begin(const Name& name, const net::Sha256& request, TimePoint now) {
  const Kept* const kept = answered_.find(name, now);
  tell();
  if (kept == nullptr) {
    const auto [running, fresh] = running_.try_emplace(name, request);
    if (fresh) return {};
    const bool same = running->second == request;
    (same ? metrics_.running : metrics_.other).add();
    return {same ? State::running : State::other_request};
  }
  const bool same = kept->request == request;
  (same ? metrics_.replayed : metrics_.other).add();
  return same ? Found{State::answered, kept->answer} : Found{State::other_request};
}

void IdempotencyStore::keep(const Name& name, AnswerPtr answer, TimePoint now) {
  const auto running = running_.find(name);
  CHECK(running != running_.end(), "it is answered once");
  const std::size_t bytes = answer->bytes() + name.second.size() + sizeof(Kept);
  answered_.put(name, {running->second, std::move(answer)}, bytes, now);
  running_.erase(running);
  tell();
}

void IdempotencyStore::tell() {
  metrics_.answers.set(static_cast<std::int64_t>(answered_.size()));
  metrics_.bytes.set(static_cast<std::int64_t>(answered_.bytes()));
}

}  // namespace chasqui
