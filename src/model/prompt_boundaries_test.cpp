#include "model/prompt_boundaries.h"

#include <string>

#include <gtest/gtest.h>

#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

// ChatML in which earlier answers lose their reasoning and the new one begins with some.
class ThinkingTemplate final : public ChatTemplate {
 public:
  Result<std::string> render(const Chat& chat) const override {
    if (refuses_short && chat.messages.size() < 3) return invalid_field("messages", "too short");
    std::string text;
    for (const ChatMessage& message : chat.messages) {
      text += "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n";
    }
    return chat.add_generation_prompt ? text + "<|im_start|>assistant\n<think>\n" : text;
  }
  std::string_view source() const override { return "test"; }
  bool refuses_short = false;
};

class PromptBoundaries : public testing::Test {
 protected:
  // The texts of the prompt before each boundary.
  std::vector<std::string> before(const Chat& chat, const ChatTemplate& chat_template) {
    const std::string prompt = *chat_template.render(chat);
    const std::vector<Token> tokens = tokenizer_.tokenize(prompt, AddSpecial::yes, ParseSpecial::yes);
    std::vector<std::string> out;
    for (const TokenCount at : prompt_boundaries(chat_template, tokenizer_, chat, prompt, tokens)) {
      out.push_back(detokenize(tokenizer_, std::span(tokens).first(static_cast<std::size_t>(at))));
    }
    return out;
  }

  SimTokenizer tokenizer_;
  ThinkingTemplate thinking_;
};

ChatMessage said(std::string role, std::string content) {
  ChatMessage message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

Chat chat_of(std::vector<ChatMessage> messages) {
  Chat chat;
  chat.messages = std::move(messages);
  return chat;
}

TEST_F(PromptBoundaries, AreTheSystemPromptTheLastUserMessageAndWhatTheNextTurnHasToo) {
  const Chat chat = chat_of(
      {said("system", "Be brief."), said("user", "Hello there"), said("assistant", "Hi"), said("user", "And now?")});
  const std::string system = "<|im_start|>system\nBe brief.<|im_end|>\n";
  const std::string answered =
      system + "<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n";
  EXPECT_EQ(before(chat, thinking_),
            (std::vector<std::string>{system + "<|im_start|>user\n", answered + "<|im_start|>user\n",
                                      answered + "<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"}));
}

TEST_F(PromptBoundaries, CountToolsAsInstructions) {
  Chat chat = chat_of({said("user", "Weather?")});
  chat.tools.push_back({"weather", "tells it", R"({"type":"object"})"});
  const SimChatTemplate sim;
  const std::vector<std::string> found = before(chat, sim);
  ASSERT_EQ(found.size(), 1u) << "the next turn has all of the prompt";
  EXPECT_TRUE(found[0].ends_with("</tools><|im_end|>\n<|im_start|>user\n")) << found[0];
}

TEST_F(PromptBoundaries, OfAnAnswerThatGoesOnHaveNoGenerationPrompt) {
  Chat chat = chat_of({said("user", "Count"), said("assistant", "1, 2,")});
  chat.add_generation_prompt = false;
  chat.continue_final_message = true;
  EXPECT_TRUE(before(chat, SimChatTemplate()).empty());
}

TEST_F(PromptBoundaries, ThatATemplateRefusesToShowAreLeftOut) {
  thinking_.refuses_short = true;
  const Chat chat = chat_of({said("system", "Be brief."), said("user", "Hello"), said("user", "Again")});
  const std::vector<std::string> found = before(chat, thinking_);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found.back().ends_with("Again<|im_end|>\n<|im_start|>assistant\n"));
}

TEST_F(PromptBoundaries, OfTokensThatAreNotThePromptsAreNone) {
  const Chat chat = chat_of({said("system", "A"), said("user", "B")});
  const std::vector<Token> others = tokenizer_.tokenize("something else", AddSpecial::yes, ParseSpecial::yes);
  const std::string prompt = *thinking_.render(chat);
  EXPECT_TRUE(prompt_boundaries(thinking_, tokenizer_, chat, prompt, others).empty());
}

}  // namespace
}  // namespace chasqui
