// Prompts that are read together: which of them are, and how they are made to fit one pass. That no batch of dense
// slots needs more than one, and that nothing of the padding is kept, FakeModel checks in every test.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;

TEST(SchedulerCompany, PromptsOfAlikeLengthAreFilledUpToOnePass) {
  FakeWorker worker(dense_streams(4, 256, 100));
  worker.add(1, 18, 3);
  worker.add(2, 20, 3);
  worker.add(3, 19, 3);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 18}, {2, 20}, {3, 19}}));
  EXPECT_EQ(worker.batch.rows.size(), 60u);
  EXPECT_EQ(worker.batch.padding_rows(), 3);
  worker.run_to_end();
}

TEST(SchedulerCompany, OfALongerPromptThePartThatIsAsLongAsTheOthersIsRead) {
  FakeWorker worker(dense_streams(4, 256, 100));
  worker.add(1, 10, 3);
  worker.add(2, 40, 3);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 10}, {2, 10}}));
  EXPECT_EQ(worker.batch.padding_rows(), 0);
  worker.run_to_end();
}

TEST(SchedulerCompany, AMuchShorterPromptIsNotFilledUp) {
  FakeWorker worker(dense_streams(4, 256, 100));
  worker.add(1, 40, 3);
  worker.add(2, 28, 3);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 40}})) << "more than a quarter would be wasted";
  worker.run_to_end();
}

TEST(SchedulerCompany, ASlotIsNotFilledBeyondItsCells) {
  FakeWorker worker(with_cache(dense_streams(4, 256, 48)));
  worker.add(1, {.prompt = 31, .max_tokens = 1, .shared = 31});
  worker.run_to_end();
  worker.add(2, {.prompt = 47, .max_tokens = 1, .shared = 31});
  worker.add(3, {.prompt = 18, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  ASSERT_EQ(worker.parts.front(), (std::pair<std::uint64_t, TokenCount>(2, 16)));
  EXPECT_EQ(worker.batch.padding_rows(), 0) << "two cells would be missing";
  worker.run_to_end();
}

TEST(SchedulerCompany, GrowsNoFurtherThanRowsGetCheaper) {
  FakeWorker worker(dense_streams(8, 256, 100));
  worker.add(1, 40, 1);
  worker.run_to_end();  // so that it is known what 40 rows cost
  for (std::uint64_t id = 2; id <= 6; ++id) worker.add(id, 40, 1);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{2, 40}})) << "40 rows cost as much for each as more would";
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
