// How events become frames, whatever the protocol.
#include "api/core/answer.h"

#include <gtest/gtest.h>

#include "api/core/answer_sinks.h"
#include "api/openai/openai_json.h"

namespace chasqui {
namespace {

Event queued(std::int32_t position, Duration wait) {
  Event event;
  event.kind = Event::Kind::queued;
  event.position = position;
  event.wait = wait;
  return event;
}

TEST(WriteEvents, SaysWhereARequestStandsInAComment) {
  const auto chat = make_chat_writer({});
  std::string out;
  EXPECT_FALSE(write_events(*chat, std::vector<Event>{queued(3, milliseconds(1234)), queued(0, {})}, out));
  EXPECT_EQ(out, ": queued position=3 wait=1.2s\n\n: queued position=0\n\n");
}

TEST(WriteEvents, GoesOnAfterTheWait) {
  for (const auto& writer : {make_chat_writer({}), make_completion_writer({})}) {
    Event text;
    text.text = "Hello";
    Event finished;
    finished.kind = Event::Kind::finished;
    std::string out;
    EXPECT_TRUE(write_events(*writer, std::vector<Event>{queued(1, seconds(2)), text, finished}, out));
    EXPECT_TRUE(out.starts_with(": queued position=1 wait=2.0s\n\ndata: ")) << out;
    EXPECT_NE(out.find("Hello"), std::string::npos);
    EXPECT_TRUE(out.ends_with("data: [DONE]\n\n"));
  }
}

TEST(WriteEvents, SaysHowFarThePromptHasBeenRead) {
  Event reading;
  reading.kind = Event::Kind::progress;
  reading.usage.prompt = 900;
  reading.usage.cached = 100;
  reading.usage.prefill = microseconds(12'900);
  reading.prefilled = 300;
  for (const auto& writer : {make_chat_writer({}), make_completion_writer({})}) {
    std::string out;
    EXPECT_FALSE(write_events(*writer, std::vector<Event>{reading}, out));
    const std::string_view said = R"("finish_reason":null}],"prompt_progress":{"total":900,"cache":100,)"
                                  R"("processed":300,"time_ms":12}})";
    EXPECT_TRUE(out.ends_with(std::string(said) + "\n\n")) << out;
  }
}

TEST(WriteEvents, EndsWithAnErrorWhenTheRequestFails) {
  const auto chat = make_chat_writer({});
  Event failed;
  failed.kind = Event::Kind::finished;
  failed.reason = FinishReason::error;
  failed.error = {ErrorCode::model_failure, "no", "", {}};
  std::string out;
  EXPECT_TRUE(write_events(*chat, std::vector<Event>{failed}, out));
  EXPECT_TRUE(out.starts_with("data: {\"error\":{\"code\":500")) << out;
}

TEST(WholeSink, KnowsWhenAnAnswerIsTooLarge) {
  const auto chat = make_chat_writer({});
  std::vector<Collected> answers(1);
  WholeSink sink(*chat, answers);
  std::string out;
  const auto likely = [](std::size_t tokens) {
    Event text;
    text.text = "x";
    text.chances.resize(tokens);
    return text;
  };
  Event few = likely(100);
  EXPECT_TRUE(sink.text(few, out));
  EXPECT_FALSE(sink.too_large());
  Event many = likely(kSizeLimit<"whole_answer_bytes"> / 60);
  EXPECT_FALSE(sink.text(many, out));  // the handler is woken
  EXPECT_TRUE(sink.too_large());
  EXPECT_EQ(answers[0].text, "xx");
}

}  // namespace
}  // namespace chasqui
