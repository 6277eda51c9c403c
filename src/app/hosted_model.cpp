#include "app/hosted_model.h"

#include <memory>
#include <utility>

#include "app/recording.h"
#include "base/log.h"

namespace chasqui {
namespace {

// Requests of one model; a double, as JSON has numbers, counts those of a thousand models.
constexpr std::uint64_t kRequestNumbers = std::uint64_t{1} << 43;

// Between those of a version and the next one's: what of the older one begins while the next one is loaded, and after
// that, takes some of them.
constexpr std::uint64_t kVersionGap = std::uint64_t{1} << 26;

EngineConfig engine_settings(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape,
                             const Folders& folders, std::uint64_t first_request) {
  EngineConfig out = engine_config(config, model, shape);
  out.disk = folders.snapshots;
  out.shared_snapshots = folders.shared_snapshots;
  out.encodings = folders.encodings;
  if (out.encodings) out.reuse.disk->bytes -= disk_for_encodings(config);
  out.first_request = first_request;
  return out;
}

RequestLimits with_ends(RequestLimits limits, const Tokenizer& tokenizer) {
  const std::span<const Token> ends = tokenizer.end_of_generation_tokens();
  limits.end_tokens.assign(ends.begin(), ends.end());
  return limits;
}

}  // namespace

ModelComputing::ModelComputing(LoadedModel loaded, const EngineConfig& config, Models contexts, Models drafts,
                               const Clock& clock, Wakeup& wakeup)
    : model(std::move(loaded)),
      engine(config, std::move(contexts), model.tokenizer, clock, wakeup, std::move(drafts)) {}

void HostedModel::begin(ModelParts& parts, std::uint64_t first_request, const Clock& clock, Wakeup& wakeup,
                        const WorkerWitnesses& witnesses) {
  EngineConfig settings =
      engine_settings(parts.config, parts.model.info, shape_of_all(parts.contexts), parts.folders, first_request);
  if (RecordWriter* const recorder = witnesses.recorder) {
    settings.tap = [recorder, head = recorded_head(parts)](const SchedulerConfig& config, std::size_t worker) mutable {
      head.worker = static_cast<std::uint32_t>(worker);
      head.config = config;
      return recorder->tap(head);
    };
  }
  if (KvPublisher* const publisher = witnesses.publisher) {
    settings.holdings = [publisher, name = model_config(parts.config, parts.model).name] {
      return publisher->holdings(name);
    };
  }
  parts.computing = std::make_shared<ModelComputing>(std::move(parts.model), settings, std::move(parts.contexts),
                                                     std::move(parts.drafts), clock, wakeup);
}

std::uint64_t HostedModel::first_request_of(std::size_t number) { return number * kRequestNumbers + 1; }

Predecessor HostedModel::predecessor() const {
  return {.snapshots = snapshots_,
          .encodings = encodings_,
          .slots = slot_files_,
          .first_request = engine_.next_id().value + kVersionGap};
}

std::shared_ptr<const void> HostedModel::computing() const {
  struct Parts {
    std::shared_ptr<const ModelComputing> computing;
    std::shared_ptr<const void> embedder;  // goes first
  };
  return std::make_shared<const Parts>(Parts{computing_, embeddings_.computing()});
}

HostedModel::HostedModel(ModelParts parts, const ModelHost& host, HostedModel* before)
    : first_(before == nullptr),
      owned_config_(std::move(parts.owned)),
      config_(parts.config),
      snapshots_(std::move(parts.folders.snapshots)),
      encodings_(std::move(parts.folders.encodings)),
      slot_files_(std::move(parts.folders.slots)),
      clock_(host.clock),
      shape_(parts.computing->engine.shape()),
      computing_(std::move(parts.computing)),
      model_(computing_->model),
      engine_(computing_->engine),
      limits_(with_ends(request_limits(config_, model_.info, shape_), *model_.tokenizer)),
      settings_(model_config(config_, model_)),
      admission_(admission_config(config_, shape_)),
      conversations_(before != nullptr
                         ? before->conversations_
                         : std::make_shared<ModelConversations>(host.loop, host.free_later,
                                                                session_limits(config_, shape_), *model_.tokenizer)),
      streams_(engine_, host.loop, host.unread_max),
      adapters_(model_.info.adapters, config_.adapters.apply),
      embeddings_(model_, host.loop, parts.embedding),
      served_{.config = settings_,
              .model = model_,
              .limits = limits_,
              .clock = host.clock,
              .engine = engine_,
              .admission = admission_,
              .streams = streams_,
              .sessions = conversations_->sessions,
              .adapters = adapters_,
              .responses = conversations_->responses,
              .embeddings = embeddings_,
              .identity = parts.identity,
              .vocabulary = parts.vocabulary},
      watch_(host.loop, engine_, streams_, settings_.name) {
  take_sessions(parts.folders, host, before == nullptr);
  if (before != nullptr) adapters_.take_over(*before->adapters_.list());
  if (slot_files_) {
    slots_.emplace(slot_files_, engine_, host.clock, host.loop);
    served_.slots = &*slots_;
  }
  if (host.publisher != nullptr) {
    adapters_.on_change([publisher = host.publisher, name = settings_.name](const AdapterList& list) {
      publisher->name_adapters(name, list.names_by_set());
    });
  }
  follow_finished(host.requests);
  if (config_.cache_reuse > 0 && !limits_.moves_text) {
    log_warning("--cache-reuse has no effect: with this model, in one pool of cells or without a cache nothing moves",
                {{"model", settings_.name}});
  }
  if (config_.context_shift && !limits_.shifts) {
    log_warning("--context-shift has no effect: what this model remembers cannot be shifted",
                {{"model", settings_.name}});
  }
}

void HostedModel::take_sessions(Folders& folders, const ModelHost& host, bool first) {
  SessionTable& sessions = conversations_->sessions;
  sessions.use_model(session_limits(config_, shape_), *model_.tokenizer, served_.vocabulary);
  sessions.on_unpinned([this](std::uint64_t pin) { engine_.unpin(pin); });
  if (first && folders.shared_sessions) {
    SessionPersister& persister = conversations_->persister.emplace(folders.shared_sessions, host.loop, host.clock);
    conversations_->sharing.emplace(folders.shared_sessions, persister, sessions, host.loop, host.clock);
  } else if (first && folders.sessions) {
    const std::shared_ptr<SessionStore> writer = std::move(folders.sessions);
    conversations_->persister.emplace(writer, host.loop, host.clock)
        .bring_back(*writer, sessions, host.keys, shape_.vocabulary);
  }
  if (conversations_->persister) served_.persister = &*conversations_->persister;
  if (conversations_->sharing) served_.sharing = &*conversations_->sharing;
}

void HostedModel::follow_finished(RequestLog& requests) {
  streams_.on_text([this](const Event& event) { conversations_->sessions.said(event); });
  streams_.on_finished([this, &requests](const Event& event) {
    conversations_->sessions.finished(event, clock_.now());
    requests.finished(event);
  });
}

void HostedModel::add_metrics_to(MetricsPage& page, const std::string& name, const std::string& labels) {
  shown_name_ = name;
  labels_ = labels;
  shows_adapters_ = engine_.metrics().named_adapters() > 0;
  page.label_with(labels);
  if (first_) conversations_->add_metrics_to(page);  // of all versions
  page.label_with({});
  page.belong_to(this);
  engine_.add_metrics_to(page, labels);
  page.label_with(labels);
  engine_.add_compat_metrics_to(page, name);
  admission_.add_to(page);
  if (slots_) slots_->metrics().add_to(page);
  embeddings_.metrics().add_to(page);
  page.label_with({});
  page.belong_to(nullptr);
  const AdapterListPtr list = adapters_.list();
  for (const ListedAdapter& adapter : list->all()) add_adapter_to(page, adapter.info.place);
}

void HostedModel::add_adapter_to(MetricsPage& page, std::int32_t place) {
  page.label_with(labels_);
  if (!std::exchange(shows_adapters_, true)) {
    page.belong_to(this);
    engine_.add_adapters_to(page, shown_name_);
  }
  page.belong_to(owner_of(place));
  engine_.add_adapter_to(page, place);
  page.label_with({});
  page.belong_to(nullptr);
}

void HostedModel::adapter_came(MetricsPage& page, std::int32_t place, const std::string& name) {
  engine_.name_adapter(place, name);
  add_adapter_to(page, place);
}

void HostedModel::adapter_went(MetricsPage& page, std::int32_t place) {
  page.forget(owner_of(place));
  engine_.name_adapter(place, {});
}

void HostedModel::retire_metrics(MetricsPage& page) {
  page.retire(this);
  const AdapterListPtr list = adapters_.list();
  for (const ListedAdapter& adapter : list->all()) page.retire(owner_of(adapter.info.place));
  for (const std::int32_t place : adapters_.leaving()) page.forget(owner_of(place));
}

void HostedModel::finish() {
  if (conversations_->sharing) conversations_->sharing->stop();
  if (conversations_->persister) conversations_->persister->finish();
}

bool HostedModel::keep_until(TimePoint time) {
  engine_.keep_until(time);
  return snapshots_ != nullptr;
}

}  // namespace chasqui
