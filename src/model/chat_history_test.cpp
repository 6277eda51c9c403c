#include "model/chat_history.h"

#include <gtest/gtest.h>

#include "model/fake_messages.h"
#include "model/llama_chat_template.h"
#include "model/sim_tokenizer.h"
#include "model/test_templates.h"

namespace chasqui {
namespace {

// A history and the text that stands for it, grown by deltas alone.
struct Told {
  const ChatTemplate& chat_template;
  ChatHistory history = {};
  std::string text = {};

  void say(std::vector<ChatMessage> added) {
    auto delta = text_of_messages(chat_template, history, added);
    ASSERT_TRUE(delta) << delta.error().message;
    text += *delta;
    history = with_messages(history, std::move(added));
  }
  void answer(const std::string& answer, const std::string& end_text) {
    auto delta = text_before_answer(chat_template, history);
    ASSERT_TRUE(delta) << delta.error().message;
    text += *delta + answer + end_text;
    history = with_answer(history, answer, end_text);
  }
  std::string whole(bool generation) const {
    Chat chat;
    for (const auto& each : history.messages) chat.messages.push_back(*each);
    if (history.tools) chat.tools = *history.tools;
    chat.add_generation_prompt = generation;
    return *chat_template.render(chat);
  }
};

// Ends a turn with an end token and a line break, and trims what is said.
constexpr const char* kTrims =
    "{%- for m in messages -%}{{- '[' + m.role + ']' + (m.content | trim) + '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '[assistant]' -}}{%- endif -%}";
// Writes the number of all messages at the beginning: nothing that was said stays where it was.
constexpr const char* kCounts =
    "{{- messages | length -}}{%- for m in messages -%}{{- m.content + '\n' -}}{%- endfor -%}";

TEST(ChatHistory, DeltasAddUpToTheWholeConversation) {
  const SimChatTemplate sim;
  const auto demo = make_template();
  for (const ChatTemplate* chat_template : std::initializer_list<const ChatTemplate*>{&sim, demo.get()}) {
    Told told{*chat_template};
    told.say({chat_message("system", "Be brief."), chat_message("user", "Hello")});
    told.answer("Hi there", "<|im_end|>");
    told.say({chat_message("user", "And you?")});
    told.answer("Fine", "<|im_end|>");
    told.say({chat_message("user", "Good"), chat_message("user", "Bye")});
    EXPECT_EQ(told.text, told.whole(false));
    const auto opening = text_before_answer(*chat_template, told.history);
    ASSERT_TRUE(opening);
    EXPECT_EQ(told.text + *opening, told.whole(true));
  }
}

TEST(ChatHistory, AnInterruptedAnswerIsClosedByWhatComesNextOrGoesOn) {
  const SimChatTemplate sim;
  Told told{sim};
  told.say({chat_message("user", "Count")});
  told.answer("One, t", "");
  EXPECT_EQ(*text_before_answer(sim, told.history), "");
  told.answer("wo", "");
  ASSERT_EQ(told.history.messages.size(), 2u) << "one answer in two parts";
  EXPECT_EQ(told.history.messages.back()->content, "One, two");
  told.say({chat_message("user", "Stop")});
  EXPECT_EQ(told.text, told.whole(false));
}

TEST(ChatHistory, WhatTheModelSaidStaysAlsoWhereTheTemplateWouldTrimIt) {
  const auto trims = make_template(kTrims);
  Told told{*trims};
  told.say({chat_message("user", " Hello ")});
  told.answer("  Hi  ", "<|im_end|>");
  told.say({chat_message("user", "Bye")});
  EXPECT_EQ(told.text, "[user]Hello<|im_end|>\n[assistant]  Hi  <|im_end|>\n[user]Bye<|im_end|>\n");
}

TEST(ChatHistory, AnEndTokenThatIsNotTheTemplatesOwnStays) {
  const SimChatTemplate sim;
  Told told{sim};
  told.say({chat_message("user", "Hello")});
  told.answer("Hi", "<|endoftext|>");
  told.say({chat_message("user", "Bye")});
  EXPECT_EQ(told.text,
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi<|endoftext|><|im_end|>\n"
            "<|im_start|>user\nBye<|im_end|>\n");
}

TEST(ChatHistory, ATemplateThatChangesWhatIsThereIsAnErrorThatSaysSo) {
  const auto counts = make_template(kCounts);
  const ChatHistory history = with_messages({}, {chat_message("user", "Hello")});
  const std::vector<ChatMessage> next = {chat_message("user", "Bye")};
  const auto delta = text_of_messages(*counts, history, next);
  ASSERT_FALSE(delta);
  EXPECT_EQ(delta.error().code, ErrorCode::invalid_request);
  EXPECT_NE(delta.error().message.find("chat template"), std::string::npos);
  // Behind an answer only what follows it matters.
  EXPECT_EQ(*text_of_messages(*counts, with_answer(history, "Hi", ""), next), "\nBye\n");
}

TEST(ChatHistory, TheMarkInAMessageDoesNotMislead) {
  const SimChatTemplate sim;
  Told told{sim};
  told.say({chat_message("user", "Chasqui9answer0x")});
  told.answer("Chasqui9answer1x", "<|im_end|>");
  told.say({chat_message("user", "Chasqui9answer1x Chasqui9answer2x")});
  EXPECT_EQ(told.text, told.whole(false));
  told.answer("!", "<|im_end|>");
  std::string all;
  for (int i = 0; i < 4; ++i) all += "Chasqui9answer" + std::to_string(i) + "x";
  const std::vector<ChatMessage> hostile = {chat_message("user", all)};
  EXPECT_FALSE(text_of_messages(sim, told.history, hostile)) << "an error, not a wrong text";
}

TEST(ChatHistory, ToolsAreShownOnceAndCallsKept) {
  const SimChatTemplate sim;
  Told told{sim};
  told.history.tools = std::make_shared<const std::vector<Tool>>(1, Tool{"weather", "", "{}"});
  told.say({chat_message("user", "Weather?")});
  told.answer("<tool_call>\n{\"name\":\"weather\"}\n</tool_call>", "<|im_end|>");
  told.say({chat_message("tool", "Rain")});
  EXPECT_EQ(told.text, told.whole(false));
}

TEST(ChatHistory, CountsItsBytes) {
  const ChatHistory one = with_messages({}, {chat_message("user", std::string(1000, 'x'))});
  EXPECT_GE(one.bytes, 1000u);
  const ChatHistory begun = with_answer(one, "abc", "");
  const ChatHistory more = with_answer(begun, "def", "");
  EXPECT_EQ(more.bytes, begun.bytes + 3) << "one answer in two parts";
  EXPECT_EQ(one.messages.size(), 1u) << "what was shared is as it was";
}

}  // namespace
}  // namespace chasqui
