// What clients say about tools and reasoning, in each dialect, until it is a Chat or an error that names the field.
#include <gtest/gtest.h>

#include "api/anthropic/anthropic.h"
#include "api/body/prompt.h"
#include "api/core/fake_node.h"
#include "api/openai/responses.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}])";

using ChatReader = Chat(Fields&, const RequestDefaults&, const MediaReader*);

struct ReadChat {
  Chat chat;
  std::string field;  // at fault; empty: none
};

ReadChat read(const std::string& members, ChatReader* reader = &read_chat) {
  const auto object = parse_json_object(R"({"messages":[{"role":"user","content":"x"}],)" + members + "}");
  EXPECT_TRUE(object) << members;
  Fields fields(*object);
  Chat chat = reader(fields, {}, nullptr);
  return {std::move(chat), fields.ok() ? "" : fields.error().field};
}

TEST(ChatBody, ReadsEveryFormOfToolChoice) {
  const auto choice = [](const std::string& value) { return read(std::string(kTools) + ",\"tool_choice\":" + value); };
  EXPECT_EQ(read(kTools).chat.tool_choice, ToolChoice::automatic);
  EXPECT_EQ(choice("\"auto\"").chat.tool_choice, ToolChoice::automatic);
  EXPECT_EQ(choice("\"none\"").chat.tool_choice, ToolChoice::none);
  EXPECT_EQ(choice("\"none\"").chat.tools.size(), 2u);
  EXPECT_EQ(choice("\"required\"").chat.tool_choice, ToolChoice::required);
  for (const char* named : {R"({"type":"function","function":{"name":"b"}})", R"({"type":"function","name":"b"})"}) {
    const ReadChat got = choice(named);
    EXPECT_EQ(got.chat.tool_choice, ToolChoice::required);
    EXPECT_EQ(got.chat.only_tool, "b");
    EXPECT_EQ(got.chat.tools.size(), 2u);
  }
  const ReadChat allowed = choice(
      R"({"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[
          {"type":"function","function":{"name":"b"}}]}})");
  EXPECT_EQ(allowed.chat.tool_choice, ToolChoice::required);
  ASSERT_EQ(allowed.chat.tools.size(), 1u);
  EXPECT_EQ(allowed.chat.tools[0].name, "b");
  EXPECT_EQ(choice("\"maybe\"").field, "tool_choice");
  EXPECT_EQ(choice("3").field, "tool_choice");
  EXPECT_EQ(choice(R"({"type":"x"})").field, "tool_choice");
  EXPECT_EQ(choice(R"({"type":"function","function":{"name":"c"}})").field, "tool_choice.function.name");
  EXPECT_EQ(choice(R"({"type":"allowed_tools","allowed_tools":{"mode":"x","tools":[]}})").field,
            "tool_choice.allowed_tools.mode");
  EXPECT_EQ(read(R"("tool_choice":"required")").field, "");
  EXPECT_EQ(read(R"("tool_choice":"required")").chat.tool_choice, ToolChoice::automatic);
}

TEST(ChatBody, KeepsTextPartsApart) {
  const auto object = parse_json_object(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},
      {"type":"text","text":""},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]})");
  ASSERT_TRUE(object);
  Fields fields(*object);
  const Chat chat = read_chat(fields, {}, nullptr);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(chat.messages[0].content, "a\n\nb");
  EXPECT_EQ(chat.messages[0].parts, (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(chat.messages[1].content, "c");
  EXPECT_TRUE(chat.messages[1].parts.empty());
}

TEST(ChatBody, AnthropicsPartsAreApartInMessagesOnly) {
  const auto object = parse_json_object(R"({"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
      "messages":[{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]})");
  ASSERT_TRUE(object);
  Fields fields(*object);
  const Chat chat = read_anthropic_chat(fields, {}, nullptr);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(chat.messages[0].content, "ab");
  EXPECT_EQ(chat.messages[1].content, "c\nd");
}

TEST(ChatBody, SkipsToolsOfOtherTypes) {
  const auto tools = [](const std::string& more) {
    return R"("tools":[{"type":"web_search"},{"type":"function","function":{"name":"a"}},{"type":"namespace"},
                       {"type":"web_search"}],)" +
           more;
  };
  const ReadChat got = read(tools(R"("tool_choice":{"type":"web_search"})"));
  EXPECT_EQ(got.field, "");
  ASSERT_EQ(got.chat.tools.size(), 1u);
  EXPECT_EQ(got.chat.tools[0].name, "a");
  EXPECT_EQ(got.chat.skipped_tools, (std::vector<std::string>{"web_search", "namespace"}));
  EXPECT_EQ(got.chat.tool_choice, ToolChoice::automatic);
  const ReadChat allowed = read(tools(R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[
      {"type":"web_search"},{"type":"function","function":{"name":"a"}}]}})"));
  EXPECT_EQ(allowed.field, "");
  EXPECT_EQ(allowed.chat.tools.size(), 1u);
  EXPECT_EQ(read(R"("tools":[{"type":1}])").field, "tools[0].type");
  const ReadChat anthropic = read(R"("tools":[{"type":"web_search_20250305","name":"web_search"},
      {"name":"weather","input_schema":{"type":"object"}}])",
                                  &read_anthropic_chat);
  EXPECT_EQ(anthropic.field, "");
  EXPECT_EQ(anthropic.chat.tools.size(), 1u);
  EXPECT_EQ(anthropic.chat.skipped_tools, std::vector<std::string>{"web_search_20250305"});
}

TEST(ChatBody, OlderFunctionsAreTools) {
  const std::string functions = R"("functions":[{"name":"a","parameters":{"type":"object"}}])";
  const ReadChat got = read(functions + R"(,"function_call":{"name":"a"})");
  EXPECT_EQ(got.field, "");
  ASSERT_EQ(got.chat.tools.size(), 1u);
  EXPECT_EQ(got.chat.only_tool, "a");
  EXPECT_EQ(read(functions + R"(,"function_call":"none")").chat.tool_choice, ToolChoice::none);
  EXPECT_EQ(read(functions + R"(,"function_call":{"name":"b"})").field, "function_call.name");
  EXPECT_EQ(read(R"("functions":[{"description":"x"}])").field, "functions[0].name");
}

TEST(ChatBody, MessagesOfOtherClientsAreRead) {
  const auto object = parse_json_object(R"({"messages":[
      {"role":"developer","content":"a"},{"role":"critic","content":"b"},{"role":"assistant","content":null},
      {"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}},
      {"role":"function","name":"f","content":"c"},{"role":"user","content":"d"}]})");
  ASSERT_TRUE(object);
  Fields fields(*object);
  const Chat chat = read_chat(fields, {}, nullptr);
  ASSERT_TRUE(fields.ok()) << fields.error().message;
  EXPECT_EQ(chat.messages[0].role, "developer");
  EXPECT_EQ(chat.messages[1].role, "critic");
  EXPECT_EQ(chat.messages[2].content, "");
  ASSERT_EQ(chat.messages[3].tool_calls.size(), 1u);
  EXPECT_EQ(chat.messages[3].tool_calls[0].name, "f");
  EXPECT_EQ(chat.messages[3].tool_calls[0].arguments, "{}");
  EXPECT_EQ(arguments_as_json(R"({"a":1})"), R"({"a":1})");
  EXPECT_EQ(arguments_as_json(R"({"a)"), R"({"arguments":"{\"a"})") << "a call that was cut short";
  EXPECT_EQ(chat.messages[4].role, "tool");
  EXPECT_EQ(chat.messages[4].name, "f");
  EXPECT_EQ(read(R"("reasoning_effort":"default")").chat.template_args.size(), 0u);
}

TEST(ChatBody, ReadsWhatIsSaidAboutReasoning) {
  EXPECT_TRUE(read(R"("top_k":1)").chat.split_reasoning);
  EXPECT_FALSE(read(R"("reasoning_format":"none")").chat.split_reasoning);
  EXPECT_EQ(read(R"("reasoning_format":"x")").field, "reasoning_format");
  EXPECT_EQ(read(R"("enable_thinking":false)").chat.enable_thinking, false);
  EXPECT_EQ(read(R"("reasoning_budget":0)").chat.enable_thinking, false);
  EXPECT_EQ(read(R"("reasoning_budget":100)").field, "");
  EXPECT_EQ(read(R"("reasoning_budget":-2)").field, "reasoning_budget");
  EXPECT_EQ(read(R"("reasoning_effort":"none")").chat.enable_thinking, false);
  EXPECT_EQ(read(R"("reasoning_effort":"low")").chat.template_args.at("reasoning_effort"), "\"low\"");
  EXPECT_EQ(read(R"("reasoning_effort":"x")").field, "reasoning_effort");
  const ReadChat args = read(R"("chat_template_kwargs":{"enable_thinking":true,"depth":3})");
  EXPECT_EQ(args.chat.enable_thinking, true);
  EXPECT_EQ(args.chat.template_args.at("depth"), "3");
  EXPECT_EQ(read(R"("chat_template_kwargs":{"enable_thinking":"yes"})").field, "chat_template_kwargs.enable_thinking");
}

TEST(ChatBody, AnAnswerThatIsThereAlreadyIsGoneOnWith) {
  constexpr const char* kPrefill = R"("messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}])";
  EXPECT_TRUE(read(kPrefill).chat.continue_final_message);
  EXPECT_FALSE(read(kPrefill).chat.add_generation_prompt);
  EXPECT_FALSE(read(std::string(kPrefill) + R"(,"continue_final_message":false)").chat.continue_final_message);
  EXPECT_FALSE(read(std::string(kPrefill) + R"(,"add_generation_prompt":true)").chat.continue_final_message);
}

TEST(AnthropicBody, ReadsBlocksAsMessages) {
  const ReadChat got = read(R"("system":[{"type":"text","text":"Be "},{"type":"text","text":"brief."}],
      "messages":[{"role":"user","content":"x"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},
          {"type":"text","text":"I look."},
          {"type":"tool_use","id":"t1","name":"weather","input":{"city":"Lima"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"sunny"}]},
          {"type":"text","text":"and now?"}]}],
      "tools":[{"name":"weather","input_schema":{"type":"object"}}],
      "tool_choice":{"type":"tool","name":"weather","disable_parallel_tool_use":true},"thinking":{"type":"disabled"})",
                            &read_anthropic_chat);
  ASSERT_EQ(got.field, "");
  ASSERT_EQ(got.chat.messages.size(), 5u);
  EXPECT_EQ(got.chat.messages[0].content, "Be brief.");
  EXPECT_EQ(got.chat.messages[2].reasoning, "hm");
  EXPECT_EQ(got.chat.messages[2].tool_calls[0].arguments, R"({"city":"Lima"})");
  EXPECT_EQ(got.chat.messages[3].role, "tool");
  EXPECT_EQ(got.chat.messages[3].name, "weather");
  EXPECT_EQ(got.chat.messages[3].content, "sunny");
  EXPECT_EQ(got.chat.messages[4].content, "and now?");
  EXPECT_EQ(got.chat.only_tool, "weather");
  EXPECT_FALSE(got.chat.parallel_tool_calls);
  EXPECT_EQ(got.chat.enable_thinking, false);
}

TEST(ResponseBody, ReadsItemsAsMessages) {
  FakeNode fake;
  const auto ask = read_response_ask(fake.served, {}, R"({"instructions":"Be brief.","max_output_tokens":7,"input":[
      {"role":"user","content":[{"type":"input_text","text":"x"}]},
      {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
      {"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"sunny"}],
      "tools":[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":true}],
      "tool_choice":{"type":"function","name":"weather"},"reasoning":{"effort":"low"}})");
  ASSERT_TRUE(ask) << ask.error().message;
  ASSERT_EQ(ask->chat.messages.size(), 3u);
  EXPECT_EQ(ask->chat.messages[1].reasoning, "hm");
  EXPECT_EQ(ask->chat.messages[1].content, "I look.");
  EXPECT_EQ(ask->chat.messages[1].tool_calls.size(), 1u);
  EXPECT_EQ(ask->chat.messages[2].name, "weather");
  EXPECT_EQ(ask->chat.only_tool, "weather");
  EXPECT_EQ(ask->chat.template_args.at("reasoning_effort"), "\"low\"");
  EXPECT_EQ(ask->draft.max_tokens, 7);
  EXPECT_EQ(ask->input.items.size(), 5u);
}

// 4096 references to one answer of 500 KB were a tree of 2 GB.
TEST(ResponseBody, TakesNoMoreByReferenceThanABodyMayHave) {
  FakeNode fake;
  const auto text = std::make_shared<const std::string>(
      R"({"output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":")" +
      std::string(kSizeLimit<"body_bytes"> / 4, 'x') + R"("}]}]})");
  const auto read_with = [&](std::size_t references) {
    std::string input = R"({"role":"user","content":"x"})";
    for (std::size_t i = 0; i < references; ++i) input += R"(,{"type":"item_reference","id":"msg_1"})";
    auto ask = read_response_ask(fake.served, {}, R"({"store":false,"input":[)" + input + "]}");
    EXPECT_EQ(ask->references.size(), 1u) << "each once";
    return read_response_again(fake.served, {}, std::move(ask->unread), {text});
  };
  const auto taken = read_with(3);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->chat.messages.size(), 4u);
  const auto refused = read_with(4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "input");
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_request);
  EXPECT_NE(refused.error().message.find(std::to_string(kSizeLimit<"body_bytes">)), std::string::npos);
}

TEST(ResponseBody, EveryMistakeNamesItsField) {
  FakeNode fake;
  for (const auto& [members, field] : {std::pair{R"("input":[])", "input"},
                                       {R"("input":3)", "input"},
                                       {R"("input":[3])", "input[0]"},
                                       {R"("input":[{"role":"x","content":"y"}])", "input[0].role"},
                                       {R"("input":[{"type":"x"}])", "input[0].type"},
                                       {R"("input":"x","tools":[{"type":1}])", "tools[0].type"},
                                       {R"("input":"x","background":"yes")", "background"},
                                       {R"("input":"x","truncation":"always")", "truncation"},
                                       {R"("input":"x","reasoning":{"effort":"x"})", "reasoning.effort"},
                                       {R"("input":"x","text":{"format":{"type":"x"}})", "text.format.type"}}) {
    const auto ask = read_response_ask(fake.served, {}, "{" + std::string(members) + "}");
    ASSERT_FALSE(ask) << members;
    EXPECT_EQ(ask.error().field, field) << ask.error().message;
  }
}

// Each entry copied every tool of its name: a body of 3 MB could ask for more memory than a machine has.
TEST(ChatBody, TakesEachAllowedToolOnce) {
  const auto allowed = [](std::size_t count) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) list += R"({"type":"function","name":"a"},)";
    list.pop_back();
    return read(std::string(kTools) + R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[)" + list +
                "]}");
  };
  EXPECT_EQ(allowed(1).chat.tools.size(), 1u);
  EXPECT_EQ(allowed(kSizeLimit<"tools">).chat.tools.size(), 1u);
  EXPECT_EQ(allowed(kSizeLimit<"tools"> + 1).field, "tool_choice.tools");
}

TEST(ChatBody, BoundsTheArgumentsOfTheTemplate) {
  const auto args = [](std::size_t count, std::size_t bytes) {
    boost::json::object out;
    for (std::size_t i = 0; i < count; ++i) out["k" + std::to_string(i)] = std::string(bytes, 'x');
    return read("\"chat_template_kwargs\":" + boost::json::serialize(out)).field;
  };
  EXPECT_EQ(args(kSizeLimit<"template_args">, 1), "");
  EXPECT_EQ(args(kSizeLimit<"template_args"> + 1, 1), "chat_template_kwargs");
  EXPECT_EQ(args(4, kSizeLimit<"template_arg_bytes"> / 4), "chat_template_kwargs");
}

TEST(ChatBody, BoundsTheArgumentsOfAllCalls) {
  ChatMessage message;
  message.tool_calls.push_back({"", "t", "[" + std::string(kSizeLimit<"json_nodes"> / 2, ',')});
  EXPECT_FALSE(check_calls({message}));
  const auto error = check_calls({message, message});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field, "messages");
}

}  // namespace
}  // namespace chasqui
