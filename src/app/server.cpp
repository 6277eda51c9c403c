#include "app/server.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "api/admin/readiness.h"
#include "api/core/answer.h"
#include "api/core/errors.h"
#include "api/core/served_model.h"
#include "api/routes/routes.h"
#include "api/schema/recent_schemas.h"
#include "app/greeting.h"
#include "app/media_decoders.h"
#include "app/model_memory.h"
#include "app/supervise.h"
#include "base/cpu_account.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/machine.h"
#include "engine/compat_metrics.h"
#include "engine/engine.h"
#include "engine/worker.h"

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

// With more models the page of metrics shows sums only.
constexpr std::size_t kModelsShown = 8;

// For errors to reach clients when there is nothing more to compute with.
constexpr Duration kAfterLoss = milliseconds(500);

}  // namespace

Server::Server(const ServeConfig& config, ServerParts parts, KeyRing& keys, const LogMetrics& log, LogFile& log_file,
               ExitGuard& guard)
    : config_(config),
      listeners_(std::move(parts.listeners)),
      keys_(keys),
      log_file_(log_file),
      guard_(guard),
      recorder_(parts.recorder),
      publisher_(parts.publisher),
      wakeup_(config.wakeup),
      loop_(net_metrics_),
      settings_(node_config(config, listeners_)),
      kept_(config.kept),
      requests_({.lines = config.log_requests,
                 .short_lines = config.short_request_lines,
                 .log_prompts = config.log_prompts,
                 .traces = parts.collector.has_value()},
                clock_, keys),
      listener_(loop_, wakeup_, [this] { deliver(); }),
      offload_(loop_, {.yields = true}),
      freeing_(loop_, offload_),
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
      router_(&pathless_fault),
      http_(loop_, router_, settings_.http),
      admin_web_(admin_web_policy(config)),
      admin_router_(&pathless_fault),
      admin_(loop_, admin_router_, admin_limits(settings_.http)),
      agent_(loop_, [this] { return agent_line(node_); }),
      door_(node_),
      frames_(loop_, frame_metrics_, settings_.frames,
              [this](net::FrameConnection& connection) { return door_.open(connection); }),
      memory_(loop_, offload_),
      reload_(config, keys, loop_, offload_),
      lost_timer_(loop_.executor()) {
  idempotency_.set_free_later(freeing_.free_later());
  add_models(std::move(parts.models));
  requests_.on_ended([this](const auto& /*record*/) {
    memory_.request_ended();
    show_energy();
  });
  if (parts.tls) {
    tls_.emplace(loop_, std::move(parts.tls));
    tls_reload_.emplace(config, *tls_, loop_, offload_);
    http_.use_tls(&*tls_);
  }
  if (config.web.compression) http_.use_compressor(&offload_);
  collect_spans(parts.collector);
  if (!config.media.url_hosts.empty()) {
    links_.emplace(loop_, config.media.url_hosts);
    node_.frontend.links = &links_->links();
  }
  if (config.check_model) node_.models.check_names();
  add_routes(router_, node_);
  add_admin_routes(admin_router_, node_, admin_web_);
  if (parts.jobs) {
    const auto disk_max = static_cast<std::uint64_t>(config.batch_mib) << 20;
    batches_.emplace(std::move(parts.jobs), disk_max, config.batch_lines, node_, std::move(parts.queue));
  }
  add_metrics(log);
}

void Server::add_models(std::vector<ListedModel> listed) {
  const KeeperLimits limits{static_cast<std::size_t>(config_.models_max), models_memory(config_),
                            config_.models_autoload, std::ranges::any_of(config_.models, &ServeConfig::on_demand)};
  ModelHosting& hosting = *this;
  keeper_.emplace(loop_, offload_, node_.models, limits, hosting);
  for (ListedModel& one : listed) {
    reads_media_ = reads_media_ || !one.how.media.path.empty();
    keeper_->add(std::move(one));
  }
  AdapterHosting& shows = *this;
  adapters_.emplace(loop_, node_.models, *keeper_, shows);
  node_.adapters = &*adapters_;
}

HostedModel& Server::hosted(const ServedModel& model) const {
  const auto found = std::ranges::find_if(models_, [&model](const auto& one) { return &one->served() == &model; });
  CHECK(found != models_.end(), "a model that is not hosted");
  return **found;
}

void Server::begin(ModelParts& parts, std::size_t number, const Predecessor* before) {
  const std::uint64_t first = before != nullptr ? before->first_request : HostedModel::first_request_of(number);
  HostedModel::begin(parts, first, clock_, wakeup_, {recorder_, publisher_});
}

ServedModel& Server::host(ModelParts parts, ServedModel* before) {
  const ModelHost shared{loop_,     clock_, wakeup_, requests_, keys_, settings_.unread_max, freeing_.free_later(),
                         publisher_};
  HostedModel* const older = before != nullptr ? &hosted(*before) : nullptr;
  HostedModel& model = *models_.emplace_back(std::make_unique<HostedModel>(std::move(parts), shared, older));
  add_metrics_of(model);
  if (shutdown_ && is_supervised()) follow_hang(model);
  if (shutdown_) fit_metrics();
  if (shutdown_ && shutdown_->service() != Service::open) model.served().admission.drain();
  return model.served();
}

Predecessor Server::predecessor(const ServedModel& model) const { return hosted(model).predecessor(); }

std::shared_ptr<const void> Server::release(const ServedModel& model) {
  HostedModel& gone = hosted(model);
  std::shared_ptr<const void> computing = gone.computing();
  gone.retire_metrics(metrics_);
  std::erase_if(models_, [&gone](const auto& one) { return one.get() == &gone; });
  return computing;
}

void Server::adapter_came(const ServedModel& model, std::int32_t place, const std::string& name) {
  hosted(model).adapter_came(metrics_, place, name);
  fit_metrics();
}

void Server::adapter_went(const ServedModel& model, std::int32_t place) { hosted(model).adapter_went(metrics_, place); }

void Server::deliver() {
  for (const auto& model : models_) model->deliver();
}

void Server::collect_spans(const std::optional<net::HttpTarget>& collector) {
  if (!collector) return;
  spans_.emplace(loop_, offload_, *collector, SpanSource{settings_.frontend.version});
  requests_.on_ended([this](const std::shared_ptr<RequestRecord>& record) { spans_->add(record); });
}

void Server::add_metrics_of(HostedModel& model) {
  const std::size_t models = config_.models.size();
  const bool many = models > kModelsShown;
  const std::string& name = model.name();
  const bool told_apart = models > 1 && !many;
  model.add_metrics_to(metrics_, many ? "all" : name, told_apart ? model_label("model", name) : std::string());
}

void Server::fit_metrics() {
  const std::size_t models = config_.models.size();
  metrics_.fit(kSizeLimit<"metrics_bytes"> * (models > kModelsShown ? 1 : models));
}

void Server::add_metrics(const LogMetrics& log) {
  keeper_->add_to(metrics_);
  if (spans_) spans_->metrics().add_to(metrics_);
  if (batches_) batches_->add_to(metrics_);
  kept_.metrics().add_to(metrics_);
  idempotency_.metrics().add_to(metrics_);
  net_metrics_.add_to(metrics_);
  frame_metrics_.add_to(metrics_);
  offload_.add_to(metrics_);
  schema_metrics().add_to(metrics_);
  if (links_) links_->links().metrics.add_to(metrics_);
  if (config_.decoders && reads_media_) config_.decoders->metrics().add_to(metrics_);
  log.add_to(metrics_);
  if (recorder_ != nullptr) recorder_->metrics().add_to(metrics_);
  if (publisher_ != nullptr) publisher_->metrics().add_to(metrics_);
  show_energy();
  fit_metrics();
}

// Once something tells it: GPUs may do so from the first request on.
void Server::show_energy() {
  const EnergyMeter* const meter = cpu_account().meter();
  if (shows_energy_ || meter == nullptr || !meter->tells()) return;
  meter->metrics().add_to(metrics_);
  shows_energy_ = true;
  fit_metrics();
}

void Server::greet(const std::string& url) const {
  for (const ServedModel* const served : node_.models.all()) {
    const Engine& engine = served->engine;
    const std::string shared = engine.workers() > 1 ? " of " + std::to_string(engine.workers()) + " workers" : "";
    const std::uint64_t needs = node_.models.entry_of(*served).needs;
    const std::string memory = needs > 0 ? ", " + cli::bytes_in_words(needs) + " of memory" : "";
    std::printf("serving %s (%s), %d slots of %d tokens%s%s\n", served->config.name.c_str(),
                served->model.info.description.c_str(), engine.shape().slots, engine.shape().cells_per_slot,
                shared.c_str(), memory.c_str());
  }
  if (!url.empty()) {
    const std::string near = reachable_here(url);
    if (settings_.page) std::printf("talk to it in a browser: %s/\n", near.c_str());
    std::fputs(request_to_try(config_, near, tls_.has_value()).c_str(), stdout);
  }
  std::fflush(stdout);
}

Result<void> Server::open() {
  const auto url = open_listeners({http_, frames_, admin_, agent_}, listeners_, tls_.has_value());
  if (!url) return url.error();
  shutdown_.emplace(loop_,
                    ShutdownParts{http_, admin_, frames_, kept_, node_.models, spans_ ? &*spans_ : nullptr,
                                  batches_ ? &batches_->runner() : nullptr, links_ ? &*links_ : nullptr},
                    ShutdownTimes{config_.operation.drain_delay, config_.drain_time}, listeners_.stay);
  node_.drain = &*shutdown_;
  follow_signals();
  // Only another process can have a worker that moves; it exists where a process starts it.
  if (is_supervised()) follow_hangs();
  if (!rpc_peers().empty()) peer_loss_.emplace(loop_, [this](const std::string& peers) { lose(peers); });
  if (batches_) batches_->begin();
  greet(*url);
  return {};
}

void Server::follow_hangs() {
  for (const auto& model : models_) follow_hang(*model);
}

void Server::follow_hang(HostedModel& model) {
  model.on_hang([this] {
    if (hung_) return;  // another one, and the shutdown has begun
    hung_ = true;
    guard_.begin();
    leave();
  });
}

// Once: where it leaves already, a second time would cut what still runs.
void Server::leave() {
  if (shutdown_->service() != Service::leaving) shutdown_->begin();
}

// The first one asks for a drain, which a worker that hangs may have begun; those after it for an end.
void Server::told_to_stop() {
  if (std::exchange(told_, true)) return shutdown_->begin();
  leave();
}

// Every model may have a part there, and ggml has no way back: the requests end with an error, and then the process.
void Server::lose(const std::string& peers) {
  if (!lost_peers_.empty()) return;
  lost_peers_ = peers;
  const bool ending = std::exchange(hung_, true);
  const Error why{ErrorCode::model_failure,
                  "the RPC server " + peers + ", which holds a part of the model, is lost; retry", ""};
  for (const auto& model : models_) model->lose(why);
  if (!ending) {
    guard_.begin();
    leave();
  }
  lost_timer_.expires_after(kAfterLoss);
  lost_timer_.async_wait([this](net::SystemError error) {
    if (!error) shutdown_->begin();
  });
}

void Server::follow_signals() {
  const auto parent = is_supervised() ? ExitGuard::Parent::supervisor : ExitGuard::Parent::any;
  const auto hear = [this] { loop_.post([this] { told_to_stop(); }); };
  guard_.watch(config_.operation.drain_delay + config_.drain_time, hear, parent);
  // A supervisor says by SIGTERM that the terminal has gone, and a service manager may be told to reload any service;
  // these have opened the sockets.
  if (!config_.reads_files_again() && !listeners_.stay) return;
  loop_.on_signal(SIGHUP, [this] {
    if (!config_.reads_files_again()) return log_info("SIGHUP: there is no file to read again");
    log_file_.open_again();
    if (!config_.api_key_file.empty()) reload_.begin();
    if (tls_reload_) tls_reload_->begin();
  });
}

// Of what is left of the drain: the engines write what their caches hold when they go.
Duration Server::time_to_keep() {
  const TimePoint now = clock_.now();
  const TimePoint end = std::clamp(shutdown_->end(), now, now + Worker::kKeepFor);
  const auto keeps = std::ranges::count_if(models_, [end](const auto& model) { return model->keep_until(end); });
  return keeps > 0 ? end - now : Duration::zero();
}

void Server::run() {
  loop_.run();
  for (const auto& model : models_) model->finish();
  if (!lost_peers_.empty()) end_without(lost_peers_);
  const bool hangs = std::ranges::any_of(models_, [](const auto& model) { return model->hangs(); });
  if (is_supervised() && hangs) end_hung_process();
  guard_.tear_down(time_to_keep());
  log_info("stopped");
}

}  // namespace chasqui
