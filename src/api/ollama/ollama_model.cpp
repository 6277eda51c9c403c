#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "api/body/fields.h"
#include "api/core/frontend.h"
#include "api/core/model_table.h"
#include "api/core/served_model.h"
#include "api/ollama/ollama.h"
#include "base/checksum.h"
#include "base/rfc3339.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

// Of Ollama's interface, not ours: clients refuse to talk to one that they think too old.
constexpr std::string_view kVersionSpoken = "0.12.6";

// "135M", "7.2B"
std::string short_count(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  const double unit = value >= 1e9 ? 1e9 : value >= 1e6 ? 1e6 : 1e3;
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.3g%c", value / unit,
                                 value >= 1e9   ? 'B'
                                 : value >= 1e6 ? 'M'
                                                : 'K');
  return {text.data(), static_cast<std::size_t>(size)};
}

void write_details(JsonWriter& json, const ModelInfo& info) {
  json.begin_object("details");
  json.field("parent_model", "");
  json.field("format", "gguf");
  json.field("family", info.architecture);
  json.begin_array("families");
  json.string(info.architecture);
  json.end_array();
  json.field("parameter_size", short_count(info.parameters));
  json.field("quantization_level", info.format);
  json.end_object();
}

// Twice, for clients that want as many digits as SHA-256 has.
std::string digits_of(std::string known) {
  std::string out;
  for (int half = 0; half < 2; ++half) {
    for (const std::byte byte : checksum(std::as_bytes(std::span(known)))) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      out += kDigits[std::to_integer<unsigned>(byte) >> 4];
      out += kDigits[std::to_integer<unsigned>(byte) & 15];
    }
    known += '\n';
  }
  return out;
}

// Ollama's is of the files of a model; this one, of what is known of it, is the same for the same model, too.
std::string digest_of(const ServedModel& served) {
  const ModelInfo& info = served.model.info;
  std::string known = served.config.name;
  for (const std::string_view text : {std::string_view(info.architecture), std::string_view(info.name),
                                      std::string_view(info.format), served.model.chat_template->source()}) {
    known += '\n';
    known += text;
  }
  for (const std::uint64_t number : {info.size_bytes, info.parameters, static_cast<std::uint64_t>(info.vocabulary)}) {
    known += '\n' + std::to_string(number);
  }
  return digits_of(std::move(known));
}

// One model of a list; open, so that more can follow.
void begin_model(JsonWriter& json, const ServedModel& served) {
  json.begin_object();
  json.field("name", served.config.name);
  json.field("model", served.config.name);
  json.field("size", served.model.info.size_bytes);
  json.field("digest", digest_of(served));
  write_details(json, served.model.info);
}

// … that was not loaded yet: its name and its file are all that is known.
void begin_unloaded(JsonWriter& json, const ModelEntry& entry) {
  json.begin_object();
  json.field("name", entry.name);
  json.field("model", entry.name);
  json.field("size", entry.bytes);
  json.field("digest", digits_of(entry.name + ' ' + std::to_string(entry.bytes)));
  write_details(json, {});
}

std::string tags_body(const ModelTable& models) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("models");
  for (const ModelEntry& entry : models.entries()) {
    if (entry.served != nullptr) {
      begin_model(json, *entry.served);
    } else {
      begin_unloaded(json, entry);
    }
    json.field("modified_at", rfc3339(entry.served != nullptr ? entry.served->config.loaded_at : 0));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out;
}

std::string running_body(const ModelTable& models) {
  // Where others decide when it is unloaded: a day from now, always.
  constexpr std::int64_t kDay = 24 * 60 * 60;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("models");
  for (const ServedModel* const served : models.all()) {
    const ModelStatus status = models.status(models.entry_of(*served));
    if (status.state != ModelState::ready && status.state != ModelState::draining) continue;
    begin_model(json, *served);
    const auto& stays = status.stays;
    const std::int64_t more = stays ? static_cast<std::int64_t>(std::ceil(to_seconds(*stays))) : kDay;
    json.field("expires_at", rfc3339(served->clock.unix_seconds() + more));
    json.field("size_vram", 0);
    json.field("context_length", served->engine.shape().cells_per_slot);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out;
}

void write_capabilities(JsonWriter& json, const ServedModel& served) {
  const std::string_view source = served.model.chat_template->source();
  json.begin_array("capabilities");
  json.string("completion");
  if (source.find("tools") != std::string_view::npos) json.string("tools");
  if (source.find("think") != std::string_view::npos) json.string("thinking");
  if (served.model.info.infill.present()) json.string("insert");
  if (takes(served, MediaKind::picture)) json.string("vision");
  if (takes(served, MediaKind::sound)) json.string("audio");
  if (served.model.make_embedder) json.string("embedding");
  json.end_array();
}

}  // namespace

Result<std::string> ollama_show(const ServedModel& served, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const auto model = fields.string("model");
  const auto name = fields.string("name");
  if (!model && !name) fields.refuse("model", "the name of a model");
  if (!fields.ok()) return fields.error();
  const ModelInfo& info = served.model.info;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("modelfile", "");
  json.field("parameters", "");
  json.field("template", served.model.chat_template->source());
  write_details(json, info);
  json.begin_object("model_info");
  json.field("general.architecture", info.architecture);
  json.field("general.basename", info.name);
  json.field("general.parameter_count", info.parameters);
  json.field(info.architecture + ".block_count", info.layers);
  json.field(info.architecture + ".context_length", served.engine.shape().cells_per_slot);
  json.field(info.architecture + ".embedding_length", info.embedding_length);
  json.field("tokenizer.ggml.model", info.vocabulary_type);
  json.end_object();
  write_capabilities(json, served);
  json.field("modified_at", rfc3339(served.config.loaded_at));
  json.end_object();
  return out;
}

Handled handle_ollama_tags(const ModelTable& models, Call call) {
  std::string body = tags_body(models);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_ollama_running(const ModelTable& models, Call call) {
  std::string body = running_body(models);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_ollama_version(Call call) {
  std::string body = "{\"version\":\"" + std::string(kVersionSpoken) + "\",\"chasqui\":";
  append_json_string(body, call.frontend.config.version);
  body += '}';
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
