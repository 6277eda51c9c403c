#include "capi/readable_model.h"

#include "base/limits.h"
#include "model/llama_options.h"

namespace chasqui {
namespace {

EmbeddingConfig embedding_of(const SessionEngine& engine) {
  auto config = EmbeddingService::configure(engine.model(), {}, engine.limits().context);
  CHECK(config.has_value(), "without a wish for a pooling there is nothing to refuse");
  return *config;
}

}  // namespace

ServedModelConfig ReadableModel::config_of(const LoadedModel& model, const std::string& name) {
  ServedModelConfig out;
  out.name = name.empty() ? model.info.name : name;
  out.system_fingerprint = "chasqui-" CHASQUI_VERSION;
  out.defaults = LlamaOptions().defaults(model.info);
  return out;
}

ReadableModel::ReadableModel(SessionEngine& engine, const std::string& name)
    : config_(config_of(engine.model(), name)),
      streams_(engine.engine(), loop_, kSizeLimit<"unread_bytes">),
      adapters_(engine.model().info.adapters, true),
      embeddings_(engine.model(), loop_, embedding_of(engine)),
      served_{.config = config_,
              .model = engine.model(),
              .limits = engine.limits(),
              .clock = engine.clock(),
              .engine = engine.engine(),
              .admission = admission_,
              .streams = streams_,
              .sessions = engine.sessions(),
              .adapters = adapters_,
              .responses = responses_,
              .embeddings = embeddings_} {}

}  // namespace chasqui
