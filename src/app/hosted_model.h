// One model of a server that runs, with all that belongs to it alone, in the order in which it is made and, backwards,
// given up: what its ServedModel refers to. Owned by Server; made and destroyed on the loop's thread, and used there,
// except where Engine says "any thread".
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/core/embedding_service.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/request_log.h"
#include "api/core/served_model.h"
#include "api/llama_server/slot_persister.h"
#include "api/openai/response_store.h"
#include "api/session/session_persister.h"
#include "app/model_parts.h"
#include "app/session_sweep.h"
#include "app/settings.h"
#include "app/worker_watch.h"

namespace chasqui {

// What all models share; outlives them.
struct ModelHost {
  net::EventLoop& loop;
  const Clock& clock;
  Wakeup& wakeup;
  RequestLog& requests;
  const KeyRing& keys;
  std::size_t unread_max;  // NodeConfig::unread_max
};

class HostedModel {
 public:
  // Starts the workers and brings sessions back. `number` is none of another one's.
  HostedModel(ModelParts parts, std::size_t number, const ModelHost& host);
  HostedModel(const HostedModel&) = delete;
  HostedModel& operator=(const HostedModel&) = delete;

  ServedModel& served() { return served_; }
  const std::string& name() const { return settings_.name; }
  // What its workers said goes to its streams.
  void deliver() { streams_.deliver(); }
  // `labels` tell it from others, on counters and gauges; `name` does in metrics that others have as well.
  void add_metrics_to(MetricsPage& page, const std::string& name, const std::string& labels) const;
  void on_hang(std::function<void()> callback) { watch_.on_hang(std::move(callback)); }
  bool hangs() const { return watch_.hangs(); }
  // Its sessions are on disk when this returns. After the loop.
  void finish();

 private:
  void follow_finished(RequestLog& requests);

  const ServeConfig& config_;
  const LoadedModel model_;
  const Clock& clock_;
  const ModelShape shape_;
  const RequestLimits limits_;
  const ServedModelConfig settings_;
  Admission admission_;
  ResponseStore responses_;
  Engine engine_;
  SessionTable sessions_;
  std::optional<SessionPersister> persister_;
  StreamHub streams_;
  AdapterRegistry adapters_;
  EmbeddingService embeddings_;
  ServedModel served_;
  std::optional<SlotPersister> slots_;
  SessionSweep sweep_;
  WorkerWatch watch_;
};

}  // namespace chasqui
