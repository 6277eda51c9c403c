// Ollama's dialect, since half of the desktop clients speak it: POST /api/chat and /api/generate, whose streams are
// lines of JSON, and what clients ask about models. Bodies become the same Chat and RequestDraft as everybody's. The
// prepare functions run on any thread and only read `served`; the writers and the handlers belong to the loop.
//
// Where there is one model, it answers to every name, as on the other routes.
#pragma once

#include <cstdint>
#include <string>

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "model/chat_template.h"

namespace chasqui {

// A chat without messages, and a prompt that is empty, only ask for the model to be loaded: Answer::ready.
Result<Answer> prepare_ollama_chat(const ServedModel& served, const Caller& caller, const std::string& body);
Result<Answer> prepare_ollama_generate(const ServedModel& served, const Caller& caller, const std::string& body);

// Reads `messages`, `tools` and `think`; mistakes are left in `fields`.
Chat read_ollama_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media);

enum class OllamaShape { chat, generate };
// What its writer needs to know of one answer.
struct OllamaHead {
  OllamaShape shape = OllamaShape::chat;
  std::string model;
  std::string created_at;                // the same in all lines
  const Tokenizer* tokenizer = nullptr;  // with logprobs
  RequestPtr context = nullptr;          // its tokens and those of the answer are told as `context`; null: they are not
};
std::unique_ptr<AnswerWriter> make_ollama_writer(OllamaHead head, AnswerFormatPtr format);
// The answer to who only wants the model loaded, or unloaded, which it never is.
std::string ollama_loaded(OllamaShape shape, std::string_view model, std::string_view created_at, bool unload);

Handled handle_ollama_tags(const ModelTable& models, Call call);
Handled handle_ollama_running(const ModelTable& models, Call call);
Handled handle_ollama_version(Call call);
Result<std::string> ollama_show(const ServedModel& served, const std::string& body);

extern const Dialect kOllama;
// {"error":"…"}
std::string ollama_error_body(std::string_view message);

}  // namespace chasqui
