// Answers forced through the parsers that llama-common makes from real templates: however the text is cut into pieces,
// the deltas add up to what one parse of the whole finds, and what a token costs does not grow with the answer.
#include "model/peg_answer_parser.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "model/fake_messages.h"
#include "model/llama_chat_template.h"
#include "model/llama_tokenizer.h"
#include "model/sampling_parts.h"
#include "model/test_templates.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

using Kind = AnswerDelta::Kind;

struct Answer {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> calls;
  bool operator==(const Answer& other) const {
    const auto same = [](const ToolCall& a, const ToolCall& b) {
      return a.name == b.name && a.arguments == b.arguments;
    };
    return content == other.content && reasoning == other.reasoning &&
           std::equal(calls.begin(), calls.end(), other.calls.begin(), other.calls.end(), same);
  }
};

void PrintTo(const Answer& answer, std::ostream* out) {
  *out << "content «" << answer.content << "» reasoning «" << answer.reasoning << "»";
  for (const ToolCall& call : answer.calls) *out << " call " << call.name << " «" << call.arguments << "»";
}

void add(const std::vector<AnswerDelta>& deltas, Answer& answer) {
  for (const AnswerDelta& delta : deltas) {
    switch (delta.kind) {
      case Kind::content: answer.content += delta.text; break;
      case Kind::reasoning: answer.reasoning += delta.text; break;
      case Kind::call_begin:
        ASSERT_EQ(delta.call, answer.calls.size());
        answer.calls.push_back({delta.id, delta.name, ""});
        break;
      case Kind::call_arguments:
        ASSERT_EQ(delta.call + 1, answer.calls.size());
        answer.calls.back().arguments += delta.text;
        break;
    }
  }
}

Answer read(const AnswerFormat& format, const std::vector<std::string>& pieces, std::uint64_t* cost = nullptr) {
  Answer answer;
  const auto parser = format.make_parser();
  std::vector<AnswerDelta> deltas;
  for (const std::string& piece : pieces) {
    deltas.clear();
    parser->push(piece, deltas);
    add(deltas, answer);
  }
  deltas.clear();
  parser->finish(deltas);
  add(deltas, answer);
  if (cost != nullptr) *cost = parser->bytes_parsed();
  return answer;
}

Chat with_tools() {
  Chat chat;
  chat.split_reasoning = true;
  chat.messages = {chat_message("user", "How is the weather in Lima and in Cusco?")};
  chat.tools = {{"weather", "Looks out of the window.",
                 R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},
                     "required":["city"]})"},
                {"note", "Writes something down.",
                 R"({"type":"object","properties":{"text":{"type":"string"}},"required":["text"]})"}};
  return chat;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_character(text), 1);
    out.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

// Every cut into two (or every `step`-th, to save time), each character by itself, and pieces of three.
void expect_same_however_cut(const AnswerFormat& format, const std::string& text, std::size_t step = 1) {
  const Answer whole = read(format, {text});
  const std::vector<std::string> single = characters(text);
  EXPECT_EQ(read(format, single), whole) << text;
  std::string head;
  for (std::size_t i = 0; i < single.size(); ++i) {
    head += single[i];
    if (i % step != 0) continue;
    ASSERT_EQ(read(format, {head, text.substr(head.size())}), whole) << "cut behind «" << head << "»";
  }
  std::vector<std::string> triples;
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (i % 3 == 0) triples.emplace_back();
    triples.back() += single[i];
  }
  EXPECT_EQ(read(format, triples), whole) << text;
}

constexpr const char* kThinking =
    "{%- if tools -%}<|im_start|>system\n<tools>{%- for t in tools -%}{{ t | tojson }}{%- endfor -%}</tools>"
    "<|im_end|>\n{%- endif -%}"
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\n' -}}"
    "{%- if m.role == 'assistant' and m.reasoning_content -%}"
    "{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' -}}{%- endif -%}"
    "{{- m.content -}}"
    "{%- for c in m.tool_calls -%}{{- '\n<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' -}}"
    "{{- c.function.arguments | tojson -}}{{- '}\n</tool_call>' -}}{%- endfor -%}"
    "{{- '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}"
    "{%- endif -%}";

AnswerFormatPtr format_of(const Chat& chat, const std::string& source = {}) {
  const auto prepared = make_template(source)->prepare(chat);
  EXPECT_TRUE(prepared) << prepared.error().message;
  return prepared->format;
}

TEST(PegAnswerParser, SplitsAnAnswerIntoItsParts) {
  const auto format = format_of(with_tools(), kThinking);
  ASSERT_NE(format, nullptr);
  const std::string text =
      "<think>\nThe user asks, a < b.\n</think>\n\nI look it up.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
      "{\"city\": \"Lima, \\\"Perú\\\"\", \"days\": 2}}\n</tool_call>\n<tool_call>\n{\"name\": \"note\", "
      "\"arguments\": {\"text\": \"a\\nb </tool\"}}\n</tool_call>";
  const Answer answer = read(*format, {text});
  EXPECT_EQ(answer.reasoning.find("The user asks, a < b."), 0u) << answer.reasoning;
  EXPECT_EQ(answer.content.find("I look it up."), 0u) << answer.content;
  ASSERT_EQ(answer.calls.size(), 2u);
  EXPECT_EQ(answer.calls[0].name, "weather");
  EXPECT_EQ(answer.calls[0].arguments, R"({"city": "Lima, \"Perú\"", "days": 2})");
  EXPECT_EQ(answer.calls[1].arguments, R"({"text": "a\nb </tool"})");
  expect_same_however_cut(*format, text);
}

TEST(PegAnswerParser, AnswersThatEndAnywhereLoseNothingOfTheirText) {
  const auto format = format_of(with_tools());  // the demo model's
  ASSERT_NE(format, nullptr);
  for (const std::string text :
       {"a <", "a <tool", "<", "plain", "", "ends in space ", "x <b> y </b>", "a\n\n<tool_cal"}) {
    const Answer answer = read(*format, {text});
    EXPECT_EQ(answer.content, text);
    EXPECT_TRUE(answer.calls.empty());
    expect_same_however_cut(*format, text);
  }
  const std::string cut = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Li";
  const Answer answer = read(*format, {cut});
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, "{\"city\": \"Li");
  expect_same_however_cut(*format, cut);
}

TEST(PegAnswerParser, ReasoningThatEndsInItsEndMarkStaysReasoning) {
  Chat chat = with_tools();
  const std::string end = "</think>";
  for (const bool tools : {true, false}) {
    if (!tools) chat.tools.clear();
    const auto format = format_of(chat, kThinking);
    ASSERT_NE(format, nullptr);
    for (std::size_t size = 0; size <= end.size(); ++size) {
      const std::string text = "<think>\nHm, a < b.\n" + end.substr(0, size);
      const Answer answer = read(*format, characters(text));
      EXPECT_EQ(answer.content, "") << text;
      EXPECT_TRUE(answer.reasoning.starts_with("Hm, a < b.")) << answer.reasoning;
      expect_same_however_cut(*format, text);
    }
  }
}

TEST(PegAnswerParser, AnAnswerThatIsContentNeedsNone) {
  Chat chat = with_tools();
  chat.tools.clear();
  EXPECT_EQ(format_of(chat), nullptr);
  EXPECT_NE(format_of(chat, kThinking), nullptr);
  chat.split_reasoning = false;
  EXPECT_EQ(format_of(chat, kThinking), nullptr);
}

TEST(PegAnswerParser, GoesOnWithAnAnswerThatThePromptBegins) {
  Chat chat = with_tools();
  chat.messages.push_back(chat_message("assistant", "It is"));
  chat.continue_final_message = true;
  const auto format = format_of(chat);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(read(*format, {" sunny."}).content, " sunny.");
  expect_same_however_cut(
      *format, " sunny <b>.\n<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"x\"}}\n</tool_call>");
}

TEST(PegAnswerParser, ACallThatThePromptBeginsIsDeliveredWhole) {
  const std::string call =
      "<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"a, b\", \"n\": [1, 2]}}\n</tool_call>";
  for (std::size_t cut = call.find("note") + 6; cut + 12 < call.size(); ++cut) {
    Chat chat = with_tools();
    chat.messages.push_back(chat_message("assistant", call.substr(0, cut)));
    chat.continue_final_message = true;
    const auto format = format_of(chat);
    ASSERT_NE(format, nullptr);
    const Answer answer = read(*format, characters(call.substr(cut)));
    ASSERT_EQ(answer.calls.size(), 1u) << call.substr(0, cut);
    EXPECT_EQ(answer.calls[0].arguments, R"({"text": "a, b", "n": [1, 2]})") << call.substr(0, cut);
  }
}

// How many bytes are looked at for each token, in an answer with that many of them.
double cost_per_token(const AnswerFormat& format, const std::string& begin, const std::string& tokens, int count,
                      const std::string& end) {
  std::vector<std::string> pieces = {begin};
  const std::vector<std::string> cycle = characters(tokens);
  for (int i = 0; i < count; ++i) {
    std::string& piece = pieces.emplace_back();
    for (int c = 0; c < 4; ++c) piece += cycle[static_cast<std::size_t>(i * 4 + c) % cycle.size()];
  }
  pieces.push_back(end);
  std::uint64_t cost = 0;
  read(format, pieces, &cost);
  return static_cast<double>(cost) / count;
}

TEST(PegAnswerParser, WhatATokenCostsDoesNotGrowWithTheAnswer) {
  const auto format = format_of(with_tools(), kThinking);
  struct Case {
    const char* begin;
    const char* tokens;
    const char* end;
  };
  const Case cases[] = {
      {"", "Some words and then some more of them, ", ""},
      {"", "if a < b and c > d then <b>more</b> else <i>less</i>, ", ""},
      {"<think>\n", "I wonder if 2 < 3, or <not>. ", "\n</think>\n\nYes."},
      {"<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"",
       "for (i = 0; i < n; i++) { \\n  say(\\\"x\\\");", "\"}}\n</tool_call>"},
      {"<tool_call>\n{\"name\": \"note\", \"arguments\": {\"text\": \"x\", \"list\": [", "1, [2], {\"a\": 3}, ",
       "4]}}\n</tool_call>"},
  };
  for (const Case& c : cases) {
    const double few = cost_per_token(*format, c.begin, c.tokens, 200, c.end);
    const double many = cost_per_token(*format, c.begin, c.tokens, 4000, c.end);
    EXPECT_LE(many, 1.2 * few) << c.begin << c.tokens << ": " << few << " → " << many;
    EXPECT_LE(many, 1100) << c.begin << c.tokens;
  }
}

// Whether the grammar takes `text` from where the answer begins.
bool allows(const PreparedChat& prepared, const std::string& text) {
  const WeightsPtr weights = test_weights();
  const LlamaTokenizer tokenizer(weights);
  Grammar grammar;
  grammar.text = prepared.grammar;
  grammar.begun = tokenizer.tokenize(prepared.answer_begin, AddSpecial::no, ParseSpecial::yes);
  auto compiled = compile_grammar(grammar, weights->vocab());
  EXPECT_TRUE(compiled) << compiled.error().message;
  GrammarGate gate(std::move(*compiled));
  for (const Token token : tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::yes)) {
    if (!gate.allows(token)) return false;
    gate.accept(token);
  }
  return true;
}

TEST(PegAnswerParser, WhereACallIsRequiredTheModelMayNotTalkInstead) {
  Chat chat = with_tools();
  chat.tool_choice = ToolChoice::required;
  const auto prepared = make_template("")->prepare(chat);
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_FALSE(prepared->grammar_lazy);
  EXPECT_TRUE(allows(*prepared, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\""));
  EXPECT_FALSE(allows(*prepared, "Let me see"));
  EXPECT_FALSE(allows(*prepared, "<tool_call>\n{\"name\": \"other"));
  chat.only_tool = "note";
  const auto only = make_template("")->prepare(chat);
  ASSERT_TRUE(only);
  EXPECT_EQ(only->prompt, prepared->prompt);
  EXPECT_TRUE(allows(*only, "<tool_call>\n{\"name\": \"note\""));
  EXPECT_FALSE(allows(*only, "<tool_call>\n{\"name\": \"weather\""));
}

// Templates of the pinned llama.cpp source, where it is there.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PegAnswerParser, WhatTemplatesWriteIsReadBack) {
  const auto files = template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  int read_back = 0;
  int calls_read_back = 0;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const auto chat_template = make_template(text_of(path));
    Chat chat = with_tools();
    const auto prepared = chat_template->prepare(chat);
    ASSERT_TRUE(prepared) << prepared.error().message;
    Chat answered = chat;
    answered.add_generation_prompt = false;
    answered.messages.push_back(chat_message("assistant", "ZZZ"));
    const auto plain = chat_template->render(answered);
    if (!plain || plain->rfind("ZZZ") == std::string::npos) continue;
    const std::string end = plain->substr(plain->rfind("ZZZ") + 3);
    answered.messages.back().content = "I look: 1 < 2.";
    answered.messages.back().tool_calls = {{"abcdefgh1", "weather", R"({"city":"Lima <3 \"x\"","days":2})"},
                                           {"abcdefgh2", "note", R"({"text":"one\ntwo < 5"})"}};
    auto written = chat_template->render(answered);
    if (!written) {
      answered.messages.back().tool_calls.pop_back();  // some know one call at a time only
      written = chat_template->render(answered);
    }
    if (!written || !written->starts_with(prepared->prompt)) continue;
    std::string text = written->substr(prepared->prompt.size());
    if (!end.empty() && text.ends_with(end)) text.resize(text.size() - end.size());
    if (prepared->format == nullptr) continue;
    const Answer whole = read(*prepared->format, {text});
    // Where the end of a turn with calls is not that of one without, the text is not what a model would say.
    if (whole.calls.empty()) continue;
    ++read_back;
    calls_read_back += whole.calls.size() == answered.messages.back().tool_calls.size();
    expect_same_however_cut(*prepared->format, text, 7);
  }
  EXPECT_GE(read_back, 30);
  EXPECT_GE(calls_read_back, 20);
}

TEST(PegAnswerParser, WhatIsKnownOfATemplateBeforehandChangesNothing) {
  const auto files = template_files();
  if (files.empty()) GTEST_SKIP() << "no templates in " << CHASQUI_TEMPLATES;
  int analysed = 0;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    const auto chat_template = make_template(text_of(path));
    if (!chat_template->is_analysed()) continue;
    ++analysed;
    Chat chat = with_tools();
    chat.messages.insert(chat.messages.begin(), chat_message("system", "Be brief."));
    ChatMessage call = chat_message("assistant", "");
    call.tool_calls = {{"abcdefgh1", "weather", R"({"city":"Lima"})"}};
    ChatMessage result = chat_message("tool", "sunny");
    result.tool_call_id = "abcdefgh1";
    result.name = "weather";
    for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required, ToolChoice::none}) {
      chat.tool_choice = choice;
      const auto quick = chat_template->prepare(chat);
      const auto slow = chat_template->prepare_slowly(chat);
      ASSERT_EQ(quick.has_value(), slow.has_value());
      if (!quick) continue;
      EXPECT_EQ(quick->prompt, slow->prompt);
      EXPECT_EQ(quick->answer_begin, slow->answer_begin);
      EXPECT_EQ(quick->grammar, slow->grammar);
      EXPECT_EQ(quick->grammar_lazy, slow->grammar_lazy);
      EXPECT_EQ(quick->markers, slow->markers);
      EXPECT_EQ(quick->stops, slow->stops);
      EXPECT_EQ(quick->thinking_begin, slow->thinking_begin);
      EXPECT_EQ(quick->thinking_ends, slow->thinking_ends);
      if (choice == ToolChoice::automatic) chat.messages.insert(chat.messages.end(), {call, result});
    }
  }
  EXPECT_GE(analysed, 20);
}

}  // namespace
}  // namespace chasqui
