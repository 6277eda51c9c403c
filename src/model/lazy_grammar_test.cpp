// Lazy grammars of all formats of llama-common behave as libllama's own, which search the whole answer at each token.
#include "model/lazy_grammar.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <llama.h>

#include "model/llama_chat_template.h"
#include "model/llama_tokenizer.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

std::vector<std::filesystem::path> lazy_template_files() {
  std::vector<std::filesystem::path> out;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(CHASQUI_TEMPLATES, absent)) {
    if (entry.path().extension() == ".jinja") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

std::string escaped_trigger(const GrammarTrigger& trigger) {
  std::string out;
  for (const char c : trigger.text) {
    if (!trigger.pattern && std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Grammar lazy_grammar_of_format(const PreparedChat& prepared) {
  Grammar grammar;
  grammar.text = prepared.grammar;
  grammar.lazy = true;
  for (const GrammarTrigger& trigger : prepared.triggers) grammar.trigger_patterns.push_back(escaped_trigger(trigger));
  return grammar;
}

LlamaSamplerPtr reference_of(const Grammar& grammar, const llama_vocab* vocab) {
  std::vector<const char*> patterns;
  for (const std::string& pattern : grammar.trigger_patterns) patterns.push_back(pattern.c_str());
  return LlamaSamplerPtr(llama_sampler_init_grammar_lazy_patterns(vocab, grammar.text.c_str(), "root", patterns.data(),
                                                                  patterns.size(), nullptr, 0));
}

// How many tokens of `text` the grammar restricted; both samplers are asked the same at each.
int follow(GrammarGate ours, GrammarGate theirs, const LlamaTokenizer& tokenizer, const std::string& text) {
  const auto tokens = tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::yes);
  int restricted = 0;
  for (const Token token : tokens) {
    int refused = 0;
    for (Token asked = 0; asked < tokenizer.vocabulary(); asked += 37) {
      EXPECT_EQ(ours.allows(asked), theirs.allows(asked)) << asked;
      refused += static_cast<int>(!ours.allows(asked));
    }
    restricted += static_cast<int>(refused > 0);
    EXPECT_EQ(ours.allows(token), theirs.allows(token));
    if (!ours.allows(token)) break;
    ours.accept(token);
    theirs.accept(token);
    EXPECT_EQ(ours.present(), theirs.present());
    if (!ours.present()) break;
  }
  return restricted;
}

Chat chat_with_tools() {
  Chat chat;
  ChatMessage& message = chat.messages.emplace_back();
  message.role = "user";
  message.content = "Quipu?";
  chat.tools = {{"weather", "Looks out.", R"({"type":"object","properties":{"city":{"type":"string"}}})"},
                {"note", "Writes.", R"({"type":"object","properties":{"text":{"type":"string"}}})"}};
  return chat;
}

TEST(LazyGrammar, BehavesAsLibllamasInAllFormats) {
  const auto files = lazy_template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  const LlamaTokenizer tokenizer(test_weights());
  int formats = 0;
  int in_force = 0;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    std::ifstream file(path);
    auto made = LlamaChatTemplate::make(test_weights(), {std::istreambuf_iterator<char>(file), {}});
    ASSERT_TRUE(made) << made.error().message;
    const Chat chat = chat_with_tools();
    const auto prepared = (*made)->prepare(chat);
    if (!prepared || !prepared->grammar_lazy || prepared->grammar.empty()) continue;
    const Grammar grammar = lazy_grammar_of_format(*prepared);
    for (const std::string& pattern : grammar.trigger_patterns) {
      EXPECT_TRUE(TriggerPattern(pattern).scannable()) << pattern;
    }
    auto compiled = compile_grammar(grammar, test_weights()->vocab());
    ASSERT_TRUE(compiled) << compiled.error().message;
    ++formats;
    Chat answered = chat;
    answered.add_generation_prompt = false;
    ChatMessage& answer = answered.messages.emplace_back();
    answer.role = "assistant";
    answer.content = "I look: 1 < 2.";
    answer.tool_calls = {{"abcdefgh1", "weather", R"({"city":"Lima"})"}};
    const auto written = (*made)->render(answered);
    std::string text = "Well. ";
    if (written && written->starts_with(prepared->prompt)) text = written->substr(prepared->prompt.size());
    for (const std::string& said :
         std::vector<std::string>{text, "Let me see >>>all\n>>>weather {", " to=weather<|message|>", text + text}) {
      in_force += follow(GrammarGate(copy_sampler(**compiled)),
                         GrammarGate(reference_of(grammar, test_weights()->vocab())), tokenizer, said);
    }
  }
  EXPECT_GE(formats, 40);
  EXPECT_GE(in_force, 500);
}

TEST(LazyGrammar, BeginsAtATokenAsWell) {
  const LlamaTokenizer tokenizer(test_weights());
  const Token token = tokenizer.tokenize("(", AddSpecial::no, ParseSpecial::no).back();
  Grammar grammar;
  grammar.text = "root ::= [^a]+ \"a\"";
  grammar.lazy = true;
  grammar.trigger_tokens = {token};
  auto compiled = compile_grammar(grammar, test_weights()->vocab());
  ASSERT_TRUE(compiled);
  GrammarGate gate(copy_sampler(**compiled));
  const Token a = tokenizer.tokenize("aa", AddSpecial::no, ParseSpecial::no).back();
  EXPECT_TRUE(gate.allows(a));
  gate.accept(a);
  gate.accept(token);
  GrammarGate strict(std::move(*compiled));
  EXPECT_TRUE(strict.allows(a));  // it has not seen the token
  EXPECT_FALSE(gate.allows(tokenizer.end_of_generation_tokens().front()));
}

}  // namespace
}  // namespace chasqui
