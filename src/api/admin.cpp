#include "api/admin.h"

#include <filesystem>

#include "api/answer.h"
#include "api/errors.h"
#include "api/generation_fields.h"
#include "api/limits.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

void write_sampling(JsonWriter& json, const SamplingParams& sampling) {
  json.begin_object();
  json.field("temperature", sampling.temperature);
  json.field("top_k", sampling.top_k);
  json.field("top_p", sampling.top_p);
  json.field("min_p", sampling.min_p);
  json.field("repeat_last_n", sampling.repeat_last_n);
  json.field("repeat_penalty", sampling.repeat_penalty);
  json.field("frequency_penalty", sampling.frequency_penalty);
  json.field("presence_penalty", sampling.presence_penalty);
  json.end_object();
}

const char* who_guesses(const SpeculationConfig& config) {
  if (config.guesses_max == 0) return "none";
  if (config.heads) return "heads";
  return config.draft_model ? "draft" : "ngram";
}

std::string props_body(const Service& service, bool paths) {
  const ModelInfo& info = service.model.info;
  const ModelShape& shape = service.engine.shape();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.key("default_generation_settings");
  json.begin_object();
  json.key("params");
  write_sampling(json, default_sampling(info));
  json.field("n_ctx", shape.cells_per_slot);
  json.end_object();
  json.field("total_slots", shape.slots);
  json.field("workers", service.engine.workers());
  json.field("model_alias", service.config.model_name);
  json.field("model_path", paths ? info.path : std::filesystem::path(info.path).filename().string());
  json.field("model_ftype", info.format);
  json.key("modalities");
  json.begin_object();
  json.field("vision", false);
  json.field("audio", false);
  json.end_object();
  json.field("chat_template", service.model.chat_template->source());
  json.field("bos_token", info.bos_text);
  json.field("eos_token", info.eos_text);
  json.field("build_info", "chasqui-" + service.config.version);
  json.field("is_sleeping", service.engine.sleeping());
  json.field("endpoint_slots", service.config.show_slots);
  json.key("kv");
  json.begin_object();
  json.field("layout", shape.unified ? "unified" : "stream");
  json.field("cells", shape.cells);
  json.field("cells_per_slot", shape.cells_per_slot);
  json.field("trims_anywhere", info.trims_anywhere());
  json.field("cuts_snapshots", shape.cuts_snapshots);
  json.end_object();
  json.key("speculation");
  json.begin_object();
  json.field("guesser", who_guesses(service.engine.speculation()));
  json.field("n_max", service.engine.speculation().guesses_max);
  json.end_object();
  json.key("lora");
  json.begin_array();
  for (const AdapterInfo& adapter : service.adapters.adapters()) json.string(adapter.name);
  json.end_array();
  json.key("limits");
  write_limits(json, service);
  json.end_object();
  return out;
}

// The list that llama-server adds for clients of Ollama.
void write_listed(JsonWriter& json, const Service& service) {
  json.key("models");
  json.begin_array();
  json.begin_object();
  for (const std::string_view key : {"name", "model"}) json.field(key, service.config.model_name);
  for (const std::string_view key : {"modified_at", "size", "digest", "description"}) json.field(key, "");
  json.field("type", "model");
  json.key("tags");
  json.begin_array();
  json.end_array();
  json.key("capabilities");
  json.begin_array();
  for (const std::string_view what : {"completion", "embedding"}) json.string(what);
  json.end_array();
  json.field("parameters", "");
  json.key("details");
  json.begin_object();
  json.field("parent_model", "");
  json.field("format", "gguf");
  json.field("family", service.model.info.architecture);
  json.field("quantization_level", service.model.info.format);
  json.end_object();
  json.end_object();
  json.end_array();
}

void write_model(JsonWriter& json, const Service& service) {
  const ModelInfo& info = service.model.info;
  json.begin_object();
  json.field("id", service.config.model_name);
  for (const std::string_view key : {"aliases", "tags"}) {
    json.key(key);
    json.begin_array();
    json.end_array();
  }
  json.field("object", "model");
  json.field("created", loaded_at(service));
  json.field("owned_by", "chasqui");
  json.key("meta");
  json.begin_object();
  json.field("vocab_type", info.vocabulary_type);
  json.field("n_vocab", info.vocabulary);
  json.field("n_ctx", service.engine.shape().cells_per_slot);
  json.field("n_ctx_train", info.context_trained);
  json.field("n_embd", info.embedding_length);
  json.field("n_params", info.parameters);
  json.field("size", info.size_bytes);
  json.field("ftype", info.format);
  json.end_object();
  json.end_object();
}

std::string name_of(const Service& service, const AdapterInfo& adapter) {
  return service.config.model_name + ":" + adapter.name;
}

void write_adapter(JsonWriter& json, const Service& service, const AdapterInfo& adapter) {
  json.begin_object();
  json.field("id", name_of(service, adapter));
  json.field("object", "model");
  json.field("created", loaded_at(service));
  json.field("owned_by", "chasqui");
  json.field("parent", service.config.model_name);
  json.end_object();
}

std::string models_body(const Service& service) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_listed(json, service);
  json.field("object", "list");
  json.key("data");
  json.begin_array();
  write_model(json, service);
  for (const AdapterInfo& adapter : service.adapters.adapters()) write_adapter(json, service, adapter);
  json.end_array();
  json.end_object();
  return out;
}

// Prometheus sends a list of what it takes, text first; a person who names JSON means it.
bool wants_json(const net::HttpRequest& request) {
  if (const auto format = request.query("format")) return *format == "json";
  const auto accept = request.header("Accept");
  return accept && accept->starts_with("application/json");
}

// What the names begin with; empty: all.
Result<std::string_view> names_wanted(const net::HttpRequest& request) {
  const auto names = request.query("names");
  if (!names || *names == "all") return std::string_view();
  for (const std::string_view prefix : {"chasqui_", "vllm:", "llamacpp:"}) {
    if (*names == prefix.substr(0, prefix.size() - 1)) return prefix;
  }
  return invalid_field("names", "names must be one of all, chasqui, vllm, llamacpp");
}

constexpr std::string_view kReaderStuck = "a thread that reads requests has been busy with one for a long time";

// Empty while all workers move.
std::string who_is_stuck(const Service& service) {
  const auto stuck = service.engine.stuck_worker(service.clock.now());
  if (!stuck) return {};
  const std::size_t workers = service.engine.workers();
  const std::string which =
      workers > 1 ? "worker " + std::to_string(*stuck) + " of " + std::to_string(workers) : "the worker";
  return which + " has not finished a step for a long time";
}

}  // namespace

net::Awaitable<void> handle_health(Service& service, net::HttpExchange& exchange) {
  std::string stuck = who_is_stuck(service);
  if (stuck.empty() && service.offload.stuck_threads(service.clock.now()) > 0) stuck = std::string(kReaderStuck);
  if (!stuck.empty()) {
    Error error{ErrorCode::unavailable, std::move(stuck), ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  std::string body = R"({"status":"ok"})";
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_ready(Service& service, net::HttpExchange& exchange) {
  if (service.engine.draining()) {
    Error error{ErrorCode::unavailable, "the server is shutting down", ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  if (!service.engine.alive(service.clock.now())) {
    co_await handle_health(service, exchange);
    co_return;
  }
  std::string body = R"({"status":"ready"})";
  co_await respond_json(exchange, std::move(body));
}

// Rendered here: it takes a tenth of a millisecond, and admission's numbers are the loop's.
net::Awaitable<void> handle_metrics(Service& service, net::HttpExchange& exchange) {
  if (wants_json(exchange.request())) {
    std::string body = service.metrics.render_json();
    co_await respond_json(exchange, std::move(body));
    co_return;
  }
  const auto prefix = names_wanted(exchange.request());
  if (!prefix) {
    Error error = prefix.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  net::HttpResponse response(200, "text/plain; version=0.0.4; charset=utf-8", service.metrics.render(*prefix));
  co_await exchange.respond(std::move(response));
}

net::Awaitable<void> handle_models(Service& service, net::HttpExchange& exchange) {
  std::string body = models_body(service);
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_model(Service& service, net::HttpExchange& exchange) {
  const std::string& id = exchange.param("id");
  std::string body;
  JsonWriter json(body);
  if (id == service.config.model_name) write_model(json, service);
  for (const AdapterInfo& adapter : service.adapters.adapters()) {
    if (body.empty() && id == name_of(service, adapter)) write_adapter(json, service, adapter);
  }
  if (body.empty()) {
    Error error{ErrorCode::not_found, "there is no model of this name; GET /v1/models lists those that there are",
                "model"};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_version(Service& service, net::HttpExchange& exchange) {
  std::string body = "{\"version\":";
  append_json_string(body, service.config.version);
  body += '}';
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_props(Service& service, net::HttpExchange& exchange) {
  std::string body = props_body(service, service.keys.is_admin(exchange.request()));
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_change_props(Service&, net::HttpExchange& exchange) {
  std::string body = error_body(501, "the properties of this server are set by its flags and cannot be changed");
  net::HttpResponse response(501, "application/json", std::move(body));
  co_await exchange.respond(std::move(response));
}

Result<std::string> health_answer(const Service& service) {
  if (service.offload.stuck_threads(service.clock.now()) > 0) {
    return Error{ErrorCode::unavailable, std::string(kReaderStuck), ""};
  }
  if (service.engine.alive(service.clock.now())) return std::string(R"({"status":"ok"})");
  return Error{ErrorCode::unavailable, "the model has not finished a step for a long time", ""};
}

std::string props_answer(const Service& service, const Caller& caller) {
  return props_body(service, service.keys.is_admin(caller));
}

}  // namespace chasqui
