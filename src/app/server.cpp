#include "app/server.h"

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "api/core/answer.h"
#include "api/core/errors.h"
#include "api/routes/routes.h"
#include "app/supervise.h"
#include "base/limits.h"
#include "base/log.h"

namespace chasqui {
namespace {

// "Every address" is none that a client can ask.
std::string reachable_here(std::string url) {
  for (const auto& [every, here] : {std::pair("//0.0.0.0:", "//127.0.0.1:"), std::pair("//[::]:", "//[::1]:")}) {
    const auto at = url.find(every);
    if (at != std::string::npos) url.replace(at, std::string_view(every).size(), here);
  }
  return url;
}

}  // namespace

Server::Server(const ServeConfig& config, const LoadedModel& model, ServerParts parts, KeyRing& keys,
               const LogMetrics& log, LogFile& log_file, ExitGuard& guard)
    : config_(config),
      model_(model),
      listeners_(std::move(parts.listeners)),
      keys_(keys),
      log_file_(log_file),
      guard_(guard),
      wakeup_(config.wakeup),
      loop_(net_metrics_),
      shape_(shape_of_all(parts.contexts)),
      limits_(request_limits(config, shape_)),
      settings_(node_config(config, listeners_)),
      model_settings_(model_config(config, model)),
      admission_(admission_config(config, shape_)),
      kept_(config.kept),
      engine_(engine_settings(parts), std::move(parts.contexts), model.tokenizer, clock_, wakeup_,
              std::move(parts.drafts)),
      sessions_(session_limits(config, shape_), *model.tokenizer),
      streams_(engine_, loop_, settings_.unread_max),
      adapters_(model.info.adapters, config.adapters.apply),
      requests_({config.log_requests, config.log_prompts, model_settings_.traces}, clock_, keys),
      listener_(loop_, wakeup_, [this] { streams_.deliver(); }),
      offload_(loop_, {.yields = true}),
      embeddings_(model, loop_, parts.embedding),
      node_{.config = settings_,
            .frontend = {.config = settings_.frontend,
                         .loop = loop_,
                         .offload = offload_,
                         .clock = clock_,
                         .keys = keys_,
                         .request_hasher = request_hasher_,
                         .skipped_tools = skipped_tools_,
                         .idempotency = idempotency_,
                         .requests = &requests_,
                         .kept = &kept_},
            .metrics = metrics_},
      served_{.config = model_settings_,
              .model = model_,
              .limits = limits_,
              .clock = clock_,
              .engine = engine_,
              .admission = admission_,
              .streams = streams_,
              .sessions = sessions_,
              .adapters = adapters_,
              .responses = responses_,
              .embeddings = embeddings_},
      router_(&pathless_fault),
      http_(loop_, router_, settings_.http),
      door_(node_),
      frames_(loop_, frame_metrics_, settings_.frames,
              [this](net::FrameConnection& connection) { return door_.open(connection); }),
      sweep_(loop_, sessions_),
      memory_(loop_, offload_),
      watch_(loop_, engine_, streams_),
      reload_(config, keys, loop_, offload_) {
  sessions_.on_unpinned([this](std::uint64_t pin) { engine_.unpin(pin); });
  if (parts.folders.sessions) {
    persister_.emplace(std::move(parts.folders.sessions), loop_, clock_)
        .bring_back(sessions_, keys_, shape_.vocabulary);
    served_.persister = &*persister_;
  }
  if (parts.folders.slots) {
    slots_.emplace(std::move(parts.folders.slots), engine_, clock_, loop_);
    served_.slots = &*slots_;
  }
  if (parts.tls) {
    tls_.emplace(loop_, std::move(parts.tls));
    tls_reload_.emplace(config, *tls_, loop_, offload_);
    http_.use_tls(&*tls_);
  }
  if (config.web.compression) http_.use_compressor(&offload_);
  follow_finished();
  collect_spans(parts.collector);
  node_.models.add(served_);
  if (config.check_model) node_.models.check_names();
  add_routes(router_, node_);
  add_metrics(log);
}

EngineConfig Server::engine_settings(ServerParts& parts) const {
  EngineConfig out = engine_config(config_, model_.info, shape_);
  out.disk = std::move(parts.folders.snapshots);
  return out;
}

void Server::follow_finished() {
  streams_.on_text([this](const Event& event) { sessions_.said(event); });
  streams_.on_finished([this](const Event& event) {
    sessions_.finished(event, clock_.now());
    requests_.finished(event);
  });
}

void Server::collect_spans(const std::optional<net::HttpTarget>& collector) {
  if (!collector) return;
  spans_.emplace(loop_, offload_, *collector, SpanSource{settings_.frontend.version});
  requests_.on_ended([this](const std::shared_ptr<RequestRecord>& record) { spans_->add(record); });
}

void Server::add_metrics(const LogMetrics& log) {
  engine_.add_metrics_to(metrics_);
  engine_.add_compat_metrics_to(metrics_, model_settings_.name);
  admission_.add_to(metrics_);
  sessions_.metrics().add_to(metrics_);
  if (persister_) persister_->add_to(metrics_);
  if (slots_) slots_->metrics().add_to(metrics_);
  if (spans_) spans_->metrics().add_to(metrics_);
  kept_.metrics().add_to(metrics_);
  idempotency_.metrics().add_to(metrics_);
  net_metrics_.add_to(metrics_);
  frame_metrics_.add_to(metrics_);
  offload_.add_to(metrics_);
  log.add_to(metrics_);
  embeddings_.metrics().add_to(metrics_);
  metrics_.fit(kSizeLimit<"metrics_bytes">);
}

void Server::greet(const std::string& url) const {
  const std::size_t workers = engine_.workers();
  const std::string shared = workers > 1 ? " of " + std::to_string(workers) + " workers" : "";
  std::printf("serving %s (%s), %d slots of %d tokens%s\n", model_settings_.name.c_str(),
              model_.info.description.c_str(), engine_.shape().slots, engine_.shape().cells_per_slot, shared.c_str());
  if (!url.empty()) {
    const std::string near = reachable_here(url);
    if (settings_.page) std::printf("talk to it in a browser: %s/\n", near.c_str());
    // As it is printed it works: a certificate for a name does not fit an address, and a key is no output.
    const bool keys = !config_.api_keys.empty() || !config_.api_key_file.empty();
    const bool demo = config_.engine == EngineKind::llama && config_.model_path.empty();
    std::printf(
        "try: curl -N%s %s/v1/chat/completions%s -d "
        "'{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}'\n",
        tls_ ? "k" : "", near.c_str(), keys ? " -H 'Authorization: Bearer YOUR_KEY'" : "",
        demo ? "What is Chasqui?" : "Say hello in three languages.");
  }
  std::fflush(stdout);
}

Result<void> Server::open() {
  const auto url = open_listeners(http_, frames_, listeners_, tls_.has_value());
  if (!url) return url.error();
  shutdown_.emplace(loop_, http_, frames_, kept_, admission_, engine_,
                    ShutdownTimes{config_.operation.drain_delay, config_.drain_time}, listeners_.stay,
                    spans_ ? &*spans_ : nullptr);
  follow_signals();
  // Only another process can have a worker that moves; it exists where a process starts it.
  if (is_supervised()) {
    watch_.on_hang([this] {
      guard_.begin();
      shutdown_->begin();
    });
  }
  greet(*url);
  return {};
}

void Server::follow_signals() {
  guard_.watch(config_.operation.drain_delay + config_.drain_time,
               [this] { loop_.post([this] { shutdown_->begin(); }); });
  // Without files to read again SIGHUP means what it means everywhere: the terminal has gone.
  if (config_.api_key_file.empty() && config_.log_file.empty() && !tls_reload_) return;
  loop_.on_signal(SIGHUP, [this] {
    log_file_.open_again();
    if (!config_.api_key_file.empty()) reload_.begin();
    if (tls_reload_) tls_reload_->begin();
  });
}

void Server::run() {
  loop_.run();
  if (persister_) persister_->finish();
  if (is_supervised() && watch_.hangs()) end_hung_process();
  guard_.tear_down();
  log_info("stopped");
}

}  // namespace chasqui
