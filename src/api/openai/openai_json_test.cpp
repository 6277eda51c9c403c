#include "api/openai/openai_json.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

namespace json = boost::json;

AnswerHead head(bool include_usage = false) { return {"chatcmpl-1", "demo", "chasqui-1", 1700000000, include_usage}; }

Event text_event(std::string text) {
  Event event;
  event.text = std::move(text);
  event.tokens = 1;
  return event;
}

Event finished_event(FinishReason reason) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.prompt = 5;
  event.usage.completion = 3;
  event.usage.queue = milliseconds(1);
  event.usage.prefill = milliseconds(10);
  event.usage.decode = milliseconds(4);
  return event;
}

// The payloads of all frames, parsed; "[DONE]" as a string.
std::vector<json::value> frames_of(std::string_view text) {
  std::vector<json::value> out;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    EXPECT_NE(end, text.npos);
    const std::string_view line = text.substr(0, end);
    EXPECT_TRUE(line.starts_with("data: ")) << line;
    out.push_back(line == "data: [DONE]" ? json::value("[DONE]") : json::parse(line.substr(6)));
    text.remove_prefix(end + 2);
  }
  return out;
}

TEST(ChatWriter, AStreamIsRoleThenTextThenReasonThenDone) {
  auto writer = make_chat_writer(head());
  std::string out;
  writer->text(text_event("Hel\"lo\n"), out);
  writer->text(text_event(""), out);  // held back: no frame
  writer->end(finished_event(FinishReason::stop), out);
  const auto got = frames_of(out);
  ASSERT_EQ(got.size(), 4u);
  const auto choice = [&got](std::size_t i) { return got[i].at("choices").at(0); };
  EXPECT_EQ(choice(0).at("delta"), json::parse(R"({"role":"assistant","content":null})"));
  EXPECT_EQ(choice(1).at("delta").at("content"), "Hel\"lo\n");
  EXPECT_TRUE(choice(1).at("finish_reason").is_null());
  EXPECT_EQ(choice(2).at("delta"), json::parse("{}"));
  EXPECT_EQ(choice(2).at("finish_reason"), "stop");
  EXPECT_EQ(got[2].at("timings").at("predicted_n"), 3);
  EXPECT_EQ(got[2].at("timings").at("queue_ms"), 1);
  EXPECT_EQ(got[3], "[DONE]");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].at("object"), "chat.completion.chunk");
    EXPECT_EQ(got[i].at("id"), "chatcmpl-1");
    EXPECT_EQ(got[i].at("created"), 1700000000);
  }
}

TEST(ChatWriter, TheRestThatWasHeldBackComesBeforeTheReason) {
  auto writer = make_chat_writer(head());
  Event last = finished_event(FinishReason::length);
  last.text = "tail";
  std::string out;
  writer->end(last, out);
  const auto got = frames_of(out);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[1].at("choices").at(0).at("delta").at("content"), "tail");
  EXPECT_EQ(got[2].at("choices").at(0).at("finish_reason"), "length");
}

TEST(ChatWriter, UsageComesInAChunkWithoutChoicesWhenAskedFor) {
  auto writer = make_chat_writer(head(true));
  std::string out;
  writer->end(finished_event(FinishReason::stop), out);
  const auto got = frames_of(out);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_TRUE(got[2].at("choices").as_array().empty());
  EXPECT_EQ(got[2].at("usage"), json::parse(R"({"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,
                                               "prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST(ChatWriter, AWholeAnswerIsOneObject) {
  auto writer = make_chat_writer(head());
  const Event last = finished_event(FinishReason::stop);
  const json::value whole = json::parse(writer->whole({Collected{"Hi", {}, {}, {}, last}}));
  EXPECT_EQ(whole.at("object"), "chat.completion");
  EXPECT_EQ(whole.at("choices").at(0).at("message"), json::parse(R"({"role":"assistant","content":"Hi"})"));
  EXPECT_EQ(whole.at("usage").at("total_tokens"), 8);
}

TEST(CompletionWriter, PutsTextIntoTheChoice) {
  auto writer = make_completion_writer(head());
  std::string out;
  writer->text(text_event("one"), out);
  writer->end(finished_event(FinishReason::deadline), out);
  const auto got = frames_of(out);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].at("object"), "text_completion");
  EXPECT_EQ(got[0].at("choices").at(0).at("text"), "one");
  EXPECT_EQ(got[1].at("choices").at(0).at("text"), "");
  EXPECT_EQ(got[1].at("choices").at(0).at("finish_reason"), "length");  // a deadline cuts short
}

TEST(CompletionWriter, TellsTheProcessorTimeOfAllChoices) {
  AnswerHead two = head();
  two.n = two.best_of = 2;
  auto writer = make_completion_writer(std::move(two));
  Event last = finished_event(FinishReason::stop);
  last.usage.cpu = milliseconds(3);
  last.usage.joules = 0.5;
  const json::value whole = json::parse(writer->whole({{"one", {}, {}, {}, last}, {"two", {}, {}, {}, last}}));
  EXPECT_EQ(whole.at("timings").at("predicted_n"), 3) << "of the first";
  EXPECT_EQ(whole.at("timings").at("cpu_ms"), 6);
  EXPECT_EQ(whole.at("timings").at("joules"), 1);
}

TEST(Timings, AnAnswerWithoutTokensHasNoRates) {
  std::string out;
  JsonWriter writer(out);
  write_timings(writer, Usage{});
  const json::value timings = json::parse(out);
  EXPECT_EQ(timings.at("predicted_per_second"), 0);
  EXPECT_EQ(timings.at("prompt_per_second"), 0);
}

}  // namespace
}  // namespace chasqui
