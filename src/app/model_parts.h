// What one model is made of before there is a server: its weights, contexts, draft models and folders. All weights are
// loaded first, so that contexts are made knowing what memory is left. At start only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "api/core/embedding_service.h"
#include "api/llama_server/slot_persister.h"
#include "api/session/session_persister.h"
#include "app/config.h"
#include "engine/engine.h"
#include "model/loaded_model.h"

namespace chasqui {

// The folders of a model; null: not wanted. Each is a folder in the one that was named, since it is for the server's
// user alone.
struct Folders {
  std::shared_ptr<SnapshotFolder> snapshots;
  std::unique_ptr<SessionStore> sessions;
  std::unique_ptr<SlotFiles> slots;
};

struct ModelParts {
  const ServeConfig& config;
  LoadedModel model;
  Models contexts{};  // of the workers
  Models drafts{};    // … draft models of them; may be none
  Folders folders{};
  EmbeddingConfig embedding{};
};

// One for each of config.models, which outlives them; `how` has as many. Errors are told to a person.
Result<std::vector<ModelParts>> load_models(const ServeConfig& config, std::vector<LoadOptions> how);

}  // namespace chasqui
