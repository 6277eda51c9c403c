#include "api/core/request_log.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/observe/span_json.h"

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

TEST(RequestLog, KeepsTheNewestForTraceFiles) {
  Told told;
  told.open();
  told.clock.advance(seconds(1));
  const TimePoint begin = told.clock.now();
  told.open();
  EXPECT_EQ(told.log.ended_since(begin).size(), 1u);
  EXPECT_EQ(told.log.ended_since({}).size(), 2u);
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
