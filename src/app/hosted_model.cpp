#include "app/hosted_model.h"

#include <memory>
#include <utility>

#include "base/log.h"

namespace chasqui {
namespace {

// Requests of one model; a double, as JSON has numbers, counts those of a thousand models.
constexpr std::uint64_t kRequestNumbers = std::uint64_t{1} << 43;

EngineConfig engine_settings(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape,
                             std::shared_ptr<SnapshotFolder> disk, std::size_t number) {
  EngineConfig out = engine_config(config, model, shape);
  out.disk = std::move(disk);
  out.first_request = number * kRequestNumbers + 1;
  return out;
}

}  // namespace

HostedModel::HostedModel(ModelParts parts, std::size_t number, const ModelHost& host)
    : config_(parts.config),
      model_(std::move(parts.model)),
      clock_(host.clock),
      shape_(shape_of_all(parts.contexts)),
      limits_(request_limits(config_, model_.info, shape_)),
      settings_(model_config(config_, model_)),
      admission_(admission_config(config_, shape_)),
      engine_(engine_settings(config_, model_.info, shape_, std::move(parts.folders.snapshots), number),
              std::move(parts.contexts), model_.tokenizer, host.clock, host.wakeup, std::move(parts.drafts)),
      sessions_(session_limits(config_, shape_), *model_.tokenizer),
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
              .sessions = sessions_,
              .adapters = adapters_,
              .responses = responses_,
              .embeddings = embeddings_},
      sweep_(host.loop, sessions_),
      watch_(host.loop, engine_, streams_, settings_.name) {
  sessions_.on_unpinned([this](std::uint64_t pin) { engine_.unpin(pin); });
  if (parts.folders.sessions) {
    persister_.emplace(std::move(parts.folders.sessions), host.loop, host.clock)
        .bring_back(sessions_, host.keys, shape_.vocabulary);
    served_.persister = &*persister_;
  }
  if (parts.folders.slots) {
    slots_.emplace(std::move(parts.folders.slots), engine_, host.clock, host.loop);
    served_.slots = &*slots_;
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

void HostedModel::follow_finished(RequestLog& requests) {
  streams_.on_text([this](const Event& event) { sessions_.said(event); });
  streams_.on_finished([this, &requests](const Event& event) {
    sessions_.finished(event, clock_.now());
    requests.finished(event);
  });
}

void HostedModel::add_metrics_to(MetricsPage& page, const std::string& name, const std::string& labels) const {
  engine_.add_metrics_to(page, labels);
  page.label_with(labels);
  engine_.add_compat_metrics_to(page, name);
  admission_.add_to(page);
  sessions_.metrics().add_to(page);
  if (persister_) persister_->add_to(page);
  if (slots_) slots_->metrics().add_to(page);
  embeddings_.metrics().add_to(page);
  page.label_with({});
}

void HostedModel::finish() {
  if (persister_) persister_->finish();
}

}  // namespace chasqui
