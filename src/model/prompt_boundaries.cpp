#include "model/prompt_boundaries.h"

#include <algorithm>
#include <optional>
#include <string>

namespace chasqui {
namespace {

// Stands for a message that is not known yet: unlike the beginning of most.
ChatMessage message_of(std::string_view role) {
  ChatMessage message;
  message.role = role;
  message.content = "\u2020";
  return message;
}

bool instructs(const ChatMessage& message) { return message.role == "system" || message.role == "developer"; }

// How many bytes of the prompt `chat` has, too. 0: the template refuses it.
std::size_t common_bytes(const ChatTemplate& chat_template, const Chat& chat, std::string_view prompt) {
  const auto text = chat_template.render(chat);
  if (!text) return 0;
  const auto differs = std::ranges::mismatch(*text, prompt);
  return static_cast<std::size_t>(differs.in2 - prompt.begin());
}

Chat part_of(const Chat& chat, std::size_t messages) {
  Chat part = chat;
  part.messages.resize(messages);
  part.add_generation_prompt = false;
  part.continue_final_message = false;
  return part;
}

std::vector<std::size_t> offsets_of(const ChatTemplate& chat_template, const Chat& chat, std::string_view prompt) {
  std::vector<std::size_t> out;
  const std::vector<ChatMessage>& messages = chat.messages;
  const auto first = std::ranges::find_if_not(messages, instructs);
  const auto instructions = static_cast<std::size_t>(first - messages.begin());
  if (first != messages.end() && (instructions > 0 || !chat.tools.empty())) {
    Chat other = part_of(chat, instructions + 1);
    other.messages.back() = message_of("user");
    out.push_back(common_bytes(chat_template, other, prompt));
  }
  const auto last = std::find_if(messages.rbegin(), messages.rend(), [](const auto& m) { return m.role == "user"; });
  const auto before_last = static_cast<std::size_t>(messages.rend() - last);  // 1 more than its place
  if (before_last > instructions + 1) {
    Chat other = part_of(chat, before_last);
    other.messages.back() = message_of("user");
    out.push_back(common_bytes(chat_template, other, prompt));
  }
  if (!chat.continue_final_message && chat.add_generation_prompt) {
    Chat next = part_of(chat, messages.size());
    next.messages.push_back(message_of("assistant"));
    next.messages.push_back(message_of("user"));
    out.push_back(common_bytes(chat_template, next, prompt));
  }
  return out;
}

// How many tokens of the prompt end at or before each of these bytes. The text of the first tokens may have what the
// prompt's has not: a begin token, or a space that the vocabulary puts before each text. Of a prompt with pictures or
// sounds, only the bytes before the first one.
std::optional<std::vector<TokenCount>> tokens_before(const Tokenizer& tokenizer, std::string_view prompt,
                                                     std::span<const Token> tokens,
                                                     const std::vector<std::size_t>& ascending) {
  std::vector<TokenCount> out;
  std::size_t at = 0;
  auto next = ascending.begin();
  const auto no_token = std::ranges::find_if(tokens, [](Token token) { return token < 0; });
  const bool text_alone = no_token == tokens.end();
  tokens = tokens.first(static_cast<std::size_t>(no_token - tokens.begin()));
  for (std::size_t i = 0; i < tokens.size() && next != ascending.end(); ++i) {
    std::string_view piece = tokenizer.special_piece(tokens[i]);
    if (at == 0 && !prompt.starts_with(piece)) {
      if (piece.starts_with(' ') && prompt.starts_with(piece.substr(1))) {
        piece.remove_prefix(1);
      } else if (i == 0) {
        continue;
      }
    }
    if (!prompt.substr(at).starts_with(piece)) return text_alone ? std::nullopt : std::optional(out);
    at += piece.size();
    for (; next != ascending.end() && *next < at; ++next) out.push_back(static_cast<TokenCount>(i));
  }
  if (text_alone && next != ascending.end() && at != prompt.size()) return std::nullopt;
  return out;
}

}  // namespace

std::vector<TokenCount> prompt_boundaries(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                          const Chat& chat, std::string_view prompt, std::span<const Token> tokens) {
  if (chat.messages.empty()) return {};
  std::vector<std::size_t> offsets = offsets_of(chat_template, chat, prompt);
  std::ranges::sort(offsets);
  return tokens_before(tokenizer, prompt, tokens, offsets).value_or(std::vector<TokenCount>{});
}

}  // namespace chasqui
