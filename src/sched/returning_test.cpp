// What a client has left who is expected back is kept ahead of others, and not for ever.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// How much is there of a prompt when it comes again after so many others.
TokenCount cached_after(int others, bool returns) {
  constexpr std::size_t kPrompts = 4;
  // Room for so many of them, whatever the model needs for each.
  FakeWorker sized(with_cache(streams(1, 128, 400)));
  sized.add(1, {.prompt = 200, .max_tokens = 1});
  sized.run_to_end();
  const std::size_t each = sized.scheduler.reuse().cache_stats().bytes;
  FakeWorker small(with_cache(streams(1, 128, 400), kPrompts * each + each / 2));
  std::uint64_t id = 0;
  const FakeWorker::Ask ask{.prompt = 200, .max_tokens = 1, .shared = 200, .returns = returns};
  small.add(++id, ask);
  small.run_to_end();
  for (int i = 0; i < others; ++i) {
    small.add(++id, {.prompt = 200, .max_tokens = 1});
    small.run_to_end();
  }
  small.add(++id, ask);
  small.run_to_end();
  return small.cached(id);
}

TEST(Returning, IsKeptAheadOfOthers) {
  EXPECT_GT(cached_after(3, false), 0);
  EXPECT_EQ(cached_after(12, false), 0);
  EXPECT_GT(cached_after(12, true), 0);
}

TEST(Returning, MakesRoomInTheEnd) { EXPECT_EQ(cached_after(25, true), 0); }

}  // namespace
}  // namespace chasqui
