// The chat templates of the pinned llama.cpp source, which are there where that was fetched: all of them render, and
// the reasoning that they know is told apart from the answer, however the text is cut into pieces.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <gtest/gtest.h>

#include "base/thread_time.h"
#include "model/fake_messages.h"
#include "model/llama_chat_template.h"
#include "model/test_templates.h"
#include "model/test_weights.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

std::unique_ptr<LlamaChatTemplate> load_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  auto made = LlamaChatTemplate::make(test_weights(), {std::istreambuf_iterator<char>(file), {}});
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

TEST(LlamaTemplates, AllRender) {
  const auto files = template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  EXPECT_GE(files.size(), 70u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const auto chat_template = load_file(path);
    ASSERT_NE(chat_template, nullptr);
    Chat chat;
    chat.messages = {chat_message("user", "Quipu?")};
    const auto one = chat_template->render(chat);
    ASSERT_TRUE(one) << one.error().message;
    EXPECT_NE(one->find("Quipu?"), std::string::npos) << *one;
    chat.messages.push_back(chat_message("assistant", "A knotted string."));
    chat.messages.push_back(chat_message("user", "Of what?"));
    const auto turns = chat_template->render(chat);
    ASSERT_TRUE(turns) << turns.error().message;
    const std::size_t answer = turns->find("A knotted string.");
    ASSERT_NE(answer, std::string::npos) << *turns;
    EXPECT_NE(turns->find("Of what?", answer), std::string::npos) << *turns;
    chat.messages.insert(chat.messages.begin(), chat_message("system", "Be brief."));
    const auto led = chat_template->render(chat);
    ASSERT_TRUE(led) << led.error().message;
    EXPECT_NE(led->find("Be brief."), std::string::npos) << *led;
    chat.tools = {{"weather", "Looks out.", R"({"type":"object","properties":{"city":{"type":"string"}}})"}};
    EXPECT_TRUE(chat_template->render(chat)) << chat_template->render(chat).error().message;
  }
}

struct Parts {
  std::string reasoning;
  std::string content;
};

Parts read_parts(const AnswerFormat& format, const std::string& text, std::size_t piece) {
  const auto parser = format.make_parser();
  std::vector<AnswerDelta> deltas;
  for (std::size_t at = 0; at < text.size(); at += piece) parser->push(text.substr(at, piece), deltas);
  parser->finish(deltas);
  Parts parts;
  for (const AnswerDelta& delta : deltas) {
    if (delta.kind == AnswerDelta::Kind::reasoning) parts.reasoning += delta.text;
    if (delta.kind == AnswerDelta::Kind::content) parts.content += delta.text;
  }
  return parts;
}

TEST(LlamaTemplates, ReasoningIsToldApartHoweverTheTextIsCut) {
  const auto files = template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  int apart = 0;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const auto chat_template = load_file(path);
    ASSERT_NE(chat_template, nullptr);
    Chat chat;
    chat.split_reasoning = true;
    chat.enable_thinking = true;
    chat.messages = {chat_message("user", "Quipu?")};
    const auto prepared = chat_template->prepare(chat);
    ASSERT_TRUE(prepared) << prepared.error().message;
    if (prepared->thinking_begin.empty() || prepared->thinking_ends.empty() || prepared->format == nullptr) continue;
    const bool begun = prepared->answer_begin.find(prepared->thinking_begin) != std::string::npos;
    const std::string text = (begun ? std::string() : prepared->thinking_begin + "\n") + "I wonder: 1 < 2, [x]." +
                             "\n" + prepared->thinking_ends.front() + "\n\nIt is a string.";
    const Parts whole = read_parts(*prepared->format, text, text.size());
    if (whole.reasoning.find("I wonder: 1 < 2, [x].") == std::string::npos) continue;  // it has more markers than these
    EXPECT_NE(whole.content.find("It is a string."), std::string::npos) << whole.content;
    EXPECT_EQ(whole.content.find("I wonder"), std::string::npos) << whole.content;
    for (const std::size_t piece : {1, 2, 3, 5, 8, 13}) {
      const Parts parts = read_parts(*prepared->format, text, piece);
      EXPECT_EQ(parts.reasoning, whole.reasoning) << "pieces of " << piece;
      EXPECT_EQ(parts.content, whole.content) << "pieces of " << piece;
    }
    ++apart;
  }
  EXPECT_GE(apart, 25);
}

// References that fan out, forty times in two, to what is no text; and others that lead back to themselves. Each
// template writes calls in its own way, and some ask of each parameter whether it may be text.
std::vector<std::string> endless_schemas() {
  std::string fan = R"({"type":"object","properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = R"({"$ref":"#/$defs/d)" + std::to_string(i + 1) + R"("})";
    fan += "\"d" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  const auto refers_to = [](const std::string& name) {
    return R"({"properties":{"p":{"allOf":[{"$ref":"#/$defs/)" + name + R"("}]}},"$defs":{)";
  };
  return {fan + R"("d40":{"type":"integer"}}})",
          refers_to("a") + R"("a":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"}]}}}}})",
          refers_to("b") + R"("b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/b"}}})"};
}

TEST(LlamaTemplates, AllEndAtSchemasWithoutAnEnd) {
  const auto files = template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  for (const auto& path : files) {
    const auto chat_template = load_file(path);
    ASSERT_NE(chat_template, nullptr);
    for (const std::string& schema : endless_schemas()) {
      SCOPED_TRACE(path.filename().string() + ": " + schema.substr(0, 60));
      Chat chat;
      chat.messages = {chat_message("user", "Quipu?")};
      chat.tools.push_back({"f", "d", schema});
      const Duration begun = thread_time();
      const WorkBudget budget(milliseconds(20));
      static_cast<void>(chat_template->prepare(chat));
      EXPECT_LT(thread_time() - begun, seconds(1));
    }
  }
}

}  // namespace
}  // namespace chasqui
