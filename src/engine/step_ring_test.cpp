#include "engine/step_ring.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

// Every field says which record it is of, so that half of one and half of another cannot pass.
StepRecord record_of(std::uint64_t number) {
  StepRecord out;
  const auto n = static_cast<std::int64_t>(number);
  const auto small = static_cast<std::int32_t>(number);
  out.started = n;
  out.took = out.predicted = out.compute = 3 * n;
  out.decode_rows.fill(small);
  out.prompt_rows.fill(small + 1);
  out.waiting.fill(small + 2);
  out.streams.fill(small + 4);
  out.prefill = out.cut = small;
  out.running = out.cells = out.restored = out.saved = out.padding = out.sequences = small + 3;
  return out;
}

bool same(const StepRecord& a, const StepRecord& b) {
  return a.started == b.started && a.took == b.took && a.predicted == b.predicted && a.compute == b.compute &&
         a.decode_rows == b.decode_rows && a.prompt_rows == b.prompt_rows && a.waiting == b.waiting &&
         a.prefill == b.prefill && a.cut == b.cut && a.running == b.running && a.cells == b.cells &&
         a.restored == b.restored && a.saved == b.saved && a.padding == b.padding && a.sequences == b.sequences &&
         a.streams == b.streams;
}

TEST(StepRing, KeepsTheNewestRecordsAndSaysWhichAreGone) {
  const auto ring = std::make_unique<StepRing>();
  StepRecord read;
  EXPECT_FALSE(ring->read(0, read));
  EXPECT_FALSE(ring->read(1, read)) << "yet to come";
  const std::uint64_t last = StepRing::kStepsKept + 10;
  for (std::uint64_t n = 1; n <= last; ++n) ring->write(record_of(n));
  EXPECT_EQ(ring->written(), last);
  EXPECT_FALSE(ring->read(10, read)) << "overwritten";
  EXPECT_FALSE(ring->read(last + 1, read));
  for (std::uint64_t n = 11; n <= last; ++n) {
    ASSERT_TRUE(ring->read(n, read)) << n;
    EXPECT_TRUE(same(read, record_of(n))) << n;
  }
}

TEST(StepRing, AReaderNeverSeesHalfOfARecordWhileTheWriterLapsIt) {
  const auto ring = std::make_unique<StepRing>();
  constexpr std::uint64_t kSteps = 200 * StepRing::kStepsKept;
  std::atomic<int> reading{0};
  const auto watch = [&] {
    std::uint64_t seen = 0;
    std::uint64_t torn = 0;
    reading.fetch_add(1);
    StepRecord read;
    // The oldest that is kept is where the writer is about to write: the worst place to read.
    for (std::uint64_t end = 0; end < kSteps;) {
      end = ring->written();
      const std::uint64_t oldest = end < StepRing::kStepsKept ? 1 : end - StepRing::kStepsKept + 1;
      for (std::uint64_t n = oldest; n < oldest + 4; ++n) {
        if (!ring->read(n, read)) continue;
        ++seen;
        torn += same(read, record_of(n)) ? 0 : 1;
      }
    }
    EXPECT_EQ(torn, 0u);
    EXPECT_GT(seen, 0u);
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) readers.emplace_back(watch);
  while (reading.load() < 2) std::this_thread::yield();
  for (std::uint64_t n = 1; n <= kSteps; ++n) ring->write(record_of(n));
  for (std::thread& reader : readers) reader.join();
}

TEST(StepRing, AStepSaysHowManyRowsOfEachClassWereDecodedAndRead) {
  RequestDraft of_stream;
  of_stream.prompt = test_prompt(4);
  of_stream.service_class = ServiceClass::interactive;
  RequestDraft of_prompt;
  of_prompt.prompt = test_prompt(40);
  of_prompt.service_class = ServiceClass::background;
  const RequestPtr stream = test_request(1, std::move(of_stream));
  const RequestPtr prompt = test_request(2, std::move(of_prompt));

  Batch batch;
  batch.kind = Batch::Kind::decode;
  batch.predicted = milliseconds(7);
  batch.rows = {{.position = 9, .slot = SlotId{0}}, {.position = 5, .slot = SlotId{1}}, {.slot = SlotId{2}}};
  batch.parts = {{stream.get(), SlotId{0}, 0, 1, true}, {prompt.get(), SlotId{1}, 1, 1, false}};
  batch.padding = 1;
  batch.saves = {{SlotId{3}, 20}};
  batch.restores.resize(2);
  batch.restores[0].keep = 5;
  batch.restores[1].keep = 100;
  BatchResult result;
  result.compute = milliseconds(8);
  result.not_restored = {1};
  batch.reuses.push_back({RequestId{4}, SlotId{3}, 20});

  const StepRecord record = describe_step(batch, result);
  EXPECT_EQ(record.decode_rows, (std::array<std::int32_t, 3>{1, 0, 0}));
  EXPECT_EQ(record.prompt_rows, (std::array<std::int32_t, 3>{0, 0, 1}));
  EXPECT_EQ(record.prefill, 0);
  EXPECT_EQ(record.cut, 0);
  EXPECT_EQ(record.padding, 1);
  EXPECT_EQ(record.sequences, 2);
  EXPECT_EQ(record.saved, 20);
  EXPECT_EQ(record.restored, 25) << "what could not be restored is not counted";
  EXPECT_EQ(record.predicted, 7'000'000);
  EXPECT_EQ(record.compute, 8'000'000);

  result.status = DecodeStatus::aborted;
  EXPECT_EQ(describe_step(batch, result).cut, 1);
}

// The kind is that of an earlier step.
TEST(StepRing, AStepOfCopiesReadsNoPrompt) {
  Batch batch;
  batch.kind = Batch::Kind::prefill;
  batch.saves = {{SlotId{3}, 20}};
  EXPECT_EQ(describe_step(batch, {}).prefill, 0);
}

TEST(StepRing, AStreamWhoseContextWasShiftedReadsNoPrompt) {
  RequestLimits limits = test_limits();
  limits.shifts = true;
  const RequestPtr stream = test_request(1, 40, 500, limits);
  Batch batch;
  batch.kind = Batch::Kind::decode;
  batch.rows = {{.position = 20, .slot = SlotId{0}}};
  batch.parts = {{stream.get(), SlotId{0}, 0, 1, true}};
  const StepRecord record = describe_step(batch, {});
  EXPECT_EQ(record.decode_rows, (std::array<std::int32_t, 3>{0, 1, 0}));
  EXPECT_EQ(record.prompt_rows, (std::array<std::int32_t, 3>{}));
}

}  // namespace
}  // namespace chasqui
