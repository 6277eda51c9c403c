// Answers with parts, in the words of each protocol. A format of our own says which part a piece of text is: "r:" and
// "c:" are reasoning and content, "b:" begins a call, "a:" are arguments.
#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/anthropic/anthropic.h"
#include "api/openai/chat_json.h"
#include "api/openai/responses.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class ScriptedParser final : public AnswerParser {
 public:
  void push(std::string_view text, std::vector<AnswerDelta>& out) override {
    AnswerDelta& delta = out.emplace_back();
    const std::string rest(text.substr(2));
    if (text[0] == 'b') {
      delta.kind = AnswerDelta::Kind::call_begin;
      delta.name = rest;
      delta.call = calls_++;
      return;
    }
    delta.kind = text[0] == 'r'   ? AnswerDelta::Kind::reasoning
                 : text[0] == 'c' ? AnswerDelta::Kind::content
                                  : AnswerDelta::Kind::call_arguments;
    delta.call = calls_ > 0 ? calls_ - 1 : 0;
    delta.text = rest;
  }
  void finish(std::vector<AnswerDelta>&) override {}
  std::uint64_t bytes_parsed() const override { return 0; }

 private:
  std::size_t calls_ = 0;
};

class ScriptedFormat final : public AnswerFormat {
 public:
  std::unique_ptr<AnswerParser> make_parser() const override { return std::make_unique<ScriptedParser>(); }
};

AnswerFormatPtr scripted() { return std::make_shared<ScriptedFormat>(); }

Event piece(std::string text) {
  Event event;
  event.text = std::move(text);
  event.tokens = 1;
  return event;
}

Event finished(FinishReason reason = FinishReason::stop) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.prompt = 9;
  event.usage.cached = 4;
  event.usage.completion = 3;
  event.usage.cpu = milliseconds(7);
  return event;
}

const std::vector<std::string> kScript = {
    "r:hm", "c:\n\n", "b:weather", "a:{\"city\":", "a:\"Lima\"}", "b:time", "a:{}"};

std::string streamed(AnswerWriter& writer, const std::vector<std::string>& script, const Event& last = finished()) {
  std::string out;
  for (const std::string& text : script) writer.text(piece(text), out);
  writer.end(last, out);
  return out;
}

json::object whole(AnswerWriter& writer, const std::vector<std::string>& script, const Event& last = finished()) {
  for (const std::string& text : script) writer.hear(piece(text));
  writer.hear(last);
  return json::parse(writer.whole({Collected{"", {}, {}, {}, last}})).as_object();
}

// The JSON of each event; [DONE] is left out.
std::vector<json::object> frames(std::string_view text) {
  std::vector<json::object> out;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    const std::string_view frame = text.substr(0, end);
    const std::string_view data = frame.substr(frame.find("data: ") + 6);
    if (data != "[DONE]") {
      out.push_back(json::parse(data).as_object());
      const json::value* type = out.back().if_contains("type");
      if (type != nullptr) {
        EXPECT_TRUE(frame.starts_with("event: " + std::string(type->as_string()))) << frame;
      }
    }
    text.remove_prefix(end + 2);
  }
  return out;
}

std::string types(const std::vector<json::object>& events) {
  std::string out;
  for (const json::object& event : events) {
    if (!out.empty()) out += ' ';
    out += std::string_view(event.at("type").as_string());
  }
  return out;
}

TEST(PartsWriter, AChatStreamsCallsUnderStableIds) {
  auto writer = make_parts_writer({"chatcmpl-1", "demo", "f", 1, true}, scripted());
  const auto got = frames(streamed(*writer, kScript));
  ASSERT_EQ(got.size(), 10u);
  const auto delta = [&got](std::size_t i) { return got[i].at("choices").at(0).at("delta").as_object(); };
  EXPECT_EQ(delta(1), json::parse(R"({"reasoning_content":"hm"})"));
  EXPECT_EQ(delta(2), json::parse(R"({"content":"\n\n"})"));
  const json::object first = delta(3).at("tool_calls").at(0).as_object();
  EXPECT_EQ(first.at("index"), 0);
  EXPECT_TRUE(first.at("id").as_string().starts_with("call_"));
  EXPECT_EQ(first.at("function"), json::parse(R"({"name":"weather","arguments":""})"));
  EXPECT_EQ(delta(4), json::parse(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]})"));
  EXPECT_EQ(delta(6).at("tool_calls").at(0).at("index"), 1);
  EXPECT_NE(delta(6).at("tool_calls").at(0).at("id"), first.at("id"));
  EXPECT_EQ(got[8].at("choices").at(0).at("finish_reason"), "tool_calls");
  EXPECT_EQ(got[9].at("usage").at("total_tokens"), 12);
}

TEST(PartsWriter, AWholeChatHasTheSameParts) {
  auto writer = make_parts_writer({"chatcmpl-1", "demo", "f", 1, false}, scripted());
  const json::object body = whole(*writer, {"r:hm", "b:weather", "a:{\"city\":", "a:\"Lima\"}"});
  const json::object message = body.at("choices").at(0).at("message").as_object();
  EXPECT_TRUE(message.at("content").is_null());
  EXPECT_EQ(message.at("reasoning_content"), "hm");
  EXPECT_EQ(message.at("tool_calls").at(0).at("function"),
            json::parse(R"({"name":"weather","arguments":"{\"city\":\"Lima\"}"})"));
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "tool_calls");
}

TEST(PartsWriter, SeveralAnswersAreReadApart) {
  AnswerHead head{"chatcmpl-1", "demo", "f", 1, true};
  head.n = 2;
  auto writer = make_parts_writer(std::move(head), scripted());
  std::string out;
  const auto say = [&](std::int32_t choice, std::string text) {
    Event event = piece(std::move(text));
    event.choice = choice;
    writer->text(event, out);
  };
  say(0, "b:weather");
  say(1, "b:time");
  say(0, "a:{}");
  Event last = finished();
  writer->end(last, out);
  EXPECT_EQ(out.find("[DONE]"), std::string::npos);
  last.choice = 1;
  writer->end(last, out);
  const auto got = frames(out);
  ASSERT_EQ(got.size(), 8u);
  const auto choice = [&got](std::size_t i) { return got[i].at("choices").at(0).as_object(); };
  EXPECT_EQ(choice(3).at("index"), 1);
  EXPECT_EQ(choice(3).at("delta").at("tool_calls").at(0).at("index"), 0);
  EXPECT_EQ(choice(4).at("index"), 0);
  EXPECT_EQ(got[7].at("usage").at("completion_tokens"), 6);
  EXPECT_EQ(got[7].at("usage").at("prompt_tokens"), 9);
  EXPECT_EQ(got[6].at("timings").at("cpu_ms"), 7);
  EXPECT_EQ(got[7].at("timings").at("cpu_ms"), 14) << "of both";
}

TEST(PartsWriter, AnAnswerThatWasCutShortDoesNotAskForCalls) {
  auto chat = make_parts_writer({"chatcmpl-1", "demo", "f", 1, false}, scripted());
  EXPECT_EQ(
      whole(*chat, {"b:weather", "a:{\"ci"}, finished(FinishReason::length)).at("choices").at(0).at("finish_reason"),
      "length");
  auto message = make_message_writer("msg_1", "demo", 9, scripted());
  const json::object body = whole(*message, {"b:weather", "a:{\"ci"}, finished(FinishReason::length));
  EXPECT_EQ(body.at("stop_reason"), "max_tokens");
  EXPECT_EQ(body.at("content").at(0).at("input"), json::object());
}

TEST(MessageWriter, StreamsEachPartAsABlockOfItsOwn) {
  auto writer = make_message_writer("msg_1", "demo", 9, scripted());
  const auto got = frames(streamed(*writer, kScript));
  EXPECT_EQ(types(got),
            "message_start ping content_block_start content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_stop message_delta message_stop");
  EXPECT_EQ(got[0].at("message").at("usage").at("input_tokens"), 9);
  EXPECT_EQ(got[2].at("content_block").at("type"), "thinking");
  EXPECT_EQ(got[4].at("delta").at("type"), "signature_delta");
  EXPECT_EQ(got[6].at("content_block").at("name"), "weather");
  EXPECT_EQ(got[6].at("index"), 1);
  EXPECT_EQ(got[7].at("delta"), json::parse(R"({"type":"input_json_delta","partial_json":"{\"city\":"})"));
  EXPECT_EQ(got[13].at("delta").at("stop_reason"), "tool_use");
  EXPECT_EQ(got[13].at("usage").at("input_tokens"), 5);
  EXPECT_EQ(got[13].at("usage").at("cache_read_input_tokens"), 4);
  EXPECT_EQ(got[13].at("timings").at("cpu_ms"), 7);
}

TEST(MessageWriter, SaysWhichSequenceStoppedIt) {
  auto writer = make_message_writer("msg_1", "demo", 9, scripted());
  Event last = finished();
  last.stop_string = "END";
  const json::object body = whole(*writer, {"c:Hello"}, last);
  EXPECT_EQ(body.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(body.at("stop_sequence"), "END");
  EXPECT_EQ(body.at("content"), json::parse(R"([{"type":"text","text":"Hello"}])"));
  EXPECT_EQ(body.at("timings").at("cpu_ms"), 7);
}

TEST(MessageWriter, FailsInItsOwnWords) {
  auto writer = make_message_writer("msg_1", "demo", 9, scripted());
  std::string out;
  writer->fail({ErrorCode::model_failure, "no", ""}, out);
  EXPECT_EQ(out, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no\"}}\n\n");
}

class ResponseWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<AnswerWriter> make(const std::string& id, bool store = true) {
    ResponseHead head;
    head.id = id;
    head.model = "demo";
    head.echo = R"(,"metadata":{})";
    head.store = store;
    head.input = std::make_shared<const ResponseInput>(ResponseInput{{R"({"id":"item_1"})"}, {"item_1"}});
    head.before = std::make_shared<const std::vector<std::shared_ptr<const ChatMessage>>>();
    input_ = head.input;
    before_ = head.before;
    return make_response_writer(std::move(head), RequestId{7}, scripted(), store_, clock_, begin_);
  }
  const StoredResponse* find(const std::string& id) { return store_.find({0, id}, clock_.now()); }
  std::string status(const std::string& id) {
    return std::string(json::parse(*find(id)->body).at("status").as_string());
  }

  ManualClock clock_;
  ResponseStore store_;
  std::function<void()> begin_;
  std::weak_ptr<const ResponseInput> input_;  // of the newest
  ConversationPtr::weak_type before_;
};

TEST_F(ResponseWriterTest, StreamsItemsAsNumberedEvents) {
  auto writer = make("resp_1");
  begin_();
  const auto got = frames(streamed(*writer, kScript));
  EXPECT_EQ(types(got),
            "response.created response.in_progress response.output_item.added response.content_part.added "
            "response.reasoning_text.delta response.reasoning_text.done response.content_part.done "
            "response.output_item.done response.output_item.added response.function_call_arguments.delta "
            "response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done "
            "response.output_item.added response.function_call_arguments.delta "
            "response.function_call_arguments.done response.output_item.done response.completed");
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].at("sequence_number"), i);
  EXPECT_EQ(got[11].at("arguments"), R"({"city":"Lima"})");
  const json::object response = got.back().at("response").as_object();
  EXPECT_EQ(response.at("status"), "completed");
  EXPECT_EQ(response.at("output").as_array().size(), 3u);
  EXPECT_EQ(response.at("output").at(1).at("name"), "weather");
  EXPECT_EQ(response.at("usage").at("input_tokens_details").at("cached_tokens"), 4);
  EXPECT_EQ(json::parse(*find("resp_1")->body), response);
  EXPECT_EQ(find("resp_1")->conversation->back()->tool_calls.size(), 2u);
}

TEST_F(ResponseWriterTest, IsKeptInTheStateThatItIsIn) {
  auto writer = make("resp_1");
  begin_();
  EXPECT_EQ(status("resp_1"), "in_progress");
  EXPECT_EQ(find("resp_1")->running, RequestId{7});
  const json::object body = whole(*writer, {"c:Hello"}, finished(FinishReason::length));
  EXPECT_EQ(body.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(body.at("timings").at("cpu_ms"), 7);
  EXPECT_EQ(status("resp_1"), "incomplete");
  EXPECT_FALSE(find("resp_1")->running);
  EXPECT_EQ(find("resp_1")->conversation->back()->content, "Hello");

  auto left = make("resp_2");
  begin_();
  left.reset();
  EXPECT_EQ(status("resp_2"), "cancelled");

  auto failed = make("resp_3");
  begin_();
  std::string out;
  failed->fail({ErrorCode::model_failure, "no", ""}, out);
  EXPECT_EQ(status("resp_3"), "failed");
  EXPECT_NE(out.find("event: response.failed"), std::string::npos);
}

// 31 MB of a member that no code reads were kept three times for each of the requests that waited, and copied on the
// loop as it began and as it ended.
TEST_F(ResponseWriterTest, WhatTheClientSaidIsTheStoresAlone) {
  auto writer = make("resp_1");
  begin_();
  const ResponseInput* const said = find("resp_1")->input.get();
  EXPECT_EQ(input_.use_count(), 1);
  EXPECT_EQ(before_.use_count(), 1);
  whole(*writer, {"c:Hello"});
  EXPECT_EQ(find("resp_1")->input.get(), said) << "not copied";
  EXPECT_EQ(input_.use_count(), 1);
  EXPECT_EQ(find("resp_1")->conversation->size(), 1u);

  auto deleted = make("resp_2");
  begin_();
  EXPECT_TRUE(store_.erase({0, "resp_2"}, clock_.now()));
  EXPECT_TRUE(input_.expired() && before_.expired()) << "though it runs";
  auto unstored = make("resp_3", false);
  begin_();
  EXPECT_TRUE(input_.expired() && before_.expired());
}

TEST_F(ResponseWriterTest, WhatWasDeletedWhileItRanStaysDeleted) {
  auto writer = make("resp_1");
  begin_();
  EXPECT_TRUE(store_.erase({0, "resp_1"}, clock_.now()));
  whole(*writer, {"c:Hello"});
  EXPECT_EQ(find("resp_1"), nullptr);
}

}  // namespace
}  // namespace chasqui
