// A server that runs: every part, in the order in which they are made and, backwards, given up. Owned by app/serve;
// made, run and destroyed on one thread, which becomes the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/idempotency_store.h"
#include "api/core/node.h"
#include "api/core/request_hash.h"
#include "api/core/request_log.h"
#include "api/core/skipped_tools.h"
#include "api/delivery/kept_streams.h"
#include "api/frames/frame_endpoint.h"
#include "api/observe/span_exporter.h"
#include "app/adapter_keeper.h"
#include "app/batch_service.h"
#include "app/config.h"
#include "app/exit_guard.h"
#include "app/hosted_model.h"
#include "app/key_reload.h"
#include "app/kv_publisher.h"
#include "app/link_service.h"
#include "app/listeners.h"
#include "app/log_file.h"
#include "app/log_writer.h"
#include "app/memory_return.h"
#include "app/model_keeper.h"
#include "app/model_parts.h"
#include "app/record_writer.h"
#include "app/rpc_peers.h"
#include "app/settings.h"
#include "app/shutdown.h"
#include "app/tls_reload.h"
#include "net/agent_port.h"
#include "net/frame_server.h"
#include "net/freeing_queue.h"
#include "net/http_server.h"
#include "net/wakeup_listener.h"

namespace chasqui {

// What can fail before there is a server.
struct ServerParts {
  Listeners listeners;
  std::vector<ListedModel> models;
  std::optional<net::HttpTarget> collector;  // of spans
  net::TlsIdentity tls;                      // null: plain HTTP
  std::shared_ptr<JobFolder> jobs;           // null: there are no files and no batches
  std::unique_ptr<LineQueue> queue;          // of their lines; null: this node runs them all
  RecordWriter* recorder = nullptr;          // outlives the server; null: nothing is recorded
  KvPublisher* publisher = nullptr;          // likewise; null: nothing is published
};

class Server final : private ModelHosting, private AdapterHosting {
 public:
  // All but the parts outlive it. Starts the workers of all models and brings sessions back.
  Server(const ServeConfig& config, ServerParts parts, KeyRing& keys, const LogMetrics& log, LogFile& log_file,
         ExitGuard& guard);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Opens its listeners and says so on standard output. Errors name the address.
  Result<void> open();
  // Until a signal ends it and everything that ran has ended.
  void run();

 private:
  void add_models(std::vector<ListedModel> listed);
  void begin(ModelParts& parts, std::size_t number, const Predecessor* before) override;
  ServedModel& host(ModelParts parts, ServedModel* before) override;
  Predecessor predecessor(const ServedModel& model) const override;
  std::shared_ptr<const void> release(const ServedModel& model) override;
  void adapter_came(const ServedModel& model, std::int32_t place, const std::string& name) override;
  void adapter_went(const ServedModel& model, std::int32_t place) override;
  HostedModel& hosted(const ServedModel& model) const;
  void add_metrics_of(HostedModel& model);
  void fit_metrics();
  void deliver();
  void collect_spans(const std::optional<net::HttpTarget>& collector);
  void add_metrics(const LogMetrics& log);
  void show_energy();
  void follow_signals();
  void follow_hangs();
  void follow_hang(HostedModel& model);
  void leave();
  void told_to_stop();
  Duration time_to_keep();
  void lose(const std::string& peers);
  void greet(const std::string& url) const;

  const ServeConfig& config_;
  const Listeners listeners_;
  KeyRing& keys_;
  LogFile& log_file_;
  ExitGuard& guard_;
  RecordWriter* const recorder_;
  KvPublisher* const publisher_;

  const RealClock clock_;
  Wakeup wakeup_;
  MetricsPage metrics_;
  IdempotencyStore idempotency_;  // before the loop, whose coroutines use it until they go
  net::NetMetrics net_metrics_;
  net::EventLoop loop_;
  const NodeConfig settings_;
  const RequestHasher request_hasher_;
  SkippedTools skipped_tools_;
  KeptStreams kept_;
  RequestLog requests_;
  std::vector<std::unique_ptr<HostedModel>> models_;  // also versions that were replaced, until they go
  net::WakeupListener listener_;
  net::OffloadPool offload_;
  net::FreeingQueue freeing_;
  std::optional<LinkService> links_;  // none: clients send their pictures themselves
  Node node_;
  std::optional<ModelKeeper> keeper_;
  std::optional<AdapterKeeper> adapters_;
  std::optional<SpanExporter> spans_;
  std::optional<BatchService> batches_;  // none: there is no folder for them
  net::Router router_;
  std::optional<net::TlsEndpoint> tls_;
  net::HttpServer http_;
  const net::WebPolicy admin_web_;
  net::Router admin_router_;
  net::HttpServer admin_;  // without a listener unless there is --admin-listen
  net::AgentPort agent_;   // likewise, --agent-check
  FrameEndpoint door_;
  net::FrameMetrics frame_metrics_;
  net::FrameServer frames_;
  MemoryReturn memory_;
  KeyReload reload_;
  std::optional<TlsReload> tls_reload_;
  std::optional<Shutdown> shutdown_;
  bool reads_media_ = false;   // a model of those that were listed, loaded or not
  bool shows_energy_ = false;  // on the page of metrics
  bool told_ = false;       // to stop, by a signal
  bool hung_ = false;       // a worker, of whichever model
  std::string lost_peers_;  // that computed with it; empty: all are there
  net::Timer lost_timer_;
  std::optional<PeerLoss> peer_loss_;  // none: this machine computes alone
};

}  // namespace chasqui
