// What every handler shares. Made by app/serve, outlives the loop and the offload pool; all members are either const
// or used on the loop, except where Engine and Tokenizer say "any thread".
#pragma once

#include <string>

#include "api/embedding_desk.h"
#include "api/fingerprint.h"
#include "api/generation.h"
#include "api/key_ring.h"
#include "api/reasoning_control.h"
#include "api/request_log.h"
#include "api/response_store.h"
#include "api/session_keeper.h"
#include "api/skipped_tools.h"
#include "api/slot_keeper.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "core/request.h"
#include "engine/adapter_shelf.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "engine/session_table.h"
#include "model/loaded_model.h"
#include "net/event_loop.h"
#include "net/frame_limits.h"
#include "net/http_limits.h"
#include "net/offload.h"
#include "net/web_policy.h"

namespace chasqui {

class KeptStreams;

struct ServiceConfig {
  std::string model_name;  // what clients see as `model`
  // In flight of one tenant, where its key says nothing; 0: no limit.
  std::size_t tenant_requests = kSizeLimit<"tenant_requests">;
  std::size_t anonymous_requests = 0;                   // … where there is one tenant; 0: no limit
  std::size_t tenant_sessions = 256;                    // open at once of one tenant; 0: no limit but that of all
  std::size_t anonymous_sessions = 0;                   // … of everybody together when there are no keys
  bool cache_prompt = true;                             // where a request does not say
  bool cache_shared = false;                            // between tenants
  bool show_slots = true;                               // GET /slots
  std::size_t cache_bytes = 0;                          // of snapshots; shown in /props
  std::uint64_t disk_cache_bytes = 0;                   // of files for what was computed; 0: there are none
  Duration ping_every = kTimeLimit<"silent_seconds">;   // silence after which a stream gets a comment
  std::size_t unread_max = kSizeLimit<"unread_bytes">;  // bytes that may wait for a client that does not read
  Duration drain_time{};                                // shown in /props
  net::HttpLimits http;                                 // … and these
  net::FrameLimits frames;                              // … and these
  std::string version;
  std::int64_t started_at = 0;  // Unix time, and since when the model is there; 0: as of now
  bool page = true;             // at "/"
  net::WebPolicy web{};         // what browsers are told
  std::string api_prefix{};     // in front of every path
  bool traces = false;          // a collector takes spans
};

struct Service {
  const ServiceConfig& config;
  const LoadedModel& model;
  const RequestLimits& limits;
  const MetricsPage& metrics;
  const Clock& clock;
  net::EventLoop& loop;
  net::OffloadPool& offload;
  Engine& engine;
  const KeyRing& keys;
  Admission& admission;
  const FingerprintMaker& fingerprints;
  StreamHub& streams;
  SessionTable& sessions;
  AdapterShelf& adapters;
  ResponseStore& responses;
  EmbeddingDesk& embeddings;
  SessionKeeper* keeper = nullptr;  // null: sessions end with the process
  RequestLog* requests = nullptr;   // null: nobody keeps a log of them
  KeptStreams* kept = nullptr;      // null: no stream can be resumed
  SlotKeeper* slots = nullptr;      // null: slots are not saved
  std::size_t step_watchers = 0;    // of /debug/steps
  ReasoningSwitches switches = {};  // of answers whose reasoning can be ended
  SkippedTools skipped_tools = {};  // what the log has said of them
};

// When clients are told that the model was made.
inline std::int64_t loaded_at(const Service& service) {
  return service.config.started_at != 0 ? service.config.started_at : service.clock.unix_seconds();
}

}  // namespace chasqui
