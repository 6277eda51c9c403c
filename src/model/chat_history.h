// A conversation that grows while its tokens stay: what a chat template puts behind it when messages are added, or when
// an answer is to begin. Plain values, changed by making new ones, so that those who prepare the next turn on another
// thread and those who fork share what there is. The functions are pure and as slow as the template: offload pool.
//
// After an answer of the model nothing is assumed about how the template would have written it: it is rendered with a
// mark in its place, and what stands behind the mark goes on. So templates that trim answers, or drop the reasoning of
// earlier ones, extend a history as well as others do.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/chat_template.h"

namespace chasqui {

struct ChatHistory {
  enum class End {
    message,       // behind what the template makes of the last message
    open_answer,   // inside an answer of the model, of which more may follow
    ended_answer,  // behind the token that ended the answer
  };

  std::vector<std::shared_ptr<const ChatMessage>> messages;  // in order; an answer of the model is the last of them
  std::shared_ptr<const std::vector<Tool>> tools;            // null: none
  End end = End::message;
  std::string end_text;   // with ended_answer: of the token that ended it
  std::size_t bytes = 0;  // of all texts
  // Pictures and sounds of all messages: how many, what they have as files, and decoded.
  std::size_t files = 0;
  std::size_t file_bytes = 0;
  std::size_t decoded_bytes = 0;

  void count_files(const ChatMessage& message) {
    files += message.media.size();
    for (const MediaFilePtr& file : message.media) file_bytes += file->bytes.size();
  }
};
using ChatHistoryPtr = std::shared_ptr<const ChatHistory>;

// What a message takes in memory, without its pictures and sounds.
std::size_t bytes_of(const ChatMessage& message);

ChatHistory with_messages(const ChatHistory& history, std::vector<ChatMessage> added);
// The model has said `text`; `end_text` is empty when it was interrupted.
ChatHistory with_answer(const ChatHistory& history, std::string_view text, std::string_view end_text);

// The text that comes behind `history` when `added` are appended. Errors: what the template says of them, or that it
// does not extend the history but changes it.
Result<std::string> text_of_messages(const ChatTemplate& chat_template, const ChatHistory& history,
                                     std::span<const ChatMessage> added);
// … when the model is to answer. REQUIRES: there is a message. Empty inside an answer, which then goes on.
Result<std::string> text_before_answer(const ChatTemplate& chat_template, const ChatHistory& history);

}  // namespace chasqui
