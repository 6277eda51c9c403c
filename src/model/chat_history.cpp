#include "model/chat_history.h"

#include <string_view>

#include "base/limits.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

// What stands for the model's answer. Should a message contain it, another one is tried.
constexpr std::string_view kMark = "Chasqui9answer";
constexpr int kMarks = 4;

Chat chat_of(const ChatHistory& history, std::span<const ChatMessage> added, bool answer) {
  Chat chat;
  chat.messages.reserve(history.messages.size() + added.size());
  for (const auto& message : history.messages) chat.messages.push_back(*message);
  chat.messages.insert(chat.messages.end(), added.begin(), added.end());
  if (history.tools) chat.tools = *history.tools;
  chat.add_generation_prompt = answer;
  return chat;
}

Error does_not_extend() {
  return invalid_field("messages",
                       "messages cannot be appended to this session: the model's chat template changes what is "
                       "already there when they come. Send the whole conversation as one request instead");
}

Result<std::string> text_behind_message(const ChatTemplate& chat_template, const ChatHistory& history,
                                        std::span<const ChatMessage> added, bool answer) {
  auto after = chat_template.render(chat_of(history, added, answer));
  if (!after || history.messages.empty()) return after;
  auto before = chat_template.render(chat_of(history, {}, false));
  if (!before) return before;
  if (!after->starts_with(*before)) return does_not_extend();
  return after->substr(before->size());
}

// Where `mark` is in the text, if it is there exactly once.
std::size_t only_place(std::string_view text, std::string_view mark) {
  const std::size_t first = text.find(mark);
  return first == text.rfind(mark) ? first : std::string_view::npos;
}

Result<std::string> text_behind_answer(const ChatTemplate& chat_template, const ChatHistory& history,
                                       std::span<const ChatMessage> added, bool answer) {
  Chat chat = chat_of(history, added, answer);
  ChatMessage& said = chat.messages[history.messages.size() - 1];
  for (int i = 0; i < kMarks; ++i) {
    const std::string mark = std::string(kMark) + std::to_string(i) + 'x';
    said.content = mark;
    auto text = chat_template.render(chat);
    if (!text) return text;
    const std::size_t place = only_place(*text, mark);
    if (place == std::string::npos) continue;
    text->erase(0, place + mark.size());
    const bool there_already = history.end == ChatHistory::End::ended_answer && text->starts_with(history.end_text);
    if (there_already) text->erase(0, history.end_text.size());
    return text;
  }
  return does_not_extend();
}

Result<std::string> text_behind(const ChatTemplate& chat_template, const ChatHistory& history,
                                std::span<const ChatMessage> added, bool answer) {
  const WorkBudget budget(kTimeLimit<"template_seconds">);  // for all renderings together
  if (history.end == ChatHistory::End::message) return text_behind_message(chat_template, history, added, answer);
  return text_behind_answer(chat_template, history, added, answer);
}

}  // namespace

std::size_t bytes_of(const ChatMessage& message) {
  std::size_t bytes = sizeof message + message.role.size() + message.content.size() + message.reasoning.size() +
                      message.name.size() + message.tool_call_id.size();
  for (const ToolCall& call : message.tool_calls) {
    bytes += sizeof call + call.id.size() + call.name.size() + call.arguments.size();
  }
  for (const std::string& part : message.parts) bytes += sizeof part + part.size();
  return bytes;
}

ChatHistory with_messages(const ChatHistory& history, std::vector<ChatMessage> added) {
  ChatHistory after = history;
  for (ChatMessage& message : added) {
    after.bytes += bytes_of(message);
    after.count_files(message);
    after.messages.push_back(std::make_shared<const ChatMessage>(std::move(message)));
  }
  after.end = ChatHistory::End::message;
  after.end_text.clear();
  return after;
}

ChatHistory with_answer(const ChatHistory& history, std::string_view text, std::string_view end_text) {
  ChatMessage answer;
  ChatHistory after = history;
  if (history.end == ChatHistory::End::open_answer) {
    answer = *after.messages.back();
    after.messages.pop_back();
    after.bytes -= bytes_of(answer);
  }
  answer.role = "assistant";
  answer.content += text;
  after.bytes += bytes_of(answer);
  after.messages.push_back(std::make_shared<const ChatMessage>(std::move(answer)));
  after.end = end_text.empty() ? ChatHistory::End::open_answer : ChatHistory::End::ended_answer;
  after.end_text = end_text;
  return after;
}

Result<std::string> text_of_messages(const ChatTemplate& chat_template, const ChatHistory& history,
                                     std::span<const ChatMessage> added) {
  return text_behind(chat_template, history, added, false);
}

Result<std::string> text_before_answer(const ChatTemplate& chat_template, const ChatHistory& history) {
  if (history.end == ChatHistory::End::open_answer) return std::string();
  return text_behind(chat_template, history, {}, true);
}

}  // namespace chasqui
