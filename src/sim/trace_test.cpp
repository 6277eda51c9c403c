#include "sim/trace.h"

#include <sstream>

#include <gtest/gtest.h>

#include "sim/drawn_workload.h"

namespace chasqui {
namespace {

Result<TraceWorkload> read(const std::string& text) {
  std::istringstream in(text);
  return TraceWorkload::read(in, "t.jsonl");
}

std::string trace_fault(const std::string& text) {
  const Result<TraceWorkload> trace = read(text);
  return trace ? "no fault" : trace.error().message;
}

TEST(Trace, ReadsEveryField) {
  Result<TraceWorkload> trace =
      read(R"({"at_ms":1500.5,"prompt":64,"output":8,"max_tokens":20,"class":"interactive","tenant":"a","weight":2,)"
           R"("prefix":"p","prefix_tokens":32,"cancel_after_ms":100,"timeout_ms":5000,"reads_per_s":4.5})");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  PlannedRequest request;
  ASSERT_TRUE(trace->next(request));
  EXPECT_EQ(request.at, microseconds(1'500'500));
  EXPECT_EQ(request.prompt, 64);
  EXPECT_EQ(request.output, 8);
  EXPECT_EQ(request.max_tokens, 20);
  EXPECT_EQ(request.service_class, ServiceClass::interactive);
  EXPECT_EQ(trace->tenants()[request.tenant], "a");
  EXPECT_EQ(request.weight, 2);
  EXPECT_EQ(trace->prefixes()[request.prefix], "p");
  EXPECT_EQ(request.prefix_tokens, 32);
  EXPECT_EQ(request.leaving, Leaving::after_ms);
  EXPECT_EQ(request.leaves_after, 100);
  EXPECT_EQ(request.timeout_ms, 5000);
  EXPECT_EQ(request.reads_per_s, 4.5);
  EXPECT_FALSE(trace->next(request));
}

TEST(Trace, ReadsTurnsOfAConversation) {
  Result<TraceWorkload> trace = read(
      "{\"at_ms\":0,\"prompt\":4,\"output\":8,\"conversation\":\"c\",\"back\":2,\"calls\":true,\"think_ms\":1.5}\n"
      "{\"at_ms\":1,\"prompt\":4,\"output\":8}\n");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  PlannedRequest request;
  ASSERT_TRUE(trace->next(request));
  EXPECT_EQ(trace->conversations()[request.conversation], "c");
  EXPECT_EQ(request.back, 2);
  EXPECT_TRUE(request.calls);
  EXPECT_EQ(request.think, microseconds(1500));
  std::string line;
  append_trace_line(line, request, *trace);
  const Result<TraceWorkload> again = read(line);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_NE(line.find("\"back\":2,\"calls\":true"), std::string::npos) << line;
  ASSERT_TRUE(trace->next(request));
  EXPECT_EQ(request.conversation, 0u);
}

TEST(Trace, HasDefaultsAndSortsByTime) {
  Result<TraceWorkload> trace = read(
      "\n{\"at_ms\":20,\"prompt\":2,\"output\":0}\n"
      "{\"at_ms\":10,\"prompt\":1,\"output\":5,\"cancel_after_rows\":1}\n");
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  PlannedRequest request;
  ASSERT_TRUE(trace->next(request));
  EXPECT_EQ(request.prompt, 1);
  EXPECT_EQ(request.max_tokens, -1);
  EXPECT_EQ(request.service_class, ServiceClass::standard);
  EXPECT_EQ(request.leaving, Leaving::after_rows);
  ASSERT_TRUE(trace->next(request));
  EXPECT_EQ(request.prompt, 2);
  EXPECT_EQ(request.leaving, Leaving::never);
  EXPECT_EQ(trace->tenants().size(), 1u);
}

TEST(Trace, NamesTheLineAndTheFieldOfAFault) {
  const std::string good = "{\"at_ms\":0,\"prompt\":1,\"output\":1}\n";
  EXPECT_EQ(trace_fault(""), "t.jsonl:1: no requests");
  EXPECT_EQ(trace_fault(good + "{"), "t.jsonl:2: not JSON: incomplete JSON");
  EXPECT_EQ(trace_fault("[]"), "t.jsonl:1: not a JSON object");
  EXPECT_EQ(trace_fault(good + good + "{\"at_ms\":0,\"output\":1}"), "t.jsonl:3: prompt: is missing");
  const auto with = [&](const std::string& field) {
    return trace_fault(good + "{\"at_ms\":0,\"prompt\":9,\"output\":1," + field + "}");
  };
  EXPECT_EQ(with("\"color\":1"), "t.jsonl:2: color: is not a known field");
  EXPECT_EQ(with("\"class\":\"royal\""), "t.jsonl:2: class: must be interactive, standard or background");
  EXPECT_EQ(with("\"class\":1"), "t.jsonl:2: class: must be interactive, standard or background");
  EXPECT_EQ(with("\"tenant\":1"), "t.jsonl:2: tenant: must be a string");
  EXPECT_EQ(with("\"weight\":0").substr(0, 41), "t.jsonl:2: weight: must be a number betwe");
  EXPECT_EQ(with("\"max_tokens\":1.5"), "t.jsonl:2: max_tokens: must be a whole number");
  EXPECT_EQ(with("\"max_tokens\":0"), "t.jsonl:2: output: must not be over max_tokens");
  EXPECT_EQ(with("\"prefix\":\"a\""), "t.jsonl:2: prefix: needs prefix_tokens");
  EXPECT_EQ(with("\"prefix_tokens\":3"), "t.jsonl:2: prefix_tokens: needs a prefix");
  EXPECT_EQ(with("\"prefix\":\"a\",\"prefix_tokens\":10"), "t.jsonl:2: prefix_tokens: must not be more than prompt");
  EXPECT_EQ(with("\"back\":1"), "t.jsonl:2: back: needs a conversation");
  EXPECT_EQ(with("\"conversation\":\"c\",\"calls\":1"), "t.jsonl:2: calls: must be true or false");
  EXPECT_EQ(with("\"cancel_after_ms\":1,\"cancel_after_rows\":1"),
            "t.jsonl:2: cancel_after_rows: only one way to leave");
  EXPECT_EQ(trace_fault("{\"at_ms\":\"0\",\"prompt\":1,\"output\":1}").substr(0, 37),
            "t.jsonl:1: at_ms: must be a number be");
  EXPECT_EQ(trace_fault("{\"at_ms\":0,\"prompt\":0,\"output\":1}").substr(0, 37),
            "t.jsonl:1: prompt: must be a number b");
}

TEST(Trace, AWrittenWorkloadReadsTheSame) {
  WorkloadConfig config;
  config.requests = 500;
  config.classes = {1, 1, 1};
  config.tenants = {{10, 1}, {1, 2}};
  config.prefixes = 3;
  config.prefix_share = 0.5;
  config.leaving_share = 0.5;
  config.timeout_share = 0.3;
  config.slow_share = 0.2;
  config.max_tokens = 64;
  DrawnWorkload drawn(config);
  std::string text;
  std::vector<PlannedRequest> requests;
  for (PlannedRequest request; drawn.next(request);) {
    requests.push_back(request);
    append_trace_line(text, request, drawn);
  }
  Result<TraceWorkload> trace = read(text);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  ASSERT_EQ(trace->size(), 500u);
  for (const PlannedRequest& wanted : requests) {
    PlannedRequest request;
    ASSERT_TRUE(trace->next(request));
    EXPECT_EQ(request.at, wanted.at);
    EXPECT_EQ(request.prompt, wanted.prompt);
    EXPECT_EQ(request.output, wanted.output);
    EXPECT_EQ(request.service_class, wanted.service_class);
    EXPECT_EQ(trace->tenants()[request.tenant], drawn.tenants()[wanted.tenant]);
    EXPECT_EQ(trace->prefixes()[request.prefix], drawn.prefixes()[wanted.prefix]);
    EXPECT_EQ(request.leaving, wanted.leaving);
    EXPECT_EQ(request.leaves_after, wanted.leaves_after);
    EXPECT_EQ(request.timeout_ms, wanted.timeout_ms);
    EXPECT_EQ(request.weight, wanted.weight);
  }
}

}  // namespace
}  // namespace chasqui
