// A model of a SessionEngine as what reads bodies wants to see it. Those readers use what is constant of a ServedModel
// and its sessions; the other parts, which belong to routes and their loop, are there and at rest. Owned by the engine
// of chasqui.h, used by its thread.
#pragma once

#include <string>

#include "api/core/embedding_service.h"
#include "api/core/generation.h"
#include "api/core/served_model.h"
#include "api/openai/response_store.h"
#include "engine/admission.h"
#include "engine/session_engine.h"
#include "net/event_loop.h"

namespace chasqui {

class ReadableModel {
 public:
  // `engine` outlives it. No name: as the model says.
  ReadableModel(SessionEngine& engine, const std::string& name);
  ReadableModel(const ReadableModel&) = delete;
  ReadableModel& operator=(const ReadableModel&) = delete;

  const ServedModel& served() const { return served_; }

 private:
  static ServedModelConfig config_of(const LoadedModel& model, const std::string& name);

  const ServedModelConfig config_;
  net::NetMetrics net_metrics_;
  net::EventLoop loop_{net_metrics_};  // never runs
  Admission admission_{AdmissionConfig{}};
  StreamHub streams_;
  AdapterRegistry adapters_;
  ResponseStore responses_;
  EmbeddingService embeddings_;
  const ServedModel served_;
};

}  // namespace chasqui
