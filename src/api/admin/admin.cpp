#include "api/admin/admin.h"

#include <algorithm>
#include <filesystem>

#include "api/admin/limits.h"
#include "api/body/adapter_fields.h"
#include "api/body/generation_fields.h"
#include "api/body/prompt_forms.h"
#include "api/core/answer.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/node.h"
#include "api/core/served_model.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// What holds for a request that says nothing.
void write_unsaid(JsonWriter& json, const ServedModel& served) {
  Request request;
  request.sampling = served.config.defaults.sampling;
  request.stop = served.config.defaults.stop;
  request.max_tokens = served.limits.max_tokens_default;
  write_generation_settings(json, request, false);
}

const char* drafter_name(const SpeculationConfig& config) {
  if (config.draft_tokens_max == 0) return "none";
  if (config.heads) return "heads";
  return config.draft_model ? "draft" : "ngram";
}

// What clients of llama-server's router look for.
void write_architecture(JsonWriter& json, const ServedModel& served) {
  json.begin_object("architecture");
  json.begin_array("input_modalities");
  json.string("text");
  if (takes(served, MediaKind::picture)) json.string("image");
  if (takes(served, MediaKind::sound)) json.string("audio");
  json.end_array();
  json.begin_array("output_modalities");
  json.string("text");
  json.end_array();
  json.end_object();
}

std::string props_body(const Node& node, const ServedModel& served, bool paths) {
  const ModelInfo& info = served.model.info;
  const ModelShape& shape = served.engine.shape();
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_object("default_generation_settings");
  json.key("params");
  write_unsaid(json, served);
  json.field("n_ctx", shape.cells_per_slot);
  json.end_object();
  json.field("total_slots", shape.slots);
  json.field("workers", served.engine.workers());
  json.field("model_alias", served.config.name);
  json.field("model_path", paths ? info.path : std::filesystem::path(info.path).filename().string());
  json.field("model_ftype", info.format);
  json.begin_object("modalities");
  json.field("vision", takes(served, MediaKind::picture));
  json.field("audio", takes(served, MediaKind::sound));
  json.end_object();
  if (served.model.media) json.field("media_marker", kMediaMarker);
  json.field("chat_template", served.model.chat_template->source());
  json.field("bos_token", info.bos_text);
  json.field("eos_token", info.eos_text);
  json.field("build_info", served.config.system_fingerprint);
  json.field("is_sleeping", served.engine.sleeping());
  json.field("endpoint_slots", served.config.show_slots);
  json.begin_object("kv");
  json.field("layout", shape.unified ? "unified" : "stream");
  json.field("cells", shape.cells);
  json.field("cells_per_slot", shape.cells_per_slot);
  json.field("trims_anywhere", info.trims_anywhere());
  json.field("cuts_snapshots", shape.cuts_snapshots);
  json.field("shifts", served.limits.shifts);
  json.end_object();
  json.begin_object("speculation");
  json.field("drafter", drafter_name(served.engine.speculation()));
  json.field("n_max", served.engine.speculation().draft_tokens_max);
  json.end_object();
  json.begin_array("lora");
  const AdapterListPtr list = served.adapters.list();
  for (const ListedAdapter& adapter : list->all()) json.string(adapter.info.name);
  json.end_array();
  json.key("limits");
  write_limits(json, node, served);
  json.end_object();
  return out;
}

// In the list that llama-server adds for clients of Ollama.
void write_listed(JsonWriter& json, const ModelEntry& entry) {
  const std::string family = entry.served != nullptr ? entry.served->model.info.architecture : "";
  const std::string format = entry.served != nullptr ? entry.served->model.info.format : "";
  json.begin_object();
  for (const std::string_view key : {"name", "model"}) json.field(key, entry.name);
  for (const std::string_view key : {"modified_at", "size", "digest", "description"}) json.field(key, "");
  json.field("type", "model");
  json.begin_array("tags");
  json.string("");
  json.end_array();
  json.begin_array("capabilities");
  for (const std::string_view what : {"completion", "embedding"}) json.string(what);
  if (entry.served != nullptr && entry.served->model.media) json.string("multimodal");
  json.end_array();
  json.field("parameters", "");
  json.begin_object("details");
  json.field("parent_model", "");
  json.field("format", "gguf");
  json.field("family", family);
  json.begin_array("families");
  json.string(family);
  json.end_array();
  json.field("parameter_size", "");
  json.field("quantization_level", format);
  json.end_object();
  json.end_object();
}

void write_names(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.begin_array(key);
  for (const std::string& name : names) json.string(name);
  json.end_array();
}

// As llama-server's router says it.
void write_status(JsonWriter& json, const ModelStatus& status) {
  const bool failed = status.state == ModelState::failed;
  json.begin_object("status");
  json.field("value", name(failed ? ModelState::unloaded : status.state));
  if (failed) {
    json.field("failed", true);
    json.field("reason", status.reason);
  }
  if (status.state == ModelState::loading) json.field("progress", status.progress);
  if (status.stays) json.field("unloads_in_s", to_seconds(*status.stays));
  if (!status.on_demand) json.field("stays", true);
  json.end_object();
}

void write_model(JsonWriter& json, const ModelEntry& entry, const ModelStatus& status) {
  json.begin_object();
  json.field("id", entry.name);
  write_names(json, "aliases", entry.aliases);
  write_names(json, "tags", entry.tags);
  json.field("object", "model");
  json.field("created", entry.served != nullptr ? entry.served->config.loaded_at : 0);
  json.field("owned_by", "chasqui");
  write_status(json, status);
  if (entry.needs > 0) json.field("memory_bytes", entry.needs);
  if (entry.served != nullptr) {
    const ModelInfo& info = entry.served->model.info;
    write_architecture(json, *entry.served);
    json.begin_object("meta");
    json.field("vocab_type", info.vocabulary_type);
    json.field("n_vocab", info.vocabulary);
    json.field("n_ctx", entry.served->engine.shape().cells_per_slot);
    json.field("n_ctx_train", info.context_trained);
    json.field("n_embd", info.embedding_length);
    json.field("n_params", info.parameters);
    json.field("size", info.size_bytes);
    json.field("ftype", info.format);
    json.end_object();
  }
  json.end_object();
}

// Clients that load one look for its name, as vLLM lists it.
std::string name_of(const ServedModel& served, const AdapterInfo& adapter) {
  return adapter.at_run_time ? adapter.name : served.config.name + ":" + adapter.name;
}

void write_adapter(JsonWriter& json, const ServedModel& served, const AdapterInfo& adapter, bool paths) {
  json.begin_object();
  json.field("id", name_of(served, adapter));
  json.field("object", "model");
  json.field("created", served.config.loaded_at);
  json.field("owned_by", "chasqui");
  json.field("root", path_of_adapter(adapter, paths));
  json.field("parent", served.config.name);
  json.end_object();
}

std::string models_body(const ModelTable& models, bool paths) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("models");
  for (const ModelEntry& entry : models.entries()) write_listed(json, entry);
  json.end_array();
  json.field("object", "list");
  json.begin_array("data");
  for (const ModelEntry& entry : models.entries()) {
    write_model(json, entry, models.status(entry));
    if (entry.served == nullptr) continue;
    const AdapterListPtr list = entry.served->adapters.list();
    for (const ListedAdapter& adapter : list->all()) write_adapter(json, *entry.served, adapter.info, paths);
  }
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

// Empty while all workers of all models move, and so do the threads of the pool.
std::string find_stuck(const Node& node) {
  const TimePoint now = node.frontend.clock.now();
  for (const ServedModel* const served : node.models.all_versions()) {
    const auto stuck = served->engine.stuck_worker(now);
    if (!stuck) continue;
    const std::size_t workers = served->engine.workers();
    std::string which =
        workers > 1 ? "worker " + std::to_string(*stuck) + " of " + std::to_string(workers) : "the worker";
    if (node.models.all().size() > 1) which += " of " + served->config.name;
    return which + " has not finished a step for a long time";
  }
  if (node.frontend.offload.stuck_threads(now) == 0) return {};
  return std::string(kReaderStuck);
}

}  // namespace

Handled handle_health(const Node& node, Call call) {
  Result<std::string> answer = health_answer(node);
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

// Rendered here: it takes a tenth of a millisecond, and admission's numbers are the loop's.
Handled handle_metrics(const Node& node, Call call) {
  if (wants_json(call.exchange.request())) {
    std::string body = node.metrics.render_json();
    co_await respond_json(call.exchange, std::move(body));
    co_return Result<void>();
  }
  const auto prefix = names_wanted(call.exchange.request());
  if (!prefix) co_return prefix.error();
  net::HttpResponse response(200, "text/plain; version=0.0.4; charset=utf-8", node.metrics.render(*prefix));
  co_await call.exchange.respond(std::move(response));
  co_return Result<void>();
}

Handled handle_models(const ModelTable& models, Call call) {
  std::string body = models_body(models, call.frontend.keys.is_admin(call.caller));
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_model(const ModelTable& models, Call call) {
  const std::string& id = call.exchange.param("id");
  std::string body;
  JsonWriter json(body);
  for (const ModelEntry& entry : models.entries()) {
    const bool named = id == entry.name || std::ranges::find(entry.aliases, id) != entry.aliases.end();
    if (body.empty() && named) write_model(json, entry, models.status(entry));
  }
  const bool paths = call.frontend.keys.is_admin(call.caller);
  for (const ServedModel* const served : models.all()) {
    const AdapterListPtr list = served->adapters.list();
    for (const ListedAdapter& adapter : list->all()) {
      const bool same = id == name_of(*served, adapter.info) || id == served->config.name + ":" + adapter.info.name;
      if (body.empty() && same) write_adapter(json, *served, adapter.info, paths);
    }
  }
  for (const ServedModel* const served : models.all()) {  // by its name alone, as a request may say it
    const AdapterListPtr list = served->adapters.list();
    const auto adapter = list->find(id);
    if (body.empty() && adapter) write_adapter(json, *served, (*list)[*adapter], paths);
  }
  if (body.empty()) {
    co_return Error{ErrorCode::not_found, "there is no model of this name; GET /v1/models lists those that there are",
                    "model"};
  }
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_version(Call call) {
  std::string body = "{\"version\":";
  append_json_string(body, call.frontend.config.version);
  body += '}';
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_props(const Node& node, Call call) {
  std::string body = props_answer(node, call.served, call.caller);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_change_props(Call) {
  co_return Error{ErrorCode::not_supported, "the properties of this server are set by its flags and cannot be changed",
                  ""};
}

Result<std::string> health_answer(const Node& node) {
  std::string stuck = find_stuck(node);
  if (!stuck.empty()) return Error{ErrorCode::unavailable, std::move(stuck), ""};
  return std::string(R"({"status":"ok"})");
}

std::string props_answer(const Node& node, const ServedModel& served, const Caller& caller) {
  return props_body(node, served, node.frontend.keys.is_admin(caller));
}

}  // namespace chasqui
