// One version of a model of a server that runs, with all that belongs to it alone, in the order in which it is made
// and, backwards, given up: what its ServedModel refers to. Owned by Server; made and destroyed on the loop's thread,
// and used there, except where Engine says "any thread". What takes long to give up, weights and contexts, is destroyed
// where the last owner of computing() lets go of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/core/embedding_service.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/request_log.h"
#include "api/core/served_model.h"
#include "api/llama_server/slot_persister.h"
#include "app/kv_publisher.h"
#include "app/model_conversations.h"
#include "app/model_parts.h"
#include "app/record_writer.h"
#include "app/settings.h"
#include "app/worker_watch.h"
#include "base/free_later.h"

namespace chasqui {

// What all models share; outlives them.
struct ModelHost {
  net::EventLoop& loop;
  const Clock& clock;
  Wakeup& wakeup;
  RequestLog& requests;
  const KeyRing& keys;
  std::size_t unread_max;  // NodeConfig::unread_max
  FreeLater free_later;    // what clients have said to it
  KvPublisher* publisher;  // null: nothing is published
};

// What computes: no other part refers to it once the HostedModel has gone. Any thread makes and destroys it.
struct ModelComputing {
  ModelComputing(LoadedModel loaded, const EngineConfig& config, Models contexts, Models drafts, const Clock& clock,
                 Wakeup& wakeup);

  const LoadedModel model;
  Engine engine;
};

// Who is told what workers do; null: no one is.
struct WorkerWitnesses {
  RecordWriter* recorder = nullptr;
  KvPublisher* publisher = nullptr;
};

class HostedModel {
 public:
  // Any thread: starts the workers, and looks through the folder of snapshots. `clock`, `wakeup` and witnesses outlive
  // them.
  static void begin(ModelParts& parts, std::uint64_t first_request, const Clock& clock, Wakeup& wakeup,
                    const WorkerWitnesses& witnesses);
  // Of the first version of the model with this number, which no other one has.
  static std::uint64_t first_request_of(std::size_t number);

  // Brings sessions back. `before`: the version that it replaces, whose sessions go on with it; null: it is the first.
  // REQUIRES: the parts have begun
  HostedModel(ModelParts parts, const ModelHost& host, HostedModel* before = nullptr);
  HostedModel(const HostedModel&) = delete;
  HostedModel& operator=(const HostedModel&) = delete;

  ServedModel& served() { return served_; }
  const std::string& name() const { return settings_.name; }
  // What its workers said goes to its streams.
  void deliver() { streams_.deliver(); }
  // `labels` tell it from others, on counters and gauges; `name` does in metrics that others have as well.
  void add_metrics_to(MetricsPage& page, const std::string& name, const std::string& labels);
  // An adapter is in this place since now, or not any more.
  void adapter_came(MetricsPage& page, std::int32_t place, const std::string& name);
  void adapter_went(MetricsPage& page, std::int32_t place);
  // What it has counted stays in the sums.
  void retire_metrics(MetricsPage& page);
  void on_hang(std::function<void()> callback) { watch_.on_hang(std::move(callback)); }
  bool hangs() const { return watch_.hangs(); }
  void lose(const Error& why) { watch_.lose(why); }
  // What there can be only once, for the next version.
  Predecessor predecessor() const;
  // … and what takes long to destroy, for the thread that does it when this has gone.
  std::shared_ptr<const void> computing() const;
  // Its sessions are on disk when this returns. After the loop.
  void finish();
  // What its prefix cache has is written at the end, and not beyond this time. False: it has no disk.
  bool keep_until(TimePoint time);

 private:
  void add_adapter_to(MetricsPage& page, std::int32_t place);
  const void* owner_of(std::int32_t place) const { return &engine_.metrics().adapter_steps.at(index_of(place)); }
  static std::size_t index_of(std::int32_t place) { return static_cast<std::size_t>(place) + 1; }
  void follow_finished(RequestLog& requests);
  void take_sessions(Folders& folders, const ModelHost& host, bool first);

  const bool first_;  // of its versions
  const std::shared_ptr<const ServeConfig> owned_config_;
  const ServeConfig& config_;
  const std::shared_ptr<SnapshotFolder> snapshots_;  // null: nothing is kept on disk
  const std::shared_ptr<EncodingFolder> encodings_;  // … of pictures and sounds
  const std::shared_ptr<SlotFiles> slot_files_;
  const Clock& clock_;
  const ModelShape shape_;
  const std::shared_ptr<ModelComputing> computing_;
  const LoadedModel& model_;
  Engine& engine_;
  const RequestLimits limits_;
  const ServedModelConfig settings_;
  Admission admission_;
  const std::shared_ptr<ModelConversations> conversations_;
  StreamHub streams_;
  AdapterRegistry adapters_;
  EmbeddingService embeddings_;
  ServedModel served_;
  std::optional<SlotPersister> slots_;
  WorkerWatch watch_;
  std::string shown_name_;  // on the page of metrics
  std::string labels_;
  bool shows_adapters_ = false;
};

}  // namespace chasqui
