#include "cli/question.h"

namespace chasqui::cli {

void write_question(JsonWriter& json, const Conversation& conversation, const AnswerSettings& settings) {
  json.begin_array("messages");
  for (const ChatMessage& message : conversation.messages()) {
    json.begin_object();
    json.field("role", message.role);
    json.field("content", message.content);
    json.end_object();
  }
  json.end_array();
  if (settings.temperature) json.field("temperature", *settings.temperature);
  if (settings.max_tokens) json.field("max_tokens", *settings.max_tokens);
  if (settings.seed) json.field("seed", *settings.seed);
}

}  // namespace chasqui::cli
