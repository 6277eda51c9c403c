#include "record/load_trace.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "record/fake_recording.h"

namespace chasqui {
namespace {

RecordedHead head_of_worker(std::uint32_t worker) {
  RecordedHead head;
  head.worker = worker;
  head.config = fake_load(1).config.scheduler;
  return head;
}

RequestPtr arrived(std::uint64_t id, TokenCount prompt, std::int64_t most, ServiceClass service_class, int ms) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt, id);
  draft.max_tokens = most;
  draft.service_class = service_class;
  return test_request(id, std::move(draft), test_limits(), TimePoint{} + seconds(90) + milliseconds(ms));
}

Result<LoadTrace> trace_of(const RecordFile& file) {
  std::vector<const RecordStream*> streams;
  for (const RecordStream& stream : file.streams()) streams.push_back(&stream);
  return load_trace(streams);
}

TEST(LoadTrace, HasALineForEachRequestOfAllWorkersInTheOrderOfTheirArrival) {
  FakeSink sink;
  const StandIns::Secret secret = StandIns::new_secret();
  {
    SchedulerRecorder first(sink, 0, head_of_worker(0), secret);
    SchedulerRecorder second(sink, 1, head_of_worker(1), secret);
    first.added(*arrived(1, 30, 20, kInteractive, 0));
    second.added(*arrived(2, 7, 1, kStandard, 1250));
    first.added(*arrived(3, 50, 0, kBackground, 2500));
    second.added(*arrived(4, 8, 40, kStandard, 40));
  }
  const Result<RecordFile> file = RecordFile::parse(sink.file);
  ASSERT_TRUE(file) << file.error().message;
  const Result<LoadTrace> trace = trace_of(*file);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->requests, 4u);
  EXPECT_EQ(trace->lines,
            "{\"at_ms\":0,\"prompt_words\":30,\"max_tokens\":20,\"class\":\"interactive\"}\n"
            "{\"at_ms\":40,\"prompt_words\":8,\"max_tokens\":40,\"class\":\"standard\"}\n"
            "{\"at_ms\":1250,\"prompt_words\":7,\"max_tokens\":1,\"class\":\"standard\"}\n"
            "{\"at_ms\":2500,\"prompt_words\":50,\"max_tokens\":1,\"class\":\"background\"}\n");
}

TEST(LoadTrace, OfASimulationHasAllItsRequests) {
  const Result<RecordFile> file = RecordFile::parse(recorded(fake_load(3)));
  ASSERT_TRUE(file) << file.error().message;
  const Result<LoadTrace> trace = trace_of(*file);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_GT(trace->requests, 500u);
  EXPECT_EQ(std::ranges::count(trace->lines, '\n'), static_cast<std::ptrdiff_t>(trace->requests));
}

TEST(LoadTrace, SaysWhatIsWrongWithARecording) {
  const RecordStream nothing;
  const auto trace = load_trace({&nothing});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("head"), std::string::npos);
}

}  // namespace
}  // namespace chasqui
