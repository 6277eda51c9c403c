// Messages to the prompt text that a chat model was trained on. Const and thread-safe; rendering runs a small
// program, so it belongs in the offload pool, never on the loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text
};

struct ChatMessage {
  std::string role;     // system, developer, user, assistant, tool
  std::string content;  // plain text; content parts are joined by the door
  std::string reasoning;
  std::string name;                  // of the tool, with role tool
  std::string tool_call_id;          // with role tool
  std::vector<ToolCall> tool_calls;  // with role assistant
};

struct Tool {
  std::string name;
  std::string description;
  std::string parameters;  // JSON schema text
};

struct Chat {
  std::vector<ChatMessage> messages;  // not empty
  std::vector<Tool> tools;
  bool add_generation_prompt = true;
  // When the last message is an assistant's, it is left open and the model goes on with it.
  bool continue_final_message = false;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // Template errors (a role that the template refuses, say) come back as invalid_request on `messages`.
  virtual Result<std::string> render(const Chat& chat) const = 0;

  // The template's source; empty when there is none.
  virtual std::string_view source() const = 0;
};

}  // namespace chasqui
