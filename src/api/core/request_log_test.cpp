#include "api/core/request_log.h"

#include <string>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/observe/span_json.h"
#include "base/log.h"

namespace chasqui {
namespace {

namespace json = boost::json;

struct Told {
  explicit Told(RequestLogConfig config = {.lines = false}) : log(config, clock, keys) {
    log.on_ended([this](const std::shared_ptr<RequestRecord>& record) { ended.push_back(record); });
  }

  RequestNotePtr open(std::string_view traceparent = {}) {
    return log.open("/v1/chat/completions", Caller{}, traceparent, {}, "body");
  }
  RequestPtr request(std::uint64_t id) const {
    auto out = std::make_shared<Request>();
    out->id = RequestId{id};
    out->arrival = clock.now();
    return out;
  }
  static Event finished(std::uint64_t id) {
    Event event;
    event.request = RequestId{id};
    event.kind = Event::Kind::finished;
    event.reason = FinishReason::length;
    event.usage.prompt = 10;
    event.usage.completion = 4;
    event.usage.queue = milliseconds(5);
    event.usage.prefill = milliseconds(20);
    event.usage.decode = milliseconds(30);
    event.usage.steps = 6;
    event.chunks = {{milliseconds(5), milliseconds(15), 6}, {milliseconds(16), milliseconds(25), 4}};
    return event;
  }

  ManualClock clock;
  KeyRing keys;
  RequestLog log;
  std::vector<std::shared_ptr<RequestRecord>> ended;
};

TEST(RequestLog, ARequestWhoseClientLeftEndsWhenTheWorkerIsDoneWithIt) {
  Told told;
  RequestNotePtr note = told.open();
  note->submitted(*told.request(1), true);
  told.clock.advance(milliseconds(1));
  note.reset();
  told.clock.advance(milliseconds(100));
  told.log.finished(Told::finished(1));
  ASSERT_EQ(told.ended.size(), 1u);
  const RequestRecord& record = *told.ended[0];
  EXPECT_GE(record.ended - record.began, record.usage.decode);
}

TEST(RequestLog, TellsOfARequestWhenHandlerAndEngineAreBothDone) {
  Told told;
  RequestNotePtr note = told.open();
  note->submitted(*told.request(1), true);
  told.log.finished(Told::finished(1));
  EXPECT_TRUE(told.ended.empty()) << "its answer is still being written";
  note.reset();
  ASSERT_EQ(told.ended.size(), 1u);
  EXPECT_EQ(told.ended[0]->status(), 200);
  EXPECT_EQ(told.ended[0]->finish(), "length");
  EXPECT_EQ(told.ended[0]->usage.completion, 4);
}

TEST(RequestLog, WaitsForTheEngineWhenTheClientHasLeft) {
  Told told;
  RequestNotePtr note = told.open();
  note->submitted(*told.request(1), true);
  note.reset();
  EXPECT_TRUE(told.ended.empty());
  Event event = Told::finished(1);
  event.reason = FinishReason::cancelled;
  told.log.finished(event);
  ASSERT_EQ(told.ended.size(), 1u);
  EXPECT_EQ(told.ended[0]->status(), 499);
}

TEST(RequestLog, HasARecordForEachOfSeveralAnswers) {
  Told told;
  RequestNotePtr note = told.open();
  note->submitted(*told.request(1), false);
  note->submitted(*told.request(2), false);
  told.log.finished(Told::finished(2));
  note.reset();
  ASSERT_EQ(told.ended.size(), 1u) << "the first goes on";
  told.log.finished(Told::finished(1));
  ASSERT_EQ(told.ended.size(), 2u);
  EXPECT_EQ(told.ended[0]->id, RequestId{2});
  EXPECT_EQ(told.ended[1]->id, RequestId{1});
  EXPECT_EQ(told.ended[1]->route, told.ended[0]->route);
}

TEST(RequestLog, TellsOfRefusedOnesWithTheirStatus) {
  Told told;
  told.open()->refused({ErrorCode::overloaded, "full", ""});
  ASSERT_EQ(told.ended.size(), 1u);
  EXPECT_EQ(told.ended[0]->status(), 503);
  EXPECT_EQ(told.ended[0]->finish(), "refused");
  EXPECT_EQ(told.ended[0]->error, "overloaded");
}

TEST(RequestLog, TellsOfVectorsWhichNeverGoToTheEngine) {
  Told told({.lines = false, .traces = true});
  Usage usage;
  usage.prompt = 7;
  usage.cpu = milliseconds(3);
  for (const bool left : {false, true}) {
    RequestNotePtr note = told.open();
    note->is_for(RequestKind::embedding);
    note->chosen("m");
    note->computed(told.clock.now(), usage, left);
  }
  ASSERT_EQ(told.ended.size(), 2u);
  EXPECT_EQ(told.ended[0]->status(), 200);
  EXPECT_EQ(told.ended[0]->finish(), "stop");
  EXPECT_EQ(told.ended[0]->usage.cpu, milliseconds(3));
  EXPECT_EQ(told.ended[1]->status(), 499);
  EXPECT_EQ(told.ended[1]->finish(), "cancelled");
  const json::value tree = json::parse(spans_json(told.ended, {"1", 0}));
  EXPECT_EQ(tree.at_pointer("/resourceSpans/0/scopeSpans/0/spans/0/name"), "embeddings m");
}

TEST(RequestLog, KeepsTheNewestForTraceFiles) {
  Told told;
  told.open();
  told.clock.advance(seconds(1));
  const TimePoint begin = told.clock.now();
  told.open();
  EXPECT_EQ(told.log.ended_since(begin).size(), 1u);
  EXPECT_EQ(told.log.ended_since({}).size(), 2u);
}

TEST(RequestLog, SaysInAShortLineWhatCameOfARequest) {
  RequestRecord record;
  record.route = "/v1/chat/completions";
  record.model = "tiny \"one\"\n";
  record.client = "127.0.0.1:53412";
  record.ended = record.began + milliseconds(1234);
  record.finished = true;
  record.usage.prompt = 34;
  record.usage.completion = 128;
  EXPECT_EQ(short_request_line(record), R"(200 1.2s 34→128 tok chat "tiny \"one\"\n" from 127.0.0.1:53412)");
  record.refused_with = 503;
  record.ended = record.began + milliseconds(7);
  record.usage = {};
  record.client = "unix";
  record.model.clear();
  EXPECT_EQ(short_request_line(record), R"(503 7ms 0→0 tok chat "" from unix)");
}

TEST(RequestLog, NamesTheKindOfARequestAndNeverItsClientsWords) {
  RequestRecord record;
  record.finished = true;
  for (const auto& [route, kind] :
       {std::pair("/chat/completions", "chat"), std::pair("/api/chat", "chat"), std::pair("/v1/messages", "messages"),
        std::pair("/responses", "response"), std::pair("/v1/completions", "completion"),
        std::pair("/completion", "completion"), std::pair("/infill", "infill"), std::pair("/generate", "generate"),
        std::pair("generate", "generate"), std::pair("session.generate", "session"),
        std::pair("/v1/sessions/\x1b[2J/generate", "session"), std::pair("/\n", "request"),
        std::pair("/v1/audio/transcriptions", "transcription")}) {
    record.route = route;
    EXPECT_EQ(short_request_line(record), "200 0ms 0→0 tok " + std::string(kind) + " \"\" from -");
  }
}

TEST(RequestLog, RoundsTheTimeOfAShortLine) {
  RequestRecord record;
  for (const auto& [time, words] :
       {std::pair(microseconds(400), "0ms"), std::pair(microseconds(999'400), "999ms"),
        std::pair(microseconds(999'600), "1.0s"), std::pair(microseconds(59'960'000), "60.0s")}) {
    record.ended = record.began + time;
    const std::string line = short_request_line(record);
    EXPECT_TRUE(line.starts_with("499 " + std::string(words) + ' ')) << line;
  }
}

// What a request that has a client, or is refused, leaves in the log; the settings of the process stay as they are.
class RequestLines : public testing::Test {
 protected:
  ~RequestLines() override { configure_log(LogLevel::info, LogFormat::text); }

  static std::string lines(bool short_lines, std::string_view id) {
    Told told({.short_lines = short_lines});
    testing::internal::CaptureStderr();
    {
      RequestNotePtr note = told.open();
      note->called(id);
      note->from("[::1]:4711");
      note->chosen("m");
      note->submitted(*told.request(7), false);
      told.log.finished(Told::finished(7));
    }
    told.open()->refused({ErrorCode::overloaded, "full", ""});
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(RequestLines, AreShortInALogThatIsText) {
  const std::string out = lines(true, "req_1");
  EXPECT_NE(out.find(" I 200 0ms 10→4 tok chat \"m\" from [::1]:4711 id=req_1\n"), std::string::npos) << out;
  EXPECT_NE(out.find(" I 503 0ms 0→0 tok chat \"\" from - id=0 error=overloaded\n"), std::string::npos) << out;
  const std::string without = lines(true, "");
  EXPECT_NE(without.find(" from [::1]:4711 id=7\n"), std::string::npos) << "the engine's number: " << without;
  const std::string forged = lines(true, "x\n2026 E y");
  EXPECT_NE(forged.find(" id=\"x\\n2026 E y\"\n"), std::string::npos) << forged;
}

TEST_F(RequestLines, HaveAllFieldsWhereTheyAreToBeLong) {
  const std::string out = lines(false, "req_1");
  EXPECT_NE(out.find(" I request request=7 request_id=req_1 client=[::1]:4711 trace=- "), std::string::npos) << out;
  EXPECT_NE(out.find(" request_id=- client=- "), std::string::npos) << out;
}

TEST_F(RequestLines, AlwaysHaveAllFieldsInJson) {
  configure_log(LogLevel::info, LogFormat::json);
  const std::string out = lines(true, "req_1");
  const json::value line = json::parse(out.substr(0, out.find('\n')));
  EXPECT_EQ(line.at("message"), "request");
  EXPECT_EQ(line.at("client"), "[::1]:4711");
  EXPECT_EQ(line.at("request_id"), "req_1");
  EXPECT_EQ(line.at("completion_tokens"), 4);
}

TEST(RequestLog, MakesATraceOnlyWhereSpansAreCollected) {
  Told quiet;
  quiet.open();
  EXPECT_EQ(quiet.ended[0]->trace.trace, "");
  Told traced({.lines = false, .traces = true});
  traced.open();
  EXPECT_EQ(traced.ended[0]->trace.trace.size(), 32u);
}

TEST(Spans, AreATreeWithoutGaps) {
  Told told({.lines = false, .traces = true});
  RequestNotePtr note = told.open("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  note->chosen("m");
  told.clock.advance(milliseconds(2));
  note->submitted(*told.request(1), false);
  told.clock.advance(milliseconds(56));
  told.log.finished(Told::finished(1));
  note.reset();
  const json::value tree = json::parse(spans_json(told.ended, {"1", 1'000'000'000}));
  const json::array& spans = tree.at_pointer("/resourceSpans/0/scopeSpans/0/spans").as_array();
  ASSERT_EQ(spans.size(), 8u) << tree;
  EXPECT_EQ(spans[0].at("name"), "chat m");
  EXPECT_EQ(spans[0].at("parentSpanId"), "00f067aa0ba902b7");
  EXPECT_EQ(spans[0].at("endTimeUnixNano"), "1058000000");
  json::value before = spans[0].at("startTimeUnixNano");
  for (const std::size_t i : {1, 2, 3, 6, 7}) {
    EXPECT_EQ(spans[i].at("traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_EQ(spans[i].at("parentSpanId"), spans[0].at("spanId"));
    EXPECT_EQ(spans[i].at("startTimeUnixNano"), before) << spans[i];
    before = spans[i].at("endTimeUnixNano");
  }
  EXPECT_EQ(before, spans[0].at("endTimeUnixNano"));
  EXPECT_EQ(spans[4].at("parentSpanId"), spans[3].at("spanId")) << "chunks are parts of prefill";
}

}  // namespace
}  // namespace chasqui
