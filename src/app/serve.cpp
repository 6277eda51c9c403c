#include "app/serve.h"

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include <sys/resource.h>

#include "api/routes.h"
#include "api/service.h"
#include "app/capacity.h"
#include "net/http_server.h"
#include "net/wakeup_listener.h"

// The bytes of models/demo/chasqui-demo.gguf; see models/demo/embed.S.
// NOLINTBEGIN(readability-identifier-naming): the assembler's symbols
extern "C" {
extern const std::byte chasqui_demo_model[];
extern const std::byte chasqui_demo_model_end[];
}
// NOLINTEND(readability-identifier-naming)

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
  return load_llama(std::span(chasqui_demo_model, chasqui_demo_model_end), "chasqui-demo", *options);
}

// A server that strangers can reach without a key is a mistake more often than a wish.
Result<void> check_address(const ServeConfig& config) {
  if (config.host.empty()) return {};
  const auto address = net::ListenAddress::tcp(config.host, config.port);
  if (!address.is_valid()) {
    return invalid_field(
        "--host", "--host " + config.host + " must be an IPv4 or IPv6 address, localhost, or a path ending in .sock");
  }
  if (!config.api_keys.empty() || config.no_auth || address.is_loopback()) return {};
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

// First signal: stop admitting and let running requests end. Second: close what is left now. Either way the loop goes
// on until the last handler has returned, so that no coroutine outlives the engine that it uses.
class Shutdown {
 public:
  Shutdown(net::EventLoop& loop, net::HttpServer& server, Engine& engine, Duration drain_time)
      : loop_(loop), server_(server), engine_(engine), drain_time_(drain_time) {}

  void begin() {
    const Duration time = begun_ ? Duration::zero() : drain_time_;
    begun_ = true;
    log_info("draining", {{"requests", engine_.in_flight()}, {"seconds", to_seconds(time)}});
    engine_.drain();
    server_.drain(loop_.now() + time, [this] { loop_.stop(); });
  }

 private:
  net::EventLoop& loop_;
  net::HttpServer& server_;
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

int run(const ServeConfig& config, const LoadedModel& model, std::unique_ptr<Model> context) {
  const RealClock clock;
  Wakeup wakeup(config.wakeup);
  MetricsPage metrics;
  net::NetMetrics net_metrics;
  net::EventLoop loop(net_metrics);
  const RequestLimits limits = request_limits(config, context->shape());
  EngineConfig engine_config;
  engine_config.waiting_max = config.waiting_max;
  Engine engine(engine_config, std::move(context), model.tokenizer, clock, wakeup);
  ServiceConfig service_config;
  service_config.model_name = config.alias.empty() ? model.info.name : config.alias;
  service_config.api_keys = config.api_keys;
  service_config.version = CHASQUI_VERSION;
  service_config.http.write_time = config.write_timeout;
  StreamHub streams(engine, loop, service_config.unread_max);
  net::WakeupListener listener(loop, wakeup, [&streams] { streams.deliver(); });
  net::OffloadPool offload(loop);
  Service service{service_config, model, limits, metrics, clock, loop, offload, engine, streams};
  net::Router router(&http_error);
  add_routes(router, service);
  net::HttpServer server(loop, router, service_config.http);
  engine.metrics().add_to(metrics);
  net_metrics.add_to(metrics);
  offload.add_to(metrics);

  const auto url = open_doors(server, config);
  if (!url) return fail(url.error());
  Shutdown shutdown(loop, server, engine, config.drain_time);
  loop.on_signal(SIGTERM, [&shutdown] { shutdown.begin(); });
  loop.on_signal(SIGINT, [&shutdown] { shutdown.begin(); });
  greet(*url, service);
  loop.run();
  log_info("stopped");
  return 0;
}

}  // namespace

int serve(const ServeConfig& config) {
  configure_log(config.log_level, config.log_format);
  raise_descriptor_limit();
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
  return run(config, *model, std::move(*context));
}

}  // namespace chasqui
