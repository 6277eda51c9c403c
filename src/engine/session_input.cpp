#include "engine/session_input.h"

#include <algorithm>

namespace chasqui {

// Refuses a text that cannot fit before the tokenizer has to read all of it.
Result<std::vector<Token>> SessionInput::tokenize(std::string_view text, ParseSpecial parse, const char* field) const {
  const TokenCount room = std::max(tail_.tokens_max - tail_.tokens, 0);
  const std::size_t bytes_max = model_.tokenizer->piece_bytes_max() * static_cast<std::size_t>(room);
  if (model_.tokenizer->piece_bytes_max() > 0 && text.size() > bytes_max) {
    return Error{ErrorCode::context_too_long,
                 "the session has " + std::to_string(tail_.tokens) + " of at most " + std::to_string(tail_.tokens_max) +
                     " tokens; " + std::to_string(text.size()) + " bytes more cannot fit",
                 field};
  }
  std::vector<Token> tokens = model_.tokenizer->tokenize(text, AddSpecial::no, parse);
  if (tail_.tokens == 0 && model_.info.adds_bos) tokens.insert(tokens.begin(), model_.info.bos);
  return tokens;
}

Result<SessionDelta> SessionInput::from_text(std::string_view text, ParseSpecial parse) const {
  if (tail_.chat) {
    return invalid_field("text", "text cannot be appended to a session of chat messages: append message or messages");
  }
  if (text.empty()) return invalid_field("text", "text must not be empty");
  auto tokens = tokenize(text, parse, "text");
  if (!tokens) return tokens.error();
  return SessionDelta{std::move(*tokens), nullptr};
}

Result<SessionDelta> SessionInput::from_tokens(std::vector<Token> tokens) const {
  if (tail_.chat) {
    return invalid_field("tokens",
                         "tokens cannot be appended to a session of chat messages: append message or messages");
  }
  if (tokens.empty()) return invalid_field("tokens", "tokens must not be empty");
  const auto bad = [this](Token token) { return token < 0 || token >= model_.tokenizer->vocabulary(); };
  if (std::any_of(tokens.begin(), tokens.end(), bad)) {
    return invalid_field("tokens",
                         "tokens must be ids between 0 and " + std::to_string(model_.tokenizer->vocabulary() - 1));
  }
  return SessionDelta{std::move(tokens), nullptr};
}

Result<SessionDelta> SessionInput::from_messages(std::vector<ChatMessage> messages, std::vector<Tool> tools) const {
  if (!begins() && !tail_.chat) {
    return invalid_field("messages", "messages cannot be appended to a session of plain text: append text or tokens");
  }
  if (messages.empty()) return invalid_field("messages", "messages must have at least one message");
  if (!begins() && !tools.empty()) {
    return invalid_field("tools", "tools must be left out: they are said when the session begins");
  }
  ChatHistory history = tail_.chat ? *tail_.chat : ChatHistory{};
  if (!tools.empty()) {
    for (const Tool& tool : tools) {
      history.bytes += sizeof tool + tool.name.size() + tool.description.size() + tool.parameters.size();
    }
    history.tools = std::make_shared<const std::vector<Tool>>(std::move(tools));
  }
  auto text = text_of_messages(*model_.chat_template, history, messages);
  if (!text) return text.error();
  auto tokens = tokenize(*text, ParseSpecial::yes, "messages");
  if (!tokens) return tokens.error();
  return SessionDelta{std::move(*tokens),
                      std::make_shared<const ChatHistory>(with_messages(history, std::move(messages)))};
}

Result<SessionDelta> SessionInput::before_answer() const {
  if (tail_.tokens == 0) {
    return Error{ErrorCode::invalid_request, "the session is empty: append something first", ""};
  }
  if (!tail_.chat) return SessionDelta{};
  auto text = text_before_answer(*model_.chat_template, *tail_.chat);
  if (!text) return text.error();
  auto tokens = tokenize(*text, ParseSpecial::yes, "messages");
  if (!tokens) return tokens.error();
  return SessionDelta{std::move(*tokens), tail_.chat};
}

}  // namespace chasqui
