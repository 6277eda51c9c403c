#include "api/openai/transcriptions.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "api/body/adapter_fields.h"
#include "api/body/constraint.h"
#include "api/body/generation_fields.h"
#include "api/body/media_intake.h"
#include "api/body/multipart.h"
#include "api/body/prompt.h"
#include "api/core/answer_reader.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/openai/openai_body.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "net/offload.h"
#include "net/sse.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// What stays text in a form, whatever it looks like.
constexpr std::array<std::string_view, 6> kTexts = {"model", "prompt", "language", "response_format", "user", "stop"};
constexpr std::size_t kLongestNumber = 32;

json::value value_of_field(std::string_view name, const FormPart& part) {
  json::value text(part.content);
  if (part.content.size() > kLongestNumber || std::ranges::find(kTexts, name) != kTexts.end()) return text;
  boost::system::error_code failed;
  json::value value = json::parse(part.content, failed);
  return !failed && (value.is_number() || value.is_bool()) ? value : text;
}

class TranscriptionWriter final : public AnswerWriter {
 public:
  TranscriptionWriter(AnswerFormatPtr format, bool as_json) : reader_(std::move(format)), as_json_(as_json) {}

  void text(const Event& event, std::string& out) override {
    for (const AnswerDelta& delta : reader_.read(event)) {
      if (delta.kind != AnswerDelta::Kind::content || delta.text.empty()) continue;
      out += "data: {\"type\":\"transcript.text.delta\",\"delta\":";
      append_json_string(out, delta.text);
      out += "}\n\n";
    }
  }
  void end(const Event& event, std::string& out) override {
    text(event, out);
    out += "data: ";
    JsonWriter json(out);
    write(json, event.usage, "transcript.text.done");
    out += "\n\n";
    net::append_sse_data_line(out, "[DONE]");
  }
  void hear(const Event& event) override { reader_.read(event); }
  std::string whole(const std::vector<Collected>& answers) override {
    if (!as_json_) return reader_.content() + '\n';
    std::string out;
    JsonWriter json(out);
    write(json, answers.front().finished.usage, {});
    return out;
  }
  std::string_view content_type() const override { return as_json_ ? "application/json" : "text/plain; charset=utf-8"; }

 private:
  void write(JsonWriter& json, const Usage& usage, std::string_view type) const {
    json.begin_object();
    if (!type.empty()) json.field("type", type);
    json.field("text", reader_.content());
    json.begin_object("usage");
    json.field("type", "tokens");
    json.field("input_tokens", usage.prompt);
    json.begin_object("input_tokens_details");
    json.field("cached_tokens", usage.cached);
    json.end_object();
    json.field("output_tokens", usage.completion);
    json.field("total_tokens", usage.prompt + usage.completion);
    json.end_object();
    json.key("timings");
    write_timings(json, usage);
    json.end_object();
  }

  AnswerReader reader_;
  const bool as_json_;
};

// The message that asks for the words of the sound.
Chat ask_about(const ServedModel& served, Fields& fields) {
  Chat chat = new_chat(served.config.defaults);
  const TranscriptionPrompt usual = served.model.chat_template->transcription_prompt();
  if (!usual.system.empty()) {
    ChatMessage& system = chat.messages.emplace_back();
    system.role = "system";
    system.content = usual.system;
  }
  ChatMessage question;
  question.role = "user";
  const auto prompt = fields.string("prompt");
  question.content = prompt && !prompt->empty() ? std::string(*prompt) : usual.user;
  if (const auto language = fields.string("language"); language && !language->empty()) {
    question.content += " (language: " + std::string(*language) + ')';
  }
  const json::value* const file = fields.any("file");
  if (file == nullptr) {
    fields.refuse("file", "a sound: WAV, MP3 or FLAC");
    return chat;
  }
  MediaIntake media(served.model.media.get(), served.config.defaults.media_folder);
  auto sound = media.take_file(*file, "file", MediaKind::sound);
  if (!sound) {
    fields.refuse(sound.error());
    return chat;
  }
  question.content += served.model.media->marker();
  question.media.push_back(std::move(*sound));
  chat.messages.push_back(std::move(question));
  collect_media(chat);
  return chat;
}

bool wants_json(Fields& fields) {
  const std::string_view format = fields.string("response_format").value_or("json");
  if (format != "json" && format != "text") {
    fields.refuse("response_format", "json or text: models that are asked in a chat say no times");
  }
  return format != "text";
}

}  // namespace

Result<std::string> json_of_form(std::string_view body, const std::string& boundary) {
  const auto parts = read_form(body, boundary);
  if (!parts) return parts.error();
  json::object out;
  for (const FormPart& part : *parts) {
    if (part.name == "file") {
      out["file"] = encode_base64(part.content);
      continue;
    }
    if (!is_valid_utf8(part.name) || !is_valid_utf8(part.content)) {
      const std::string name = is_valid_utf8(part.name) ? part.name : "the name of a part";
      return invalid_field(name, name + " must be UTF-8");
    }
    if (part.name.ends_with("[]")) {  // OpenAI's clients write a member of an array so
      const std::string name = part.name.substr(0, part.name.size() - 2);
      json::value& list = out[name];
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(value_of_field(name, part));
    } else {
      out[part.name] = value_of_field(part.name, part);
    }
  }
  return json::serialize(out);
}

net::Awaitable<Result<void>> read_form_as_json(Frontend& frontend, Caller caller, net::HttpExchange& exchange,
                                               std::string& body) {
  const std::string type(exchange.request().header("Content-Type").value_or(std::string_view()));
  constexpr std::string_view kForm = "multipart/form-data";
  if (!equals_ignoring_case(std::string_view(type).substr(0, kForm.size()), kForm)) co_return Result<void>();
  const auto boundary = form_boundary(type);
  if (!boundary) co_return boundary.error();
  net::OffloadTerms terms = reading_terms(caller, body);
  terms.gone = [&exchange] { return exchange.client_gone(); };
  auto work = [form = std::move(body), boundary = *boundary] { return json_of_form(form, boundary); };
  Result<std::string> read = co_await frontend.offload.run(std::move(work), std::move(terms));
  if (!read) co_return read.error();
  body = std::move(*read);
  co_return Result<void>();
}

Result<Answer> prepare_transcription(const ServedModel& served, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  RequestDraft draft = new_draft(served, caller);
  draft.sampling.temperature = 0;  // as OpenAI has it where a request says nothing
  read_common_fields(caller, fields, draft);
  read_adapters(served, fields, draft);
  read_grammar(fields, draft);
  refuse_unsupported(fields, {"include", "timestamp_granularities", "known_speaker_names"});
  const bool stream = fields.boolean("stream").value_or(false);
  const bool as_json = wants_json(fields);
  const Chat chat = ask_about(served, fields);
  const ReasoningWish reasoning = read_reasoning_budget(fields);
  if (!fields.ok()) return fields.error();
  auto made = requests_from_chat(served, chat, std::move(draft), 1, reasoning);
  if (!made) {
    Error error = made.error();
    if (error.field == "messages") error.field = "file";  // the request has no other part of a chat
    return error;
  }
  return answer_of(std::move(made->requests), stream, std::make_unique<TranscriptionWriter>(made->format, as_json));
}

}  // namespace chasqui
