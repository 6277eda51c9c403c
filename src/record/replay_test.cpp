#include "record/replay.h"

#include <gtest/gtest.h>

#include "core/fake_media.h"
#include "record/fake_recording.h"
#include "record/recorded_occupancy.h"
#include "sched/fake_worker.h"

namespace chasqui {
namespace {

ReplayReport replay_of(const std::string& bytes, const ReplayOptions& options = {}) {
  const Result<RecordFile> file = RecordFile::parse(bytes);
  EXPECT_TRUE(file) << file.error().message;
  if (!file || file->streams().size() != 1) return {};
  return replay(file->streams().front(), options);
}

std::string said(const ReplayReport& report) { return report.difference.value_or("") + report.fault.value_or(""); }

// Everything that the scheduler can have at once.
FakeLoad rich_load(std::uint64_t seed) {
  FakeLoad load = fake_load(seed);
  SchedulerConfig& scheduler = load.config.scheduler;
  scheduler.exchanges = true;
  scheduler.reuse.cache.bytes = 3000 * kTokenBytes;
  scheduler.reuse.kv_block = 16;
  scheduler.reuse.kv_token_bytes = kTokenBytes;
  scheduler.reuse.disk = DiskLimits{100'000, 10'000};
  scheduler.speculation = {.draft_tokens_max = 4, .outputs_max = 40};
  load.config.cost.disk.failed = 0.02;
  load.config.disturbances.unrestored = 0.05;
  load.workload.repeats = 0.95;
  load.workload.adapters = 2;
  load.workload.adapter_share = 0.5;
  load.workload.output = *Distribution::parse("20-80", "");
  return load;
}

class ReplaySeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ReplaySeeds, PlansTheSameAgain) {
  const ReplayReport report = replay_of(recorded(fake_load(GetParam())));
  EXPECT_TRUE(report.agrees()) << said(report);
  EXPECT_GT(report.steps, 1000u);
  EXPECT_GT(report.requests, 500u);
  EXPECT_EQ(report.requests, report.finished);
}

TEST_P(ReplaySeeds, PlansTheSameWithDraftsAdaptersAndADisk) {
  const ReplayReport report = replay_of(recorded(rich_load(GetParam())));
  EXPECT_TRUE(report.agrees()) << said(report);
  EXPECT_GT(report.steps, 1000u);
}

TEST_P(ReplaySeeds, PlansTheSameInOnePoolOfCells) {
  FakeLoad load = fake_load(GetParam());
  load.config.scheduler.kv = {8, 500, 256, true};
  load.config.scheduler.dense_slots = false;
  load.config.scheduler.reuse.cache.cut_anywhere = false;
  load.config.cost.unified = true;
  const ReplayReport report = replay_of(recorded(load));
  EXPECT_TRUE(report.agrees()) << said(report);
}

INSTANTIATE_TEST_SUITE_P(Replay, ReplaySeeds, testing::Range<std::uint64_t>(1, 5));

TEST(Replay, PlansTheSameWithPicturesThatAreEncodedMeanwhile) {
  FakeSink sink;
  RecordedHead head;
  head.program = "chasqui test";
  head.model = "fake";
  head.config = with_cache(dense_streams(3, 32, 200));
  head.config.encodes = true;
  {
    SchedulerRecorder recorder(sink, 0, head, StandIns::new_secret());
    SchedulerConfig config = head.config;
    config.tap = &recorder;
    FakeWorker worker(config);
    worker.encodes_at_once = false;
    worker.add(1, 10, 40);
    for (const std::uint64_t id : {2, 3, 4}) {
      worker.submit(id, FakePrompt().text(20, 2).picture(40, id).text(10, 3).draft(3), {});
    }
    for (int i = 0; i < 20; ++i) worker.step();
    const Error error{ErrorCode::model_failure, "it failed", ""};
    worker.scheduler.encoded({.request = RequestId{2}, .begin = 20, .error = error}, worker.clock.now());
    for (int i = 0; i < 3; ++i) worker.step();
    worker.encodes_at_once = true;
    while (worker.step()) continue;
  }
  const ReplayReport report = replay_of(sink.file);
  EXPECT_TRUE(report.agrees()) << said(report);
  EXPECT_EQ(report.requests, 4u);
  EXPECT_EQ(report.finished, 4u);
}

TEST(Replay, PlansTheSameWithAnswersThatWereBegunElsewhere) {
  FakeSink sink;
  RecordedHead head;
  head.program = "chasqui test";
  head.model = "fake";
  head.config = with_cache(dense_streams(3, 32, 200));
  head.config.speculation = {.draft_tokens_max = 4, .outputs_max = 40};
  {
    SchedulerRecorder recorder(sink, 0, head, StandIns::new_secret());
    SchedulerConfig config = head.config;
    config.tap = &recorder;
    FakeWorker worker(config);
    const FakeScript script{.repeats = true};
    for (std::uint64_t id = 1; id <= 9; ++id) {
      RequestDraft draft;
      draft.prompt = test_prompt(60, id / 2);
      std::vector<Token> history = draft.prompt;
      for (std::uint64_t n = 0; n < 8 * (id % 4); ++n) {
        history.push_back(fake_next(history, script.repeats));
        draft.begun.push_back(history.back());
      }
      draft.max_tokens = 60;
      worker.submit(id, std::move(draft), script);
      worker.step();
    }
    worker.scheduler.cancel(RequestId{9}, worker.clock.now(), FinishReason::stop);
    while (worker.step()) continue;
    EXPECT_GT(worker.model.accepted_tokens(), 0u);
  }
  const ReplayReport report = replay_of(sink.file);
  EXPECT_TRUE(report.agrees()) << said(report);
  EXPECT_EQ(report.requests, 9u);
  EXPECT_EQ(report.finished, 9u);
}

// What a wrong constant of a policy, or a rule that is broken, would do.
TEST(Replay, AnInjectedBugIsFoundFromTheFileAlone) {
  const std::string file = recorded(fake_load(1));
  const std::pair<const char*, void (*)(SchedulerConfig&)> bugs[] = {
      {"another policy", [](SchedulerConfig& config) { config.policy = &first_come_policy(); }},
      {"tenants do not count", [](SchedulerConfig& config) { config.targets.rules.tenants = false; }},
      {"steps are not padded", [](SchedulerConfig& config) { config.targets.rules.pad_decode = false; }},
      {"a target is missed", [](SchedulerConfig& config) { config.targets.of[1].next_token = milliseconds(60); }},
      {"a cache is too small", [](SchedulerConfig& config) { config.reuse.cache.bytes /= 2; }},
      {"a prefix is not waited for", [](SchedulerConfig& config) { config.reuse.waits = false; }},
  };
  for (const auto& [bug, change] : bugs) {
    const ReplayReport report = replay_of(file, {.change = change});
    ASSERT_TRUE(report.difference) << bug;
    EXPECT_NE(report.difference->find("recorded"), std::string::npos) << *report.difference;
    EXPECT_NE(report.difference->find("step " + std::to_string(report.plans + 1)), std::string::npos);
  }
}

TEST(Replay, SaysWhatDiffers) {
  const auto change = [](SchedulerConfig& config) { config.rows_max = 32; };
  const ReplayReport report = replay_of(recorded(fake_load(1)), {.change = change});
  ASSERT_TRUE(report.difference);
  EXPECT_NE(report.difference->find("part 0 (request "), std::string::npos) << *report.difference;
  EXPECT_NE(report.difference->find("rows is 32, recorded was "), std::string::npos) << *report.difference;
}

TEST(Replay, WhatAStepHasLeftIsCompared) {
  const std::string file = recorded(fake_load(1));
  const Result<RecordFile> whole = RecordFile::parse(file);
  ASSERT_TRUE(whole);
  using Change = void (*)(Occupancy&);
  const std::pair<const char*, Change> changes[] = {
      {"running after the step before it: ", [](Occupancy& left) { ++left.running; }},
      {"waiting after ", [](Occupancy& left) { ++left.waiting[1]; }},
      {"streams after ", [](Occupancy& left) { --left.streams[2]; }},
      {"cells after ", [](Occupancy& left) { left.cells += 7; }},
      {"the classes of those that wait", [](Occupancy& left) { ++left.waiting[0], --left.waiting[1]; }},
  };
  for (const auto& [says, change] : changes) {
    RecordStream stream = whole->streams().front();
    const auto record = std::ranges::find(stream.records, TapKind::committed, &Record::kind);
    ASSERT_NE(record, stream.records.end());
    Occupancy left;
    ByteReader in(record->parts);
    pass_occupancy(in, left);
    change(left);
    std::string bytes;
    ByteWriter out(bytes);
    pass_occupancy(out, left);
    record->parts = bytes;
    const ReplayReport report = replay(stream);
    ASSERT_TRUE(report.difference) << says;
    EXPECT_NE(report.difference->find(says), std::string::npos) << *report.difference;
    EXPECT_EQ(report.steps, 1u);
    stream.records.erase(record - 1 - (record[-1].kind == TapKind::finished ? 1 : 0));  // what came of the step
    EXPECT_TRUE(replay(stream).fault) << says;
  }
}

TEST(Replay, WhatWasCutOffIsLeftOut) {
  const std::string file = recorded(fake_load(2));
  const ReplayReport all = replay_of(file);
  std::uint64_t plans = 0;
  for (std::size_t length = file.size() / 8; length < file.size(); length += file.size() / 8 + 1) {
    Result<RecordFile> cut = RecordFile::parse(file.substr(0, length));
    ASSERT_TRUE(cut);
    if (cut->cut() == 0) cut = RecordFile::parse(file.substr(0, length - 1));  // it was the end of a block
    ASSERT_TRUE(cut);
    EXPECT_GT(cut->cut(), 0u);
    const ReplayReport report = replay(cut->streams().front());
    EXPECT_TRUE(report.agrees()) << said(report);
    EXPECT_GE(report.plans, plans);
    EXPECT_LT(report.plans, all.plans);
    plans = report.plans;
  }
  EXPECT_GT(plans, 0u);
}

TEST(Replay, ASinkThatEndsTheRecordingLeavesWhatIsWhole) {
  const ReplayReport report = replay_of(recorded(fake_load(2), FakeSink(20)));
  EXPECT_TRUE(report.agrees()) << said(report);
  EXPECT_GT(report.plans, 10u);
}

// What was recorded twice has nothing in it that could be found again by its tokens.
TEST(Replay, EachRecordingHasItsOwnStandIns) {
  FakeLoad load = fake_load(3);
  load.workload.requests = 50;
  const std::string first = recorded(load);
  const std::string second = recorded(load);
  EXPECT_NE(first, second);
  EXPECT_TRUE(replay_of(first).agrees());
  EXPECT_TRUE(replay_of(second).agrees());
}

// Where the checksums are right all the same, as in a file that was written so on purpose.
TEST(Replay, AStreamThatNoSchedulerWritesIsAFault) {
  RecordStream stream;
  EXPECT_TRUE(replay(stream).fault);
  std::string head;
  ByteWriter io(head);
  RecordedHead wrong;
  pass_head(io, wrong);
  stream.records = {{TapKind::head, head}};
  EXPECT_NE(said(replay(stream)).find("slots is 0"), std::string::npos) << said(replay(stream));

  const std::string file = recorded(fake_load(4));
  const Result<RecordFile> whole = RecordFile::parse(file);
  ASSERT_TRUE(whole);
  for (std::size_t gone = 0; gone < 200; ++gone) {  // one record is missing
    RecordStream without = whole->streams().front();
    without.records.erase(without.records.begin() + static_cast<std::ptrdiff_t>(gone));
    if (without.records.size() > 2000) without.records.resize(2000);
    const ReplayReport report = replay(without);
    EXPECT_LE(report.records, 2000u);
  }
}

}  // namespace
}  // namespace chasqui
