#include "engine/session_input.h"

#include <algorithm>

namespace chasqui {

namespace {

// What a template sees where a file was, when messages come behind it: tokens say what stands there, but a message that
// is empty is another one for some templates.
constexpr std::string_view kFilePlace = "[file]";

std::vector<MediaFilePtr> files_of(std::span<const ChatMessage> messages) {
  std::vector<MediaFilePtr> files;
  for (const ChatMessage& message : messages) files.insert(files.end(), message.media.begin(), message.media.end());
  return files;
}

// The marker is another one in another process, or with another projector.
void forget_markers(std::vector<ChatMessage>& messages, std::string_view marker) {
  for (ChatMessage& message : messages) {
    if (message.media.empty()) continue;
    for (auto at = message.content.find(marker); at != std::string::npos; at = message.content.find(marker, at)) {
      message.content.replace(at, marker.size(), kFilePlace);
    }
  }
}

}  // namespace

// Refuses a text that cannot fit before the tokenizer has to read all of it.
Result<void> SessionInput::check_fits(std::size_t bytes, const char* field) const {
  const TokenCount room = std::max(tail_.tokens_max - tail_.tokens, 0);
  const std::size_t bytes_max = model_.tokenizer->piece_bytes_max() * static_cast<std::size_t>(room);
  if (model_.tokenizer->piece_bytes_max() == 0 || bytes <= bytes_max) return {};
  return Error{ErrorCode::context_too_long,
               "the session has " + std::to_string(tail_.tokens) + " of at most " + std::to_string(tail_.tokens_max) +
                   " tokens; " + std::to_string(bytes) + " bytes more cannot fit",
               field};
}

std::vector<Token> SessionInput::begun(std::vector<Token> tokens) const {
  if (tail_.tokens == 0 && model_.info.adds_bos) tokens.insert(tokens.begin(), model_.info.bos);
  return tokens;
}

Result<std::vector<Token>> SessionInput::tokenize(std::string_view text, ParseSpecial parse, const char* field) const {
  if (auto fits = check_fits(text.size(), field); !fits) return fits.error();
  return begun(model_.tokenizer->tokenize(text, AddSpecial::no, parse));
}

// As tokenize(), of messages with files.
Result<MediaPrompt> SessionInput::read_files(std::string_view text, const std::vector<MediaFilePtr>& files) const {
  const std::size_t markers = files.size() * model_.media->marker().size();
  if (auto fits = check_fits(text.size() - std::min(text.size(), markers), "messages"); !fits) return fits.error();
  auto prompt = model_.media->read(text, AddSpecial::no, ParseSpecial::yes, files);
  if (prompt) prompt->tokens = begun(std::move(prompt->tokens));
  return prompt;
}

Result<MediaUnits> SessionInput::units() const {
  std::vector<MediaFilePtr> files;
  if (tail_.chat) {
    for (const auto& message : tail_.chat->messages) {
      files.insert(files.end(), message->media.begin(), message->media.end());
    }
  }
  if (files.empty()) return MediaUnits{};
  if (!model_.media) return other_projector();
  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) text.append(" ").append(model_.media->marker());
  const auto prompt = model_.media->read(text, AddSpecial::no, ParseSpecial::no, files);
  // They could be read when they came.
  if (!prompt) return prompt.error().code == ErrorCode::overloaded ? prompt.error() : other_projector();
  return MediaUnits(*prompt->units);
}

Error other_projector() {
  return {ErrorCode::conflict,
          "the session has pictures or sounds that this server cannot read as they were read when they came (--mmproj, "
          "--image-min-tokens, --image-max-tokens): end it and begin a new one",
          ""};
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
  const std::vector<MediaFilePtr> files = files_of(messages);
  MediaPrompt added;
  if (files.empty()) {
    auto tokens = tokenize(*text, ParseSpecial::yes, "messages");
    if (!tokens) return tokens.error();
    added.tokens = std::move(*tokens);
  } else {
    auto read = read_files(*text, files);
    if (!read) return read.error();
    added = std::move(*read);
    forget_markers(messages, model_.media->marker());
  }
  ChatHistory after = with_messages(history, std::move(messages));
  after.decoded_bytes += added.decoded_bytes;
  return SessionDelta{std::move(added.tokens), std::make_shared<const ChatHistory>(std::move(after))};
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
