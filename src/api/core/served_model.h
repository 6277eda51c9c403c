// One model that the node serves, with everything that belongs to it alone: vocabulary and template, engine, limits,
// admission, sessions, adapters, embeddings. Made by the application; outlives the loop and the offload pool, unless
// another version replaces it: then it goes when nothing refers to it any more (ModelUse). All members are either const
// or used on the loop, except where Engine and Tokenizer say "any thread": what reads a body in the offload pool gets a
// const ServedModel and uses nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/core/reasoning_control.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "core/model_identity.h"
#include "core/request.h"
#include "core/request_defaults.h"
#include "engine/adapter_registry.h"
#include "model/loaded_model.h"

namespace chasqui {

class Admission;
class EmbeddingService;
class Engine;
class ResponseStore;
class SessionPersister;
class SessionSharing;
class SessionTable;
class SlotPersister;
class StreamHub;

struct ServedModelConfig {
  std::string name{};                  // what clients see as `model`
  std::vector<std::string> aliases{};  // names that it answers to, `name` among them; empty: that alone
  std::vector<std::string> tags{};
  std::string system_fingerprint{};    // "chasqui-0.1.0"
  std::size_t tenant_sessions = 256;   // open at once of one tenant; 0: no limit but that of all
  std::size_t anonymous_sessions = 0;  // … of everybody together when there are no keys
  bool cache_prompt = true;            // where a request does not say
  bool cache_shared = false;           // between tenants
  bool show_slots = true;              // GET /slots
  bool traces = false;                 // a collector takes spans of its requests
  std::size_t cache_bytes = 0;         // of snapshots; shown in /props
  std::uint64_t disk_cache_bytes = 0;  // of files for what was computed; 0: there are none
  std::uint64_t shared_cache_bytes = 0;  // … of what nodes share
  std::int64_t loaded_at = 0;          // Unix time, as clients are told
  RequestDefaults defaults{};          // of requests
};

struct ServedModel {
  const ServedModelConfig& config;
  const LoadedModel& model;
  const RequestLimits& limits;
  const Clock& clock;
  Engine& engine;
  Admission& admission;
  StreamHub& streams;
  SessionTable& sessions;
  AdapterRegistry& adapters;
  ResponseStore& responses;
  EmbeddingService& embeddings;
  SessionPersister* persister = nullptr;  // null: sessions end with the process
  SessionSharing* sharing = nullptr;      // null: sessions are this node's alone
  SlotPersister* slots = nullptr;         // null: slots are not saved
  std::size_t step_watchers = 0;          // of /debug/steps
  ReasoningSwitches switches = {};        // of answers whose reasoning can be ended
  ModelIdentity identity = {};            // whose KV it computes; zeros: none is kept beyond the process
  Checksum vocabulary = {};               // what its tokens mean; zeros: no version of it is another one's successor
  // Versions of the model that this one has replaced, and that still have requests; the newest has all of them.
  std::vector<ServedModel*> older = {};
  bool replaced = false;  // by another version: what only watches it ends
  std::size_t users = 0;  // ModelUses
  // For how long it stays loaded after its last use, as Answer::keep_alive; empty: whatever happens.
  std::function<void(Duration)> keep_loaded = {};
};

// Keeps a model from going while a handler, or an answer that outlives its handler, refers to it: one that was replaced
// goes when it has none, and no request. Loop thread.
class ModelUse {
 public:
  explicit ModelUse(ServedModel& served);
  ~ModelUse();
  ModelUse(const ModelUse&) = delete;
  ModelUse& operator=(const ModelUse&) = delete;

 private:
  ServedModel* const served_;
};

// Whether prompts may have such files.
bool takes(const ServedModel& served, MediaKind kind);

// Of whichever version of the model.
void cancel_request(ServedModel& served, RequestId request);

}  // namespace chasqui
