// Ollama's bodies, from JSON to a valid request; its lines, from events. The simulated model stands behind them.
#include "api/ollama/ollama.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/body/prompt.h"
#include "api/core/fake_node.h"
#include "model/sim_tokenizer.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

namespace json = boost::json;

class OllamaTest : public ::testing::Test {
 protected:
  FakeNode fake_;
  const ServedModel& served_ = fake_.served;
  Caller caller_;
};

class CountingTemplate final : public ChatTemplate {
 public:
  Result<std::string> render(const Chat& chat) const override {
    ++rendered;
    return sim_.render(chat);
  }
  std::string_view source() const override { return sim_.source(); }

  mutable std::size_t rendered = 0;

 private:
  const SimChatTemplate sim_;
};

// A chat whose messages have lengths of all kinds.
json::array messages_of_any_length(std::size_t count) {
  json::array out;
  std::uint32_t seed = static_cast<std::uint32_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1'664'525 + 1'013'904'223;
    out.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(seed >> 26, 'x')}});
  }
  return out;
}

Event ollama_piece(std::string text) {
  Event event;
  event.text = std::move(text);
  event.tokens = 1;
  return event;
}

Event ollama_finished(FinishReason reason) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.prompt = 9;
  event.usage.completion = 3;
  event.usage.prefill = milliseconds(2);
  event.usage.decode = milliseconds(5);
  event.usage.cpu = milliseconds(11);
  return event;
}

TEST_F(OllamaTest, OptionsAreOurFieldsAndNumPredictIsMaxTokens) {
  const auto answer = prepare_ollama_chat(served_, caller_, R"({"messages":[{"role":"user","content":"Hi"}],
      "options":{"num_predict":7,"temperature":0.5,"top_k":3,"seed":11,"stop":["a"],"num_ctx":4096,"num_gpu":1}})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->stream);
  EXPECT_EQ(answer->request->max_tokens, 7);
  EXPECT_FLOAT_EQ(answer->request->sampling.temperature, 0.5f);
  EXPECT_EQ(answer->request->sampling.top_k, 3);
  EXPECT_EQ(answer->request->sampling.seed, 11u);
  EXPECT_EQ(answer->request->stop, (std::vector<std::string>{"a"}));
}

TEST_F(OllamaTest, AsManyMessagesStayAsFitAndFewLooksFindThem) {
  const auto counting = std::make_shared<CountingTemplate>();
  fake_.model.chat_template = counting;
  const std::size_t room = static_cast<std::size_t>(served_.limits.context - served_.limits.context / 4);
  for (std::size_t count = 101; count < 140; count += 2) {
    const json::array messages = messages_of_any_length(count);
    counting->rendered = 0;
    const auto answer = prepare_ollama_chat(served_, caller_, json::serialize(json::object{{"messages", messages}}));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_LE(counting->rendered, 8u) << "the first, the last, those between, which halves take seven for";
    Chat chat;
    std::size_t most = 0;
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      ChatMessage& one = *chat.messages.emplace(chat.messages.begin());
      one.role = message->at("role").as_string();
      one.content = message->at("content").as_string();
      const auto prompt = prompt_of_chat(served_, chat);
      if (!prompt || prompt->tokens.size() >= room) break;
      most = prompt->tokens.size();
    }
    EXPECT_EQ(answer->request->prompt.size(), most);
  }
}

// 4,094 empty messages and one of 4 MB were rendered and tokenized fourteen times, with two seconds for each template.
TEST_F(OllamaTest, AllLooksForWhatFitsHaveOneBudget) {
  const std::string body = json::serialize(json::object{{"messages", messages_of_any_length(101)}});
  EXPECT_TRUE(prepare_ollama_chat(served_, caller_, body));
  const WorkBudget none(milliseconds(0));
  const auto refused = prepare_ollama_chat(served_, caller_, body);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "messages");
  EXPECT_NE(refused.error().message.find("computes for too long"), std::string::npos) << refused.error().message;
}

TEST_F(OllamaTest, NumKeepIsWhatStaysWhereTheContextIsShifted) {
  fake_.limits.shifts = true;
  const auto keep_of = [&](const std::string& options) {
    const auto answer =
        prepare_ollama_generate(served_, caller_, R"({"prompt":"Hi","raw":true,"options":{)" + options + "}}");
    return answer ? answer->request->keep : -100;
  };
  EXPECT_EQ(keep_of(R"("num_keep":1)"), keep_of(R"("n_keep":1)"));
  EXPECT_EQ(keep_of(R"("num_keep":-5)"), keep_of(R"("n_keep":-1)")) << "all of the prompt";
  EXPECT_LT(keep_of(R"("num_keep":1)"), keep_of(R"("num_keep":-1)"));
  EXPECT_EQ(keep_of(R"("num_keep":-1,"n_keep":1)"), keep_of(R"("n_keep":1)")) << "ours wins";
}

TEST_F(OllamaTest, APromptIsOneTurnOfAChatUnlessItIsRaw) {
  const Tokenizer& tokenizer = *served_.model.tokenizer;
  const auto turn = prepare_ollama_generate(served_, caller_, R"({"prompt":"Hi","system":"Be brief."})");
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_EQ(detokenize(tokenizer, turn->request->prompt),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const auto raw = prepare_ollama_generate(served_, caller_, R"({"prompt":"Hi","raw":true,"stream":false})");
  ASSERT_TRUE(raw) << raw.error().message;
  EXPECT_FALSE(raw->stream);
  EXPECT_EQ(detokenize(tokenizer, raw->request->prompt), "Hi");
}

TEST_F(OllamaTest, WhoOnlyWantsTheModelLoadedIsToldThatItIs) {
  const auto load = prepare_ollama_generate(served_, caller_, R"({"model":"x"})");
  ASSERT_TRUE(load);
  EXPECT_EQ(load->request, nullptr);
  EXPECT_EQ(json::parse(load->ready).at("done_reason").as_string(), "load");
  const auto unload = prepare_ollama_chat(served_, caller_, R"({"messages":[],"keep_alive":0})");
  ASSERT_TRUE(unload);
  EXPECT_EQ(json::parse(unload->ready).at("done_reason").as_string(), "unload");
}

TEST_F(OllamaTest, AStreamIsLinesOfWhichTheLastHasTheFiguresInNanoseconds) {
  OllamaHead head;
  head.model = "m";
  head.created_at = "2026-11-21T19:30:00Z";
  const auto writer = make_ollama_writer(std::move(head), nullptr);
  EXPECT_FALSE(writer->has_comments());
  std::string out;
  writer->text(ollama_piece("Hel"), out);
  writer->text(ollama_piece(""), out);  // held back: no line
  writer->text(ollama_piece("lo\n"), out);
  writer->end(ollama_finished(FinishReason::length), out);
  std::vector<json::object> lines;
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t end = out.find('\n', begin);
    lines.push_back(json::parse(std::string_view(out).substr(begin, end - begin)).as_object());
    begin = end + 1;
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("message").at("content").as_string(), "Hel");
  EXPECT_EQ(lines[1].at("message").at("content").as_string(), "lo\n");
  EXPECT_EQ(lines[0].at("created_at").as_string(), "2026-11-21T19:30:00Z");
  EXPECT_FALSE(lines[1].at("done").as_bool());
  EXPECT_TRUE(lines[2].at("done").as_bool());
  EXPECT_EQ(lines[2].at("done_reason").as_string(), "length");
  EXPECT_EQ(lines[2].at("prompt_eval_count").as_int64(), 9);
  EXPECT_EQ(lines[2].at("prompt_eval_duration").as_int64(), 2'000'000);
  EXPECT_EQ(lines[2].at("eval_duration").as_int64(), 5'000'000);
  EXPECT_EQ(lines[2].at("timings").at("cpu_ms"), 11);
  EXPECT_FALSE(lines[1].contains("timings"));
}

}  // namespace
}  // namespace chasqui
