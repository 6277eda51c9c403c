// What one model is made of before it is served: its weights, contexts, draft models and folders. At start, and on the
// thread that loads one later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/embedding_service.h"
#include "api/llama_server/slot_persister.h"
#include "api/session/session_persister.h"
#include "app/config.h"
#include "base/clock.h"
#include "base/flag.h"
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
  Duration trial{};  // what trying it took before
};

// One that the node knows, whether it is loaded yet or not.
struct ListedModel {
  const ServeConfig& config;
  LoadOptions how;
  std::optional<ModelParts> parts{};
  std::string failure{};    // why there are none
  std::uint64_t needs = 0;  // bytes of memory once it is loaded; 0: not known
};

// One for each of config.models, which outlives them; `how` has as many. With models on demand only those that are to
// be there at start have parts, or else the first that can be loaded. Errors are told to a person.
Result<std::vector<ListedModel>> load_models(const ServeConfig& config, std::vector<LoadOptions> how);

// One more while others are served, or one of several that may fail. `config` outlives it; `stop` ends it early.
Result<ModelParts> load_model(const ServeConfig& config, LoadOptions how, const Flag& stop = {});

}  // namespace chasqui
