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
#include "base/checksum.h"
#include "base/clock.h"
#include "base/file_stamp.h"
#include "base/flag.h"
#include "engine/engine.h"
#include "model/loaded_model.h"

namespace chasqui {

// The folders of a model; null: not wanted. Each is a folder in the one that was named, since it is for the server's
// user alone.
struct Folders {
  std::shared_ptr<SnapshotFolder> snapshots;
  SharedSnapshotStores shared_snapshots;      // beside snapshots, where nodes share them
  std::shared_ptr<EncodingFolder> encodings;  // beside snapshots, where a model reads pictures or sounds, or did
  std::unique_ptr<SessionStore> sessions;
  std::shared_ptr<SharedSessionStore> shared_sessions;  // in its place
  std::shared_ptr<SlotFiles> slots;
};

// The version of a model that another one is to replace, and what it has that there can be only once.
struct Predecessor {
  std::shared_ptr<SnapshotFolder> snapshots;
  std::shared_ptr<EncodingFolder> encodings;
  std::shared_ptr<SlotFiles> slots;
  std::uint64_t frees = 0;          // bytes of memory, when it goes
  std::uint64_t first_request = 0;  // of the next version: the number of its first request
};

struct ModelComputing;

struct ModelParts {
  const ServeConfig& config;
  LoadedModel model;
  Models contexts{};  // of the workers
  Models drafts{};    // … draft models of them; may be none
  Folders folders{};
  EmbeddingConfig embedding{};
  Duration trial{};                            // what trying it took before
  Checksum vocabulary{};                       // model/vocabulary_identity
  ModelIdentity identity{};                    // whose KV it computes; zeros: none is kept beyond the process
  std::optional<FileStamp> stamp{};            // of its file; none: it has none
  std::uint64_t needs = 0;                     // bytes of memory; 0: not known
  std::shared_ptr<const ServeConfig> owned{};  // `config`, where that is not one of the server's
  // Its workers, once they have begun: then they have `model`, `contexts` and `drafts`.
  std::shared_ptr<ModelComputing> computing{};
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

// One more while others are served, or one of several that may fail. `config` outlives it; `stop` ends it early. Where
// it replaces another version, it was looked at before, and takes over the folders of that one when all else is there.
Result<ModelParts> load_model(const ServeConfig& config, LoadOptions how, const Flag& stop = {},
                              const Predecessor* before = nullptr);

// Whether a file can replace what is served: that it is there, fits, and can be loaded, which is tried in a process of
// its own. Returns the bytes of memory that it will need; 0: not known.
Result<std::uint64_t> look_at_model(const ServeConfig& config, const Flag& stop);

}  // namespace chasqui
