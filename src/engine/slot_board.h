// Where the worker writes who has which slot, and the loop reads it: a few relaxed atomics for each slot. What is read
// of one slot may be from two different steps, which an observer can tolerate. Owned by the Engine. One writer,
// any number of readers.
#pragma once

#include <atomic>
#include <deque>

#include "core/cache_use.h"
#include "core/types.h"

namespace chasqui {

// Of one slot.
struct SlotUse {
  RequestId request;  // 0: none
  TokenCount prompt = 0;
  TokenCount computed = 0;  // positions in the model
  TokenCount cached = 0;    // … of them that were not computed for this request
  TokenCount generated = 0;
  TokenCount left = 0;  // tokens that it may still say
  CacheUse cache{};
};

class SlotBoard {
 public:
  explicit SlotBoard(std::int32_t slots) {
    for (std::int32_t i = 0; i < slots; ++i) rows_.emplace_back();
  }

  std::int32_t slots() const { return static_cast<std::int32_t>(rows_.size()); }

  void write(SlotId slot, const SlotUse& use) {
    Row& row = rows_[static_cast<std::size_t>(slot.value)];
    row.prompt.store(use.prompt, std::memory_order_relaxed);
    row.computed.store(use.computed, std::memory_order_relaxed);
    row.cached.store(use.cached, std::memory_order_relaxed);
    row.generated.store(use.generated, std::memory_order_relaxed);
    row.left.store(use.left, std::memory_order_relaxed);
    row.source.store(use.cache.source, std::memory_order_relaxed);
    row.limit.store(use.cache.limit, std::memory_order_relaxed);
    row.entry.store(use.cache.entry, std::memory_order_relaxed);
    row.known.store(use.cache.known, std::memory_order_relaxed);
    row.request.store(use.request.value, std::memory_order_relaxed);
  }

  SlotUse read(SlotId slot) const {
    const Row& row = rows_[static_cast<std::size_t>(slot.value)];
    return {RequestId{row.request.load(std::memory_order_relaxed)},
            row.prompt.load(std::memory_order_relaxed),
            row.computed.load(std::memory_order_relaxed),
            row.cached.load(std::memory_order_relaxed),
            row.generated.load(std::memory_order_relaxed),
            row.left.load(std::memory_order_relaxed),
            {row.source.load(std::memory_order_relaxed), row.limit.load(std::memory_order_relaxed),
             row.entry.load(std::memory_order_relaxed), row.known.load(std::memory_order_relaxed)}};
  }

 private:
  struct Row {
    std::atomic<std::uint64_t> request{0};
    std::atomic<TokenCount> prompt{0};
    std::atomic<TokenCount> computed{0};
    std::atomic<TokenCount> cached{0};
    std::atomic<TokenCount> generated{0};
    std::atomic<TokenCount> left{0};
    std::atomic<CacheUse::Source> source{};
    std::atomic<CacheUse::Limit> limit{};
    std::atomic<TokenCount> entry{0};
    std::atomic<TokenCount> known{0};
  };

  std::deque<Row> rows_;
};

}  // namespace chasqui
