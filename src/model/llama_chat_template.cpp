#include "model/llama_chat_template.h"

#include <exception>

#include <chat.h>
#include <llama.h>

#include "base/log.h"

namespace chasqui {
namespace {

common_chat_msg to_common(const ChatMessage& message) {
  common_chat_msg out;
  out.role = message.role;
  out.content = message.content;
  out.reasoning_content = message.reasoning;
  out.tool_name = message.name;
  out.tool_call_id = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) {
    out.tool_calls.push_back({call.name, call.arguments.empty() ? "{}" : call.arguments, call.id});
  }
  return out;
}

common_chat_tool to_common(const Tool& tool) {
  constexpr const char* kNoParameters = R"({"type":"object","properties":{}})";
  return {tool.name, tool.description, tool.parameters.empty() ? kNoParameters : tool.parameters};
}

common_chat_templates_inputs to_common(const Chat& chat) {
  common_chat_templates_inputs inputs;
  for (const ChatMessage& message : chat.messages) inputs.messages.push_back(to_common(message));
  for (const Tool& tool : chat.tools) inputs.tools.push_back(to_common(tool));
  inputs.add_generation_prompt = chat.add_generation_prompt;
  if (chat.continue_final_message && chat.messages.back().role == "assistant") {
    inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
    inputs.add_generation_prompt = false;
  }
  inputs.parallel_tool_calls = true;
  return inputs;
}

}  // namespace

struct LlamaChatTemplate::Impl {
  common_chat_templates_ptr templates;
};

LlamaChatTemplate::LlamaChatTemplate(WeightsPtr weights, std::unique_ptr<Impl> impl)
    : weights_(std::move(weights)),
      impl_(std::move(impl)),
      source_(common_chat_templates_source(impl_->templates.get())),
      explicit_(common_chat_templates_was_explicit(impl_->templates.get())) {}

LlamaChatTemplate::~LlamaChatTemplate() = default;

Result<std::unique_ptr<LlamaChatTemplate>> LlamaChatTemplate::make(WeightsPtr weights, const std::string& source) {
  auto impl = std::make_unique<Impl>();
  try {
    impl->templates = common_chat_templates_init(weights->model(), source);
  } catch (const std::exception& e) {
    return invalid_field("chat_template", std::string("The chat template does not parse: ") + e.what());
  }
  std::unique_ptr<LlamaChatTemplate> made(new LlamaChatTemplate(std::move(weights), std::move(impl)));
  if (!made->is_explicit()) log_warning("the model has no chat template; ChatML takes its place");
  return made;
}

Result<std::string> LlamaChatTemplate::render(const Chat& chat) const {
  if (chat.messages.empty()) return invalid_field("messages", "messages must have at least one message");
  try {
    return common_chat_templates_apply(impl_->templates.get(), to_common(chat)).prompt;
  } catch (const std::exception& e) {
    return invalid_field("messages", std::string("The model's chat template refuses these messages: ") + e.what());
  }
}

}  // namespace chasqui
