#include "model/llama_chat_template.h"

#include <gtest/gtest.h>

#include "model/fake_messages.h"
#include "model/test_templates.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr const char* kChatMl =
    "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}";

TEST(LlamaChatTemplate, RendersExactly) {
  auto chat_template = make_template(kChatMl);
  Chat chat;
  chat.messages = {chat_message("system", "Be brief."), chat_message("user", "Hi, \"you\"\nthere <|x|>")};
  EXPECT_EQ(*chat_template->render(chat),
            "<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nHi, \"you\"\nthere <|x|><|im_end|>\n"
            "<|im_start|>assistant\n");
  chat.add_generation_prompt = false;
  EXPECT_TRUE(chat_template->render(chat)->ends_with("<|im_end|>\n"));
  EXPECT_EQ(chat_template->source(), kChatMl);
}

TEST(LlamaChatTemplate, ContinuesTheLastMessage) {
  auto chat_template = make_template(kChatMl);
  Chat chat;
  chat.messages = {chat_message("user", "Count."), chat_message("assistant", "One, two")};
  chat.continue_final_message = true;
  EXPECT_EQ(*chat_template->render(chat), "<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\nOne, two");
  chat.messages.pop_back();  // nothing to continue: a turn of its own
  EXPECT_TRUE(chat_template->render(chat)->ends_with("<|im_start|>assistant\n"));
}

TEST(LlamaChatTemplate, PartsAreJoinedWithLineBreaksOrLeftToTheTemplate) {
  Chat chat;
  chat.add_generation_prompt = false;
  chat.messages = {chat_message("user", "")};
  chat.messages[0].add_part("One");
  chat.messages[0].add_part("Two");
  EXPECT_EQ(*make_template(kChatMl)->render(chat), "<|im_start|>user\nOne\nTwo<|im_end|>\n");
  auto typed = make_template(
      "{%- for m in messages -%}[{{ m.role }}]{%- if m.content is string -%}{{ m.content }}{%- else -%}"
      "{%- for part in m.content -%}({{ part.text }}){%- endfor -%}{%- endif -%}{%- endfor -%}");
  EXPECT_EQ(*typed->render(chat), "[user](One)(Two)");
}

TEST(LlamaChatTemplate, ContinuesAnAnswerInParts) {
  Chat chat;
  chat.messages = {chat_message("user", "Count."), chat_message("assistant", "")};
  chat.messages[1].add_part("One, two");
  chat.continue_final_message = true;
  EXPECT_EQ(*make_template(kChatMl)->render(chat),
            "<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\nOne, two");
}

TEST(LlamaChatTemplate, DeveloperIsSystemToMostModels) {
  auto chat_template = make_template(kChatMl);
  Chat chat;
  chat.messages = {chat_message("developer", "Be brief."), chat_message("user", "Hi")};
  EXPECT_EQ(chat_template->render(chat)->find("<|im_start|>system\nBe brief."), 0u);
}

TEST(LlamaChatTemplate, WritesToolsAndCalls) {
  auto chat_template = make_template(
      "{%- if tools -%}Tools: {%- for t in tools -%}{{ t.function.name }} {{ t.function.parameters | tojson }}"
      "{%- endfor -%}{%- endif -%}\n"
      "{%- for m in messages -%}[{{ m.role }}]{{ m.content }}"
      "{%- if m.tool_calls -%}{%- for c in m.tool_calls -%}({{ c.function.name }}: {{ c.function.arguments }})"
      "{%- endfor -%}{%- endif -%}{%- endfor -%}");
  Chat chat;
  chat.add_generation_prompt = false;
  chat.tools = {{"weather", "Looks out of the window.", R"({"type":"object","properties":{}})"}};
  chat.messages = {chat_message("user", "Lima?"), chat_message("assistant", ""), chat_message("tool", "sunny")};
  chat.messages[1].tool_calls = {{"call-1", "weather", R"({"city":"Lima"})"}};
  chat.messages[2].tool_call_id = "call-1";
  const auto text = chat_template->render(chat);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("weather {\"type\": \"object\", \"properties\": {}}"), std::string::npos) << *text;
  EXPECT_NE(text->find("[user]Lima?[assistant](weather: {\"city\":\"Lima\"})[tool]sunny"), std::string::npos) << *text;
}

TEST(LlamaChatTemplate, TheModelsOwnTemplateWorks) {
  auto chat_template = make_template();
  EXPECT_FALSE(chat_template->source().empty());
  Chat chat;
  chat.messages = {chat_message("system", "Be brief."), chat_message("user", "Hello there")};
  const auto text = chat_template->render(chat);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("Hello there"), std::string::npos);
}

TEST(LlamaChatTemplate, TheDemoModelsToolsAreWrittenAsItLearntThem) {
  auto chat_template = make_template();
  Chat chat;
  chat.tools = {{"weather", "Looks out of the window.", R"({"type":"object"})"}};
  chat.messages = {chat_message("user", "Lima?"), chat_message("assistant", ""), chat_message("tool", "sunny")};
  chat.messages[1].tool_calls = {{"call-1", "weather", R"({"city":"Lima"})"}};
  chat.messages[2].tool_call_id = "call-1";
  const auto text = chat_template->render(chat);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find(R"("function": {"name": "weather", "description": "Looks out of the window.")"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Lima\"}}\n</tool_call>"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("<tool_response>\nsunny\n</tool_response>"), std::string::npos) << *text;
}

TEST(LlamaChatTemplate, RefusalsOfTheTemplateAreErrorsOfTheMessages) {
  auto chat_template = make_template(
      "{%- for m in messages -%}{%- if m.role == 'wizard' -%}{{ raise_exception('no wizards here') }}{%- endif -%}"
      "{{ m.content }}{%- endfor -%}");
  Chat chat;
  chat.messages = {chat_message("wizard", "Abracadabra")};
  const auto refused = chat_template->render(chat);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(refused.error().field, "messages");
  EXPECT_NE(refused.error().message.find("no wizards here"), std::string::npos) << refused.error().message;
  EXPECT_EQ(chat_template->render({}).error().field, "messages");
}

TEST(LlamaChatTemplate, JsonThatIsNoneIsRefused) {
  auto chat_template = make_template(kChatMl);
  Chat chat;
  chat.messages = {chat_message("user", "Hi")};
  chat.tools = {{"weather", "", "{not json"}};
  EXPECT_FALSE(chat_template->render(chat));
}

TEST(LlamaChatTemplate, SourceThatDoesNotParseIsRefused) {
  const auto made = LlamaChatTemplate::make(test_weights(), "{% for m in messages %}{{ m.content }");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "chat_template");
}

}  // namespace
}  // namespace chasqui
