#include "cache/holding_log.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace chasqui {

void HoldingChanges::end(std::uint64_t id) {
  if (begun.erase(id) == 0) ended.push_back(id);
}

void HoldingChanges::add(HoldingChanges& later) {
  for (const std::uint64_t id : later.ended) end(id);
  begun.merge(later.begun);
  later = {};
}

HoldingLog::HoldingLog(HoldingOwner owner, std::uint64_t first_id, Sink sink)
    : owner_(owner), sink_(std::move(sink)), next_id_(first_id) {
  CHECK(first_id > 0);
}

HoldingLog::~HoldingLog() {
  for (const std::uint64_t id : held_) changes_.end(id);
  flush();
}

std::uint64_t HoldingLog::hold(PrefixKey key, std::span<const Token> tokens) {
  return key.tenant == owner_.tenant ? begin(Medium::memory, key.adapters, tokens) : 0;
}

std::uint64_t HoldingLog::hold(LastingKey key, std::span<const Token> tokens) {
  return key.tenant == owner_.lasting ? begin(Medium::disk, key.adapter, tokens) : 0;
}

std::uint64_t HoldingLog::begin(Medium medium, std::uint64_t adapters, std::span<const Token> tokens) {
  const auto end = std::ranges::find_if(tokens, [](Token token) { return token < 0; });
  const auto length = static_cast<std::size_t>(end - tokens.begin()) / kHeldBlock * kHeldBlock;
  if (length == 0) return 0;
  changes_.begun.emplace(
      next_id_, Holding{medium, adapters, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length)}});
  held_.insert(next_id_);
  return next_id_++;
}

void HoldingLog::drop(std::uint64_t id) {
  if (id == 0) return;
  CHECK(held_.erase(id) == 1, "a holding ends twice");
  changes_.end(id);
}

void HoldingLog::flush() {
  if (!changes_.empty()) sink_(changes_);
}

}  // namespace chasqui
