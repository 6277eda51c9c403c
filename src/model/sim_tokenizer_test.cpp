#include "model/sim_tokenizer.h"

#include <random>

#include <gtest/gtest.h>

#include "model/fake_messages.h"

namespace chasqui {
namespace {

TEST(SimTokenizer, AnyBytesSurvive) {
  const SimTokenizer tokenizer;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (auto i = random() % 60; i > 0; --i) {
      text += random() % 3 == 0 ? std::string(" the") : std::string(1, static_cast<char>(random()));
    }
    for (ParseSpecial parse : {ParseSpecial::no, ParseSpecial::yes}) {
      EXPECT_EQ(detokenize(tokenizer, tokenizer.tokenize(text, AddSpecial::yes, parse)), text);
    }
  }
}

TEST(SimTokenizer, WordsAreOneTokenEach) {
  const SimTokenizer tokenizer;
  const std::vector<Token> tokens = tokenizer.tokenize(" the other house", AddSpecial::no, ParseSpecial::no);
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokenizer.piece(tokens[1]), " other");
}

TEST(SimTokenizer, ControlTokensAreParsedOnRequest) {
  const SimTokenizer tokenizer;
  const std::vector<Token> parsed = tokenizer.tokenize("<|im_end|>x", AddSpecial::no, ParseSpecial::yes);
  EXPECT_EQ(parsed, (std::vector<Token>{SimTokenizer::kImEnd, 'x'}));
  EXPECT_EQ(tokenizer.tokenize("<|im_end|>", AddSpecial::no, ParseSpecial::no).size(), 10u);
  EXPECT_EQ(tokenizer.piece(SimTokenizer::kImEnd), "");
  EXPECT_EQ(tokenizer.special_piece(SimTokenizer::kImEnd), "<|im_end|>");
  EXPECT_TRUE(tokenizer.is_end_of_generation(SimTokenizer::kImEnd));
  EXPECT_FALSE(tokenizer.is_end_of_generation(SimTokenizer::kImStart));
  EXPECT_EQ(tokenizer.end_of_generation_tokens().size(), 2u);
}

TEST(SimChatTemplate, IsChatMl) {
  const SimChatTemplate chat_template;
  Chat chat;
  chat.messages = {chat_message("system", "Be brief."), chat_message("user", "Hi")};
  EXPECT_EQ(*chat_template.render(chat),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  chat.messages.push_back(chat_message("assistant", "Hel"));
  chat.continue_final_message = true;
  EXPECT_TRUE(chat_template.render(chat)->ends_with("<|im_start|>assistant\nHel"));
  EXPECT_EQ(chat_template.render({}).error().field, "messages");
}

TEST(SimChatTemplate, WritesToolsAndCalls) {
  const SimChatTemplate chat_template;
  Chat chat;
  chat.tools = {{.name = "weather", .description = "Looks", .parameters = R"({"type":"object"})"}};
  chat.messages = {chat_message("user", "Lima?"), chat_message("assistant", ""), chat_message("tool", "sunny")};
  chat.messages[1].tool_calls = {{"1", "weather", R"({"city":"Lima"})"}};
  chat.messages[2].name = "weather";
  chat.messages[2].tool_call_id = "1";
  const std::string text = *chat_template.render(chat);
  EXPECT_NE(text.find(R"({"name":"weather","description":"Looks","parameters":{"type":"object"}})"), text.npos);
  EXPECT_NE(text.find("<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Lima\"}}\n</tool_call>"),
            text.npos);
  EXPECT_NE(text.find("<tool_response>\nsunny\n</tool_response>"), text.npos);
}

}  // namespace
}  // namespace chasqui
