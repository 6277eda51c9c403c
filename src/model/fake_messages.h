// Messages for tests. Any thread.
#pragma once

#include <string>
#include <utility>

#include "model/chat_template.h"

namespace chasqui {

inline ChatMessage chat_message(std::string role, std::string content) {
  ChatMessage message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

inline ChatMessage user_message(std::string content) { return chat_message("user", std::move(content)); }

}  // namespace chasqui
