#include "api/completions.h"

#include <algorithm>

#include "api/generation_fields.h"
#include "api/ids.h"
#include "api/openai_json.h"
#include "api/prompt.h"
#include "net/sse.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// What the routes of OpenAI's shape have in common, besides the prompt.
struct OpenAiBody {
  RequestDraft draft;
  AnswerHead head;
  bool stream = false;
};

// A key may promise less urgency than its holder asks for: the request is served, only not before others.
void read_common_fields(const Caller& caller, Fields& fields, RequestDraft& draft) {
  read_generation_fields(fields, draft);
  draft.service_class = std::max(draft.service_class, caller.most_urgent);
}

OpenAiBody read_openai_body(const Service& service, const Caller& caller, Fields& fields, std::string_view id_prefix) {
  OpenAiBody out;
  out.draft = new_draft(service, caller);
  read_common_fields(caller, fields, out.draft);
  refuse_unsupported(
      fields, {"logprobs", "top_logprobs", "n_probs", "grammar", "json_schema", "echo", "suffix", "functions", "lora"});
  for (const std::string_view name : {"n", "best_of"}) {
    if (fields.integer(name).value_or(1) != 1) fields.refuse(name, "1: this version gives one answer to a request");
  }
  if (const json::object* format = fields.object("response_format")) {
    Fields inner(*format, "response_format");
    if (inner.string("type").value_or("text") != "text") inner.refuse("type", "\"text\" in this version");
    if (!inner.ok()) fields.refuse(inner.error());
  }
  out.stream = fields.boolean("stream").value_or(false);
  if (const json::object* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    out.head.include_usage = inner.boolean("include_usage").value_or(false);
    if (!inner.ok()) fields.refuse(inner.error());
  }
  out.head.id = random_id(id_prefix);
  out.head.model = service.config.model_name;
  out.head.fingerprint = "chasqui-" + service.config.version;
  out.head.created = service.clock.unix_seconds();
  return out;
}

// Seed of this route: data: {"text": …} for each piece, data: [DONE] at the end.
class TextWriter final : public AnswerWriter {
 public:
  void text(const Event& event, std::string& out) override { frame(event.text, out); }
  void end(const Event& event, std::string& out) override {
    frame(event.text, out);
    net::append_sse_data_line(out, "[DONE]");
  }
  std::string whole(const std::string& text, const Event& finished) override {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    json.field("text", text);
    json.field("finish_reason", name(finished.reason));
    json.key("usage");
    write_usage(json, finished.usage);
    json.end_object();
    return out;
  }

 private:
  static void frame(std::string_view text, std::string& out) {
    if (text.empty()) return;
    out += "data: {\"text\":";
    append_json_string(out, text);
    out += "}\n\n";
  }
};

}  // namespace

Result<Answer> prepare_chat(const Service& service, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OpenAiBody common = read_openai_body(service, caller, fields, "chatcmpl-");
  const Chat chat = read_chat(fields);
  if (!fields.ok()) return fields.error();
  auto request = request_from_chat(service, chat, std::move(common.draft));
  if (!request) return request.error();
  return Answer{std::move(*request), common.stream, make_chat_writer(std::move(common.head))};
}

Result<Answer> prepare_completion(const Service& service, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  OpenAiBody common = read_openai_body(service, caller, fields, "cmpl-");
  const json::value* prompt = fields.any("prompt");
  if (prompt == nullptr) fields.refuse("prompt", "a string or an array of token ids");
  if (!fields.ok()) return fields.error();
  auto request = request_from_prompt(service, *prompt, std::move(common.draft));
  if (!request) return request.error();
  return Answer{std::move(*request), common.stream, make_completion_writer(std::move(common.head))};
}

Result<Answer> prepare_generate(const Service& service, const Caller& caller, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  // This route's own defaults: greedy over the whole vocabulary, 64 tokens, streaming.
  RequestDraft draft = new_draft(service, caller);
  draft.sampling.temperature = 0;
  draft.sampling.top_k = 0;
  draft.sampling.top_p = 1;
  draft.sampling.min_p = 0;
  draft.max_tokens = 64;
  read_common_fields(caller, fields, draft);
  if (const auto penalty = fields.number("rep_penalty")) draft.sampling.repeat_penalty = static_cast<float>(*penalty);
  const bool stream = fields.boolean("stream").value_or(true);
  const auto prompt = fields.string("prompt");
  if (!prompt) fields.refuse("prompt", "a string");
  if (!fields.ok()) return fields.error();
  auto request = request_from_prompt(service, json::value(*prompt), std::move(draft));
  if (!request) return request.error();
  return Answer{std::move(*request), stream, std::make_unique<TextWriter>()};
}

namespace {

Result<Permit> enter(Service& service, const net::HttpRequest& request, const Caller& caller) {
  const bool anonymous = caller.tenant.id == 0;
  Applicant applicant;
  applicant.tenant = caller.tenant.id;
  applicant.requests_max =
      anonymous ? service.config.anonymous_requests : caller.in_flight.value_or(service.config.tenant_requests);
  applicant.fingerprint = service.fingerprints.of(caller.tenant.id, request.path, request.body);
  return service.admission.enter(applicant, service.engine.load(), service.clock.now());
}

}  // namespace

net::Awaitable<void> handle_generation(Service& service, net::HttpExchange& exchange, PrepareAnswer prepare) {
  // The gate has let it in, but the key may have been taken off the list while the body came.
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  if (!caller) {
    Error error{ErrorCode::unauthorized, "Invalid API Key", ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  Result<Permit> permit = enter(service, exchange.request(), *caller);
  if (!permit) {
    Error error = permit.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  // The job owns the body: the client may leave, and the exchange end, while the pool still reads it.
  auto work = [&service, prepare, caller = *caller, body = exchange.take_body()] {
    return prepare(service, caller, body);
  };
  Result<Answer> answer = co_await service.offload.run(std::move(work));
  if (exchange.client_gone()) co_return;
  if (!answer) {
    Error error = answer.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  Answer ready = std::move(*answer);
  Permit held = std::move(*permit);
  co_await deliver_answer(service, exchange, std::move(ready), std::move(held));
}

}  // namespace chasqui
