// A server that runs: every part, in the order in which they are made and, backwards, given up. Owned by app/serve;
// made, run and destroyed on one thread, which becomes the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/core/embedding_service.h"
#include "api/core/generation.h"
#include "api/core/idempotency_store.h"
#include "api/core/node.h"
#include "api/core/request_hash.h"
#include "api/core/request_log.h"
#include "api/core/served_model.h"
#include "api/core/skipped_tools.h"
#include "api/frames/frame_endpoint.h"
#include "api/llama_server/slot_persister.h"
#include "api/observe/span_exporter.h"
#include "api/openai/response_store.h"
#include "api/resume/kept_streams.h"
#include "api/session/session_persister.h"
#include "app/config.h"
#include "app/exit_guard.h"
#include "app/key_reload.h"
#include "app/listeners.h"
#include "app/log_file.h"
#include "app/log_writer.h"
#include "app/memory_return.h"
#include "app/session_sweep.h"
#include "app/settings.h"
#include "app/shutdown.h"
#include "app/tls_reload.h"
#include "app/worker_watch.h"
#include "net/frame_server.h"
#include "net/http_server.h"
#include "net/wakeup_listener.h"

namespace chasqui {

// The folders of the server; null: not wanted. Each is a folder in the one that was named, since it is for the server's
// user alone.
struct Folders {
  std::shared_ptr<SnapshotFolder> snapshots;
  std::unique_ptr<SessionStore> sessions;
  std::unique_ptr<SlotFiles> slots;
};

// What can fail before there is a server.
struct ServerParts {
  Listeners listeners;
  Models contexts;  // of the workers
  Models drafts;    // … draft models of them; may be none
  Folders folders;
  EmbeddingConfig embedding;
  std::optional<net::HttpTarget> collector;  // of spans
  net::TlsIdentity tls;                      // null: plain HTTP
};

class Server {
 public:
  // All but the parts outlive it. Starts the workers and brings sessions back.
  Server(const ServeConfig& config, const LoadedModel& model, ServerParts parts, KeyRing& keys, const LogMetrics& log,
         LogFile& log_file, ExitGuard& guard);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Opens its listeners and says so on standard output. Errors name the address.
  Result<void> open();
  // Until a signal ends it and everything that ran has ended.
  void run();

 private:
  EngineConfig engine_settings(ServerParts& parts) const;
  void follow_finished();
  void collect_spans(const std::optional<net::HttpTarget>& collector);
  void add_metrics(const LogMetrics& log);
  void follow_signals();
  void greet(const std::string& url) const;

  const ServeConfig& config_;
  const LoadedModel& model_;
  const Listeners listeners_;
  KeyRing& keys_;
  LogFile& log_file_;
  ExitGuard& guard_;

  const RealClock clock_;
  Wakeup wakeup_;
  MetricsPage metrics_;
  IdempotencyStore idempotency_;  // before the loop, whose coroutines use it until they go
  net::NetMetrics net_metrics_;
  net::EventLoop loop_;
  const ModelShape shape_;
  const RequestLimits limits_;
  const NodeConfig settings_;
  const ServedModelConfig model_settings_;
  Admission admission_;
  const RequestHasher request_hasher_;
  SkippedTools skipped_tools_;
  ResponseStore responses_;
  KeptStreams kept_;
  Engine engine_;
  SessionTable sessions_;
  std::optional<SessionPersister> persister_;
  StreamHub streams_;
  AdapterRegistry adapters_;
  RequestLog requests_;
  net::WakeupListener listener_;
  net::OffloadPool offload_;
  EmbeddingService embeddings_;
  Node node_;
  ServedModel served_;
  std::optional<SlotPersister> slots_;
  std::optional<SpanExporter> spans_;
  net::Router router_;
  std::optional<net::TlsEndpoint> tls_;
  net::HttpServer http_;
  FrameEndpoint door_;
  net::FrameMetrics frame_metrics_;
  net::FrameServer frames_;
  SessionSweep sweep_;
  MemoryReturn memory_;
  WorkerWatch watch_;
  KeyReload reload_;
  std::optional<TlsReload> tls_reload_;
  std::optional<Shutdown> shutdown_;
};

}  // namespace chasqui
