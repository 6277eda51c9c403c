#include "app/serve.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include <chasqui_demo_model.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/routes.h"
#include "api/service.h"
#include "app/capacity.h"
#include "app/key_reload.h"
#include "app/session_sweep.h"
#include "net/http_server.h"
#include "net/wakeup_listener.h"

namespace chasqui {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "chasqui: %s\n", error.message.c_str());
  return 1;
}

Result<LoadOptions> load_options(const ServeConfig& config) {
  LoadOptions options;
  options.weights.gpu_layers = config.gpu_layers;
  options.weights.mmap = config.use_mmap;
  options.weights.mlock = config.use_mlock;
  if (!config.chat_template_file.empty()) {
    std::ifstream file(config.chat_template_file);
    if (!file) {
      return invalid_field("--chat-template-file", "--chat-template-file: cannot read " + config.chat_template_file);
    }
    options.chat_template.assign(std::istreambuf_iterator<char>(file), {});
  }
  return options;
}

Result<LoadedModel> load(const ServeConfig& config) {
  if (config.engine == EngineKind::sim) {
    SimOptions options;
    options.spend = [](Duration time) { std::this_thread::sleep_for(time); };
    return load_sim(options);
  }
  auto options = load_options(config);
  if (!options) return options.error();
  if (!config.model_path.empty()) return load_llama(config.model_path, *options);
  return load_llama(demo_model(), "chasqui-demo", *options);
}

std::size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::size_t{8} << 30;  // not told: a small machine of today
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
}

// A server that strangers can reach without a key is a mistake more often than a wish.
Result<void> check_address(const ServeConfig& config) {
  if (config.host.empty()) return {};
  const auto address = net::ListenAddress::tcp(config.host, config.port);
  if (!address.is_valid()) {
    return invalid_field(
        "--host", "--host " + config.host + " must be an IPv4 or IPv6 address, localhost, or a path ending in .sock");
  }
  const bool keys = !config.api_keys.empty() || !config.api_key_file.empty();
  if (keys || config.no_auth || address.is_loopback()) return {};
  return invalid_field("--host", "--host " + config.host +
                                     " can be reached from other machines: set --api-key, or --no-auth if everybody "
                                     "who can reach it may use it");
}

RequestLimits request_limits(const ServeConfig& config, const ModelShape& shape) {
  RequestLimits limits;
  limits.vocabulary = shape.vocabulary;
  limits.context = shape.cells_per_slot;
  limits.max_tokens_default = static_cast<TokenCount>(config.predict);
  limits.timeout_default = config.request_timeout;
  return limits;
}

Result<std::string> open_doors(net::HttpServer& server, const ServeConfig& config) {
  std::string url;
  if (!config.host.empty()) {
    auto bound = server.listen(net::ListenAddress::tcp(config.host, config.port));
    if (!bound) return bound.error();
    url = "http://" + bound->text;
    std::printf("listening on %s\n", url.c_str());
  }
  if (!config.unix_socket.empty()) {
    auto bound = server.listen(net::ListenAddress::unix_socket(config.unix_socket));
    if (!bound) return bound.error();
    std::printf("listening on %s\n", bound->text.c_str());
  }
  return url;
}

void greet(const std::string& url, const Service& service) {
  const ModelShape& shape = service.engine.shape();
  std::printf("serving %s (%s), %d slots of %d tokens\n", service.config.model_name.c_str(),
              service.model.info.description.c_str(), shape.slots, shape.cells_per_slot);
  if (!url.empty()) {
    std::printf(
        "try: curl -N %s/v1/chat/completions -d "
        "'{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"What is Chasqui?\"}]}'\n",
        url.c_str());
  }
  std::fflush(stdout);
}

// Sixteen fills of the KV cache are minutes of reading for most models, so that --queue-wait refuses first; this is
// the bound for memory (four bytes a token), and for the time before anything can be predicted.
constexpr std::int64_t kQueueTokensPerCell = 16;

AdmissionConfig admission_config(const ServeConfig& config, const ModelShape& shape) {
  AdmissionConfig out;
  out.slots = shape.slots;
  out.queue_requests = config.queue_requests;
  out.queue_tokens = config.queue_tokens > 0 ? config.queue_tokens : kQueueTokensPerCell * shape.cells;
  out.queue_wait = config.queue_wait;
  return out;
}

// What is kept must not crowd out what runs, the page cache of the model file included.
ReuseConfig reuse_config(const ServeConfig& config) {
  constexpr std::size_t kMiB = 1 << 20;
  ReuseConfig out;
  out.shared_by_tenants = config.cache_shared;
  if (config.cache_ram < 0) {
    out.cache.bytes = std::numeric_limits<std::size_t>::max() / 2;
    return out;
  }
  out.cache.bytes = std::min(static_cast<std::size_t>(config.cache_ram) * kMiB, physical_memory() / 4);
  return out;
}

EngineConfig engine_config(const ServeConfig& config, const ModelShape& shape) {
  EngineConfig out;
  out.reuse = reuse_config(config);
  out.targets = config.targets;
  out.policy = config.policy;
  // Admission refuses first. A request that was cancelled gives its permit back a step before the engine is rid of it,
  // hence the room.
  out.waiting_max = config.queue_requests + 2 * static_cast<std::size_t>(shape.slots) + 64;
  return out;
}

ServiceConfig service_config(const ServeConfig& config, const LoadedModel& model) {
  ServiceConfig out;
  out.model_name = config.alias.empty() ? model.info.name : config.alias;
  out.version = CHASQUI_VERSION;
  out.cache_prompt = config.cache_prompt;
  out.cache_bytes = reuse_config(config).cache.bytes;
  out.http.write_time = config.write_timeout;
  out.tenant_requests = config.tenant_requests.value_or(out.tenant_requests);
  out.anonymous_requests = config.tenant_requests.value_or(0);
  out.tenant_sessions = config.tenant_sessions.value_or((config.sessions_max + 3) / 4);
  out.anonymous_sessions = config.tenant_sessions.value_or(0);
  return out;
}

SessionLimits session_limits(const ServeConfig& config, const ModelShape& shape) {
  SessionLimits out;
  out.tokens = shape.cells_per_slot - 1;
  out.sessions = config.sessions_max;
  out.ttl = config.session_ttl;
  return out;
}

// First signal: stop admitting and let running requests end. Second: close what is left now. Either way the loop goes
// on until the last handler has returned, so that no coroutine outlives the engine that it uses.
class Shutdown {
 public:
  Shutdown(net::EventLoop& loop, net::HttpServer& server, Admission& admission, Engine& engine, Duration drain_time)
      : loop_(loop), server_(server), admission_(admission), engine_(engine), drain_time_(drain_time) {}

  void begin() {
    const Duration time = begun_ ? Duration::zero() : drain_time_;
    begun_ = true;
    log_info("draining", {{"requests", engine_.in_flight()}, {"seconds", to_seconds(time)}});
    admission_.drain();
    engine_.drain();
    server_.drain(loop_.now() + time, [this] { loop_.stop(); });
  }

 private:
  net::EventLoop& loop_;
  net::HttpServer& server_;
  Admission& admission_;
  Engine& engine_;
  const Duration drain_time_;
  bool begun_ = false;
};

// Each connection is a descriptor; the soft limit of 1,024 is a relic of select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("the limit of open files could not be raised");
}

int run(const ServeConfig& config, const LoadedModel& model, std::unique_ptr<Model> context, KeyRing& keys) {
  const RealClock clock;
  Wakeup wakeup(config.wakeup);
  MetricsPage metrics;
  net::NetMetrics net_metrics;
  net::EventLoop loop(net_metrics);
  const RequestLimits limits = request_limits(config, context->shape());
  const ServiceConfig settings = service_config(config, model);
  Admission admission(admission_config(config, context->shape()));
  SessionTable sessions(session_limits(config, context->shape()), *model.tokenizer);
  const FingerprintMaker fingerprints;
  ResponseStore responses;
  const EngineConfig engine_settings = engine_config(config, context->shape());
  Engine engine(engine_settings, std::move(context), model.tokenizer, clock, wakeup);
  StreamHub streams(engine, loop, settings.unread_max);
  streams.on_finished([&](const Event& event) { sessions.finished(event, clock.now()); });
  net::WakeupListener listener(loop, wakeup, [&streams] { streams.deliver(); });
  net::OffloadPool offload(loop);
  Service service{settings, model, limits,    metrics,      clock,   loop,    offload,
                  engine,   keys,  admission, fingerprints, streams, sessions, responses};
  net::Router router(&http_error);
  add_routes(router, service);
  net::HttpServer server(loop, router, settings.http);
  engine.metrics().add_to(metrics);
  admission.add_to(metrics, engine.metrics().requests_refused);
  sessions.metrics().add_to(metrics);
  net_metrics.add_to(metrics);
  offload.add_to(metrics);

  const auto url = open_doors(server, config);
  if (!url) return fail(url.error());
  Shutdown shutdown(loop, server, admission, engine, config.drain_time);
  SessionSweep sweep(loop, sessions);
  KeyReload reload(config, keys, loop, offload);
  loop.on_signal(SIGTERM, [&shutdown] { shutdown.begin(); });
  loop.on_signal(SIGINT, [&shutdown] { shutdown.begin(); });
  // Without a key file SIGHUP means what it means everywhere: the terminal has gone.
  if (!config.api_key_file.empty()) loop.on_signal(SIGHUP, [&reload] { reload.begin(); });
  greet(*url, service);
  loop.run();
  log_info("stopped");
  return 0;
}

}  // namespace

int serve(const ServeConfig& config) {
  configure_log(config.log_level, config.log_format);
  raise_descriptor_limit();
  const auto lines = read_keys(config.api_keys, config.api_key_file);
  if (!lines) {
    fail(lines.error());
    return 2;  // as for every mistake on the command line
  }
  KeyRing keys;
  keys.replace(*lines);
  if (auto good = check_address(config); !good) return fail(good.error());
  auto model = load(config);
  if (!model) return fail(model.error());
  const ModelConfig capacity = with_capacity(config.model, model->info);
  if (capacity.cells < 2 * capacity.slots) {
    return fail(invalid_field("--ctx-size", "--ctx-size " + std::to_string(capacity.cells) + " is too little for " +
                                                std::to_string(capacity.slots) + " slots: see --parallel"));
  }
  auto context = model->make(capacity);
  if (!context) return fail(context.error());
  return run(config, *model, std::move(*context), keys);
}

}  // namespace chasqui
