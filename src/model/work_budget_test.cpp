#include "model/work_budget.h"

#include <gtest/gtest.h>

#include "base/thread_time.h"
#include "model/llama_chat_template.h"
#include "model/llama_tokenizer.h"
#include "model/sampling_parts.h"
#include "model/schema_grammar.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

Chat chat_with(std::size_t messages) {
  Chat chat;
  chat.messages.resize(messages);
  for (std::size_t i = 0; i < messages; ++i) {
    chat.messages[i].role = i % 2 == 0 ? "user" : "assistant";
    chat.messages[i].content = "x";
  }
  return chat;
}

std::unique_ptr<LlamaChatTemplate> made(const std::string& source) {
  auto out = LlamaChatTemplate::make(test_weights(), source);
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(*out) : nullptr;
}

// Each of them computes for minutes with a few hundred messages, and for no time with three.
const char* const kSlow[] = {
    "{% for a in messages %}{% for b in messages %}{% for c in messages %}{{ a.content }}{% endfor %}{% endfor %}"
    "{% endfor %}",
    "{% for a in messages %}{% for b in messages %}{% for c in messages if c.role == 'unknown' %}x{% endfor %}"
    "{% endfor %}{{ a.content }}{% endfor %}",
    "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(messages | length) }}"
    "{{ messages[0].content }}",
};

TEST(WorkBudget, EndsWhatComputesForTooLong) {
  for (const char* source : kSlow) {
    SCOPED_TRACE(source);
    const auto slow = made(source);
    ASSERT_NE(slow, nullptr);
    ASSERT_TRUE(slow->render(chat_with(3)));
    const Duration begun = thread_time();
    {
      const WorkBudget budget(milliseconds(20));
      const auto text = slow->render(chat_with(200));
      ASSERT_FALSE(text);
      EXPECT_EQ(text.error().code, ErrorCode::invalid_request);
      EXPECT_EQ(text.error().field, "messages");
      EXPECT_NE(text.error().message.find("computes for too long"), std::string::npos) << text.error().message;
    }
    EXPECT_LT(thread_time() - begun, seconds(1));
    EXPECT_TRUE(slow->render(chat_with(3))) << "the next one has its own";
  }
}

TEST(WorkBudget, IsEachRequestsOwn) {
  const auto chatml = made("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  ASSERT_NE(chatml, nullptr);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(chatml->render(chat_with(50)));
}

TEST(WorkBudget, OfAnInnerOneIsNoLongerThanTheOuter) {
  const WorkBudget outer(milliseconds(0));
  WorkBudget inner(seconds(100));
  EXPECT_THROW(
      {
        for (int i = 0; i < 1'000'000; ++i) inner.count(WorkBudget::Work::text_template, 1);
      },
      std::runtime_error);
  EXPECT_FALSE(outer.is_used_up()) << "that was the inner one";
  EXPECT_TRUE(outer.is_over());
  EXPECT_THROW(inner.count(WorkBudget::Work::grammar, 1), std::runtime_error) << "and it stays so";
}

TEST(WorkBudget, EndsTheConverterOfSchemas) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"string","pattern":"^(a|b){1,9}$"}}})";
  ASSERT_TRUE(grammar_of_schema(schema));
  const WorkBudget none(milliseconds(0));
  const auto refused = grammar_of_schema(schema);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "json_schema");
  EXPECT_NE(refused.error().message.find("too complex"), std::string::npos) << refused.error().message;
}

// The converter follows each $ref within allOf, without end where it leads back.
TEST(WorkBudget, EndsTheConverterBeforeTheStackDoes) {
  for (const char* schema : {
           R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"}]}}}}})",
           R"({"allOf":[{"$ref":"#/$defs/b"}],"$defs":{"b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/b"}}})",
       }) {
    SCOPED_TRACE(schema);
    const WorkBudget budget(seconds(20));
    EXPECT_FALSE(check_tool_schema(schema));
    EXPECT_TRUE(budget.is_too_deep());
    EXPECT_EQ(budget.last_work(), WorkBudget::Work::schema);
  }
  const auto refused = grammar_of_schema(R"({"allOf":[{"$ref":"#/$defs/b"}],"$defs":{"b":{"$ref":"#/$defs/b"}}})");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("nested too deeply"), std::string::npos) << refused.error().message;
}

// llama-common's own way to it recursed for each of them.
TEST(WorkBudget, LetsTheConverterCleanNamesOfAnyLength) {
  EXPECT_TRUE(check_tool_schema(R"({"type":"object","properties":{")" + std::string(400'000, '_') + R"(":{}}})"));
  EXPECT_FALSE(check_tool_schema(R"({"type":"object","properties":{"a":{"type":"string","pattern":"^(a$"}}})"));
}

// Twice as many stacks after each character.
TEST(WorkBudget, EndsAGrammarWhoseWaysDouble) {
  const LlamaTokenizer tokenizer(test_weights());
  Grammar grammar;
  grammar.text = "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"z\"";
  auto sampler = compile_grammar(grammar, test_weights()->vocab());
  ASSERT_TRUE(sampler) << sampler.error().message;
  GrammarGate gate(std::move(*sampler));
  const std::vector<Token> tokens = tokenizer.tokenize(std::string(200, 'a'), AddSpecial::no, ParseSpecial::no);
  const WorkBudget budget(milliseconds(50));
  for (const Token token : tokens) {
    if (!gate.present() || !gate.allows(token)) break;
    gate.accept(token);
  }
  EXPECT_TRUE(budget.is_used_up());
  EXPECT_EQ(budget.last_work(), WorkBudget::Work::grammar);
}

TEST(WorkBudget, CopiesOfAGrammarGoOnFromWhereItIs) {
  const LlamaTokenizer tokenizer(test_weights());
  Grammar grammar;
  grammar.text = "root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"(\" root \")\"";
  grammar.begun = tokenizer.tokenize("ab,(c", AddSpecial::no, ParseSpecial::no);
  auto sampler = compile_grammar(grammar, test_weights()->vocab());
  ASSERT_TRUE(sampler) << sampler.error().message;
  GrammarGate copy(copy_sampler(**sampler));
  GrammarGate original(std::move(*sampler));
  const auto same = [&] {
    for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
      if (original.allows(token) != copy.allows(token)) return false;
    }
    return true;
  };
  EXPECT_TRUE(same());
  for (const Token token : tokenizer.tokenize("d,e)", AddSpecial::no, ParseSpecial::no)) {
    ASSERT_TRUE(copy.allows(token));
    original.accept(token);
    copy.accept(token);
    EXPECT_TRUE(same());
  }
}

TEST(WorkBudget, TextsAreSplitInATimeThatGrowsWithThem) {
  const auto splits = made(
      "{% set parts = messages[0].content.split('</think>') %}{{ parts | length }}{{ parts[-1] }}"
      "{{ messages[0].content.replace('</think>', 'xyz') | length }}");
  ASSERT_NE(splits, nullptr);
  Chat chat = chat_with(1);
  const auto fill = [&chat](std::size_t marks) {
    chat.messages[0].content = "a";
    while (marks-- > 0) chat.messages[0].content += "</think>";
    chat.messages[0].content += "b";
  };
  fill(100'000);
  const auto text = splits->render(chat);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "100001b300002");
  fill(1'000'000);
  EXPECT_FALSE(splits->render(chat)) << "each piece takes memory";
}

// Arguments of a call, as a model writes them, or a client that begins its answer.
TEST(WorkBudget, AnswersThatNestTooDeeplyOrSayTooMuchAreEnded) {
  const auto demo = made("");
  ASSERT_NE(demo, nullptr);
  Chat chat = chat_with(1);
  chat.tools = {{"note", "Writes something down.", R"({"type":"object"})"}};
  const std::string call = "<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": ";
  const std::string deep = call + std::string(1'000'000, '[');
  const auto prepared = demo->prepare(chat);
  ASSERT_TRUE(prepared && prepared->format);
  const auto parser = prepared->format->make_parser();
  std::vector<AnswerDelta> deltas;
  parser->push(deep, deltas);
  parser->push("]]", deltas);
  parser->finish(deltas);
  ASSERT_EQ(deltas.size(), 1U);
  EXPECT_EQ(deltas.front().text, deep + "]]") << "it is content";

  chat.continue_final_message = true;
  chat.messages.push_back(chat.messages.front());
  chat.messages.back().role = "assistant";
  std::string large = call + '[';
  while (large.size() < 4'000'000) large += "1,";
  for (const std::string& begun : {deep, large}) {
    chat.messages.back().content = begun;
    const auto refused = demo->prepare(chat);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "messages");
    EXPECT_NE(refused.error().message.find("nested too deeply"), std::string::npos) << refused.error().message;
  }
  chat.messages.back().content = call + "[[1, 2], [3";
  EXPECT_TRUE(demo->prepare(chat));
}

}  // namespace
}  // namespace chasqui
