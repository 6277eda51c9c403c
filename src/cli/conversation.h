// What was said in a chat, and what is sent to the model: an optional system message, then questions and answers in
// turn. Saved and loaded as the JSON that the API takes. A plain value; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/chat_template.h"

namespace chasqui::cli {

class Conversation {
 public:
  // Empty: no system message. What was said before is kept.
  void set_system(std::string text);
  const std::string& system() const { return system_; }

  void ask(std::string text);
  void answered(std::string text);
  // Takes the last question back, when nothing came of it.
  void take_back();
  void clear();

  // The system message first.
  std::vector<ChatMessage> messages() const;
  std::size_t size() const { return turns_.size(); }
  bool empty() const { return turns_.empty(); }
  // Another one: what was sent before is not the beginning of what is to be sent now.
  std::uint64_t revision() const { return revision_; }

  std::string to_json() const;
  // Replaces everything, or changes nothing.
  Result<void> from_json(std::string_view json);

 private:
  std::string system_;
  std::vector<ChatMessage> turns_;
  std::uint64_t revision_ = 0;
};

}  // namespace chasqui::cli
