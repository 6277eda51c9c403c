// Bodies of chats in three dialects, as far as the template's arguments: messages, tools and switches. What is accepted
// is what a template may be given: roles that it knows, JSON where it takes JSON.
#include <algorithm>
#include <array>

#include "api/anthropic/anthropic.h"
#include "api/body/prompt.h"
#include "api/ollama/ollama.h"
#include "fuzz.h"
#include "model/sim_media.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

bool is_json(const std::string& text) { return text.empty() || parse_json(text).has_value(); }

const MediaReader* media() {
  static const SimMedia reader(std::make_shared<SimTokenizer>());
  return &reader;
}

void check_media(const Chat& chat) {
  must(chat.media.size() <= kSizeLimit<"media_files">, "files within their limit");
  for (const MediaFilePtr& file : chat.media) must(!file->bytes.empty(), "a file has bytes");
}

void check_chat(const Chat& chat) {
  check_media(chat);
  must(chat.messages.size() <= 2 * kSizeLimit<"messages">, "messages within their limit");
  for (const ChatMessage& message : chat.messages) {
    must(!message.role.empty(), "a message has a role; the template says which it knows");
    for (const ToolCall& call : message.tool_calls) must(is_json(call.arguments), "arguments of a call are JSON");
  }
  for (const Tool& tool : chat.tools) must(is_json(tool.parameters), "parameters of a tool are JSON");
  for (const auto& [name, json] : chat.template_args) must(parse_json(json).has_value(), "switches are JSON");
  must(is_json(chat.json_schema), "a schema is JSON");
}

}  // namespace
}  // namespace chasqui

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const TimeLimit limit;
  if (size == 0) return 0;
  const auto body = parse_json_object(text_of(bytes + 1, size - 1));
  if (!body) return 0;
  Fields fields(*body);
  constexpr std::array kReaders{&read_chat, &read_anthropic_chat, &read_ollama_chat};
  const Chat chat = kReaders[bytes[0] % kReaders.size()](fields, RequestDefaults(), media());
  if (fields.ok()) {
    check_chat(chat);
  } else {
    must(!fields.error().message.empty(), "a refusal says why");
  }
  return 0;
}
