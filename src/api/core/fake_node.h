// A node of one simulated model, for tests: everything that a handler may need. No loop runs unless the test runs it.
// One thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/core/embedding_service.h"
#include "api/core/generation.h"
#include "api/core/idempotency_store.h"
#include "api/core/key_ring.h"
#include "api/core/node.h"
#include "api/core/request_hash.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "api/openai/response_store.h"
#include "base/metrics.h"
#include "engine/admission.h"
#include "engine/engine.h"
#include "engine/session_table.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

// What belongs to one model. What it is given outlives it.
struct FakeModel {
  static std::unique_ptr<Model> context(const LoadedModel& model) {
    ModelConfig config;
    config.slots = 2;
    config.cells = 512;
    config.rows_max = 64;
    return std::move(*model.make(config));
  }

  FakeModel(const Clock& clock, net::EventLoop& loop, Wakeup& wakeup, std::string name, std::uint64_t first_request = 1)
      : config{.name = std::move(name), .system_fingerprint = "chasqui-1"},
        engine(engine_config(first_request), context(model), model.tokenizer, clock, wakeup),
        streams(engine, loop, 1 << 20),
        embeddings(model, loop, *EmbeddingService::configure(model, {}, limits_of(engine).context)),
        served{.config = config,
               .model = model,
               .limits = limits,
               .clock = clock,
               .engine = engine,
               .admission = admission,
               .streams = streams,
               .sessions = sessions,
               .adapters = adapters,
               .responses = responses,
               .embeddings = embeddings} {}

  static EngineConfig engine_config(std::uint64_t first_request) {
    EngineConfig out;
    out.first_request = first_request;
    return out;
  }
  static RequestLimits limits_of(const Engine& engine) {
    RequestLimits out;
    out.vocabulary = engine.shape().vocabulary;
    out.context = engine.shape().cells_per_slot;
    return out;
  }

  LoadedModel model = load_sim();
  ServedModelConfig config;
  Engine engine;
  StreamHub streams;
  RequestLimits limits = limits_of(engine);
  Admission admission{AdmissionConfig{}};
  SessionTable sessions{{.tokens = engine.shape().cells_per_slot - 1}, *model.tokenizer};
  AdapterRegistry adapters{model.info.adapters, true};
  ResponseStore responses;
  EmbeddingService embeddings;
  ServedModel served;
};

// What all models share.
struct FakeFrontend {
  RealClock clock;
  Wakeup wakeup;
  IdempotencyStore idempotency;  // before the loop, whose coroutines use it until they go
  net::NetMetrics net_metrics;
  net::EventLoop loop{net_metrics};
  net::OffloadPool offload{loop};
  MetricsPage metrics;
  KeyRing keys;
  RequestHasher request_hasher;
  SkippedTools skipped_tools;
  NodeConfig config;
  Node node{.config = config,
            .frontend = {.config = config.frontend,
                         .loop = loop,
                         .offload = offload,
                         .clock = clock,
                         .keys = keys,
                         .request_hasher = request_hasher,
                         .skipped_tools = skipped_tools,
                         .idempotency = idempotency},
            .metrics = metrics};
};

struct FakeNode : FakeFrontend, FakeModel {
  FakeNode() : FakeModel(clock, loop, wakeup, "sim") { node.models.add(served); }

  using FakeModel::config;
};

}  // namespace chasqui
