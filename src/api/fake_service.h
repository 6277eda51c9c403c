// Everything that a handler may need, with the simulated model behind it, for tests that read bodies: nothing is ever
// submitted, and no loop runs. One thread.
#pragma once

#include <memory>
#include <utility>

#include "api/service.h"

namespace chasqui {

struct FakeService {
  static std::unique_ptr<Model> context(const LoadedModel& model) {
    ModelConfig config;
    config.slots = 2;
    config.cells = 512;
    config.rows_max = 64;
    return std::move(*model.make(config));
  }

  FakeService() {
    limits.vocabulary = engine.shape().vocabulary;
    limits.context = engine.shape().cells_per_slot;
  }

  RealClock clock;
  Wakeup wakeup;
  net::NetMetrics net_metrics;
  net::EventLoop loop{net_metrics};
  net::OffloadPool offload{loop};
  LoadedModel model = load_sim();
  Engine engine{EngineConfig{}, context(model), model.tokenizer, clock, wakeup};
  StreamHub streams{engine, loop, 1024};
  ServiceConfig config{.model_name = "sim", .http = {}, .frames = {}, .version = "1"};
  RequestLimits limits;
  MetricsPage metrics;
  KeyRing keys;
  Admission admission{AdmissionConfig{}};
  FingerprintMaker fingerprints;
  SessionTable sessions{{.tokens = engine.shape().cells_per_slot - 1}, *model.tokenizer};
  AdapterShelf adapters{model.info.adapters, true};
  ResponseStore responses;
  EmbeddingDesk embeddings{model, loop, *EmbeddingDesk::configure(model, {}, limits.context)};
  Service service{config, model,     limits,       metrics, clock,    loop,     offload,   engine,
                  keys,   admission, fingerprints, streams, sessions, adapters, responses, embeddings};
};

}  // namespace chasqui
