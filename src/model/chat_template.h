// Messages to the prompt text that a chat model was trained on. Const and thread-safe; rendering runs a small
// program, so it belongs in the offload pool, never on the loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/media.h"
#include "model/answer_parser.h"

namespace chasqui {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text
};

struct ChatMessage {
  std::string role;     // system, developer, user, assistant, tool
  std::string content;  // the whole text; of several parts with line breaks between them
  std::string reasoning;
  std::string name;                  // of the tool, with role tool
  std::string tool_call_id;          // with role tool
  std::vector<ToolCall> tool_calls;  // with role assistant
  // The content as the client cut it, for templates that write parts their own way; empty when it is one text, or when
  // pictures or sounds stand in it.
  std::vector<std::string> parts;
  std::vector<MediaFilePtr> media;  // in the order in which MediaReader::marker() stands in the content

  void add_part(std::string_view text) {
    if (!content.empty()) content += '\n';
    content += text;
    parts.emplace_back(text);
  }
};

struct Tool {
  std::string name;
  std::string description;
  std::string parameters;  // JSON schema text
};

enum class ToolChoice {
  automatic,  // the model decides
  none,       // it is shown the tools and may not call them
  required,   // it calls at least one
};

// Which part of an assistant's last message the model goes on with.
enum class Continuation {
  automatic,  // the reasoning where there is nothing else, else the content
  content,
  reasoning,
};

struct Chat {
  std::vector<ChatMessage> messages;  // not empty
  std::vector<Tool> tools;
  std::vector<std::string> skipped_tools;  // types of tools that the model is not shown, for it cannot call them
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string only_tool;            // the one that has to be called; empty: as tool_choice says
  std::vector<MediaFilePtr> media;  // of all messages: in the order in which MediaReader::marker() stands in them
  bool parallel_tool_calls = true;  // more than one call in an answer
  bool split_reasoning = false;     // false: reasoning stays in the content, as the model writes it
  bool parse_answer = true;         // false: all of it is content, and no tool can be called
  std::optional<bool> enable_thinking;
  std::map<std::string, std::string> template_args;  // JSON text by name, for the template's own switches
  std::string json_schema;                           // JSON text; the answer has to obey it. Empty: none
  bool add_generation_prompt = true;
  // When the last message is an assistant's, it is left open and the model goes on with it.
  bool continue_final_message = false;
  Continuation continuation = Continuation::automatic;
};

// When a lazy grammar begins to hold: where the text first has `text`, or where the pattern first matches.
struct GrammarTrigger {
  bool pattern = false;
  std::string text;
};

// A prompt, and what is known of the answer to it.
struct PreparedChat {
  std::string prompt;
  std::string answer_begin;   // the end of the prompt: what the template has written of the answer already
  std::string grammar;        // GBNF that the answer has to obey, from answer_begin on; empty: none
  bool grammar_lazy = false;  // … only from a trigger on
  std::vector<GrammarTrigger> triggers;
  std::vector<std::string> markers;  // texts of control tokens that the format needs to see
  std::vector<std::string> stops;    // where an answer ends, beside the end-of-generation token
  std::string thinking_begin;        // of the reasoning; empty when the model does not think
  std::vector<std::string> thinking_ends;
  AnswerFormatPtr format;  // null: the answer is content as it stands
};

// What asks a model for the words of a sound, which stands behind it.
struct TranscriptionPrompt {
  std::string system;  // empty: none
  std::string user;
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  virtual TranscriptionPrompt transcription_prompt() const { return {"", "Transcribe audio to text"}; }

  // Errors as render(). The default is render() and nothing else.
  virtual Result<PreparedChat> prepare(const Chat& chat) const {
    auto prompt = render(chat);
    if (!prompt) return prompt.error();
    PreparedChat prepared;
    prepared.prompt = std::move(*prompt);
    return prepared;
  }

  // Template errors (a role that the template refuses, say) come back as invalid_request on `messages`.
  virtual Result<std::string> render(const Chat& chat) const = 0;

  // The template's source; empty when there is none.
  virtual std::string_view source() const = 0;
};

}  // namespace chasqui
