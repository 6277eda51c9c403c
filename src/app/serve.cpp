#include "app/serve.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <thread>

#include <chasqui_demo_model.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/frame_door.h"
#include "api/routes.h"
#include "api/service.h"
#include "api/span_exporter.h"
#include "app/capacity.h"
#include "app/key_reload.h"
#include "app/session_sweep.h"
#include "app/shutdown.h"
#include "app/watching_options.h"
#include "model/sleepy_model.h"
#include "net/frame_server.h"
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
  options.sleeps = config.operation.sleep_after > Duration::zero();
  auto adapters = adapter_files(config.adapters);
  if (!adapters) return adapters.error();
  options.weights.adapters = std::move(*adapters);
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
  auto options = load_options(config);
  if (!options) return options.error();
  if (config.engine == EngineKind::sim) {
    SimOptions sim;
    sim.spend = [](Duration time) { std::this_thread::sleep_for(time); };
    return load_sim(sim, options->weights.adapters);
  }
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

Result<std::string> open_doors(net::HttpServer& server, net::FrameServer& frames, const ServeConfig& config) {
  std::string url;
  std::string said;  // when all are open, and not when one of them fails
  if (!config.host.empty()) {
    auto bound = server.listen(net::ListenAddress::tcp(config.host, config.port));
    if (!bound) return bound.error();
    url = "http://" + bound->text;
    said += "listening on " + url + '\n';
  }
  if (!config.unix_socket.empty()) {
    auto bound = server.listen(net::ListenAddress::unix_socket(config.unix_socket, config.socket_mode));
    if (!bound) return bound.error();
    said += "listening on " + bound->text + '\n';
  }
  if (!config.socket.empty()) {
    auto bound = frames.listen(net::ListenAddress::unix_socket(config.socket, config.socket_mode));
    if (!bound) return bound.error();
    said += "listening on " + bound->text + " for frames\n";
  }
  std::fputs(said.c_str(), stdout);
  return url;
}

void greet(const std::string& url, const Service& service) {
  const ModelShape& shape = service.engine.shape();
  const std::size_t workers = service.engine.workers();
  const std::string shared = workers > 1 ? " of " + std::to_string(workers) + " workers" : "";
  std::printf("serving %s (%s), %d slots of %d tokens%s\n", service.config.model_name.c_str(),
              service.model.info.description.c_str(), shape.slots, shape.cells_per_slot, shared.c_str());
  if (!url.empty()) {
    if (service.config.page) std::printf("talk to it in a browser: %s/\n", url.c_str());
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
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    out.queue_wait[c] = config.queue_wait.empty() ? config.targets.of[c].first_token : config.queue_wait[c];
  }
  return out;
}

// What is kept must not crowd out what runs, the page cache of the model file included.
ReuseConfig reuse_config(const ServeConfig& config) {
  constexpr std::size_t kMiB = 1 << 20;
  ReuseConfig out;
  out.shared_by_tenants = config.cache_shared;
  out.cache.bytes = config.cache_ram < 0
                        ? std::numeric_limits<std::size_t>::max() / 2
                        : std::min(static_cast<std::size_t>(config.cache_ram) * kMiB, physical_memory() / 4);
  if (config.cache_disk.empty()) return out;
  // What waits to be written is in memory, too.
  out.disk.emplace();
  out.disk->bytes = static_cast<std::uint64_t>(config.cache_disk_mib) * kMiB;
  out.disk->queue_bytes = out.cache.bytes / 4;
  out.cache.bytes -= out.disk->queue_bytes;
  return out;
}

// The folders of the server; null: not wanted. Each is a folder in the one that was named, since it is for the server's
// user alone.
struct Folders {
  std::shared_ptr<SnapshotFolder> snapshots;
  std::unique_ptr<SessionStore> sessions;
  std::unique_ptr<SlotFiles> slots;
};

Result<Folders> open_folders(const ServeConfig& config, const LoadedModel& model, const ModelConfig& context,
                             const ModelShape& shape) {
  Folders out;
  if (config.cache_disk.empty() && config.session_dir.empty() && config.slot_save_path.empty()) return out;
  if (!config.cache_disk.empty() && config.cache_ram == 0) {
    return invalid_field("--cache-disk", "--cache-disk needs host memory to read into: --cache-ram must not be 0");
  }
  if (!config.slot_save_path.empty() && config.cache_ram == 0) {
    return invalid_field("--slot-save-path", "--slot-save-path saves what --cache-ram keeps, which must not be 0");
  }
  const auto identity = model.identify(context, shape);
  if (!identity) return identity.error();
  if (!config.cache_disk.empty()) {
    auto folder = SnapshotFolder::open(config.cache_disk + "/snapshots", *identity);
    if (!folder) return folder.error();
    out.snapshots = std::move(*folder);
  }
  if (!config.session_dir.empty()) {
    auto store = SessionStore::open(config.session_dir + "/sessions", identity->weights);
    if (!store) return store.error();
    out.sessions = std::move(*store);
  }
  if (!config.slot_save_path.empty()) {
    const std::uint64_t most = static_cast<std::uint64_t>(config.slot_save_mib) << 20;
    auto files = SlotFiles::open(config.slot_save_path + "/slots", *identity, most);
    if (!files) return files.error();
    out.slots = std::move(*files);
  }
  return out;
}

EngineConfig engine_config(const ServeConfig& config, const ModelInfo& model, const ModelShape& shape) {
  EngineConfig out;
  for (const AdapterInfo& adapter : model.adapters) out.adapters.push_back(adapter.name);
  out.reuse = reuse_config(config);
  out.reuse.notes_slots = !config.slot_save_path.empty();
  out.targets = config.targets;
  out.policy = config.policy;
  out.sleep_after = config.operation.sleep_after;
  // Admission refuses first. A request that was cancelled gives its permit back a step before the engine is rid of it,
  // hence the room.
  out.waiting_max = config.queue_requests + 2 * static_cast<std::size_t>(shape.slots) + 64;
  out.pins_max = config.sessions_max;
  return out;
}

ServiceConfig service_config(const ServeConfig& config, const LoadedModel& model) {
  ServiceConfig out;
  out.model_name = config.alias.empty() ? model.info.name : config.alias;
  out.version = CHASQUI_VERSION;
  out.page = config.page;
  out.cache_prompt = config.cache_prompt;
  out.cache_shared = config.cache_shared;
  out.show_slots = config.operation.show_slots;
  out.traces = !config.otlp_endpoint.empty();
  out.cache_bytes = reuse_config(config).cache.bytes;
  out.disk_cache_bytes = config.cache_disk.empty() ? 0 : static_cast<std::uint64_t>(config.cache_disk_mib) << 20;
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

// Each connection is a descriptor; the soft limit of 1,024 is a relic of select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("the limit of open files could not be raised");
}

// What happens to requests, as opposed to bytes.
void add_request_metrics(MetricsPage& metrics, const std::string& model_name, Engine& engine,
                         const Admission& admission, const SessionTable& sessions) {
  engine.add_metrics_to(metrics);
  engine.add_compat_metrics_to(metrics, model_name);
  admission.add_to(metrics, engine.door_metrics().requests_refused);
  sessions.metrics().add_to(metrics);
}

// Null where there is no folder for it.
std::unique_ptr<SlotKeeper> keep_slots(std::unique_ptr<SlotFiles> files, Service& service, MetricsPage& metrics) {
  if (!files) return nullptr;
  auto slots = std::make_unique<SlotKeeper>(std::move(files), service.engine, service.clock, service.loop);
  slots->metrics().add_to(metrics);
  service.slots = slots.get();
  return slots;
}

int run(const ServeConfig& config, const LoadedModel& model, Models contexts, Folders folders, KeyRing& keys,
        const std::optional<net::HttpTarget>& collector) {
  const RealClock clock;
  Wakeup wakeup(config.wakeup);
  MetricsPage metrics;
  net::NetMetrics net_metrics;
  net::EventLoop loop(net_metrics);
  const ModelShape shape = shape_of_all(contexts);
  const RequestLimits limits = request_limits(config, shape);
  const ServiceConfig settings = service_config(config, model);
  Admission admission(admission_config(config, shape));
  const FingerprintMaker fingerprints;
  ResponseStore responses;
  EngineConfig engine_settings = engine_config(config, model.info, shape);
  engine_settings.disk = std::move(folders.snapshots);
  Engine engine(engine_settings, std::move(contexts), model.tokenizer, clock, wakeup);
  SessionTable sessions(session_limits(config, shape), *model.tokenizer);
  sessions.on_unpinned([&engine](std::uint64_t pin) { engine.unpin(pin); });
  std::optional<SessionKeeper> keeper;
  if (folders.sessions) {
    keeper.emplace(std::move(folders.sessions), loop, clock).bring_back(sessions, keys, shape.vocabulary);
    keeper->add_to(metrics);
  }
  StreamHub streams(engine, loop, settings.unread_max);
  AdapterShelf adapters(model.info.adapters, config.adapters.apply);
  RequestLog requests({config.log_requests, config.log_prompts, settings.traces}, clock, keys);
  streams.on_finished([&](const Event& event) {
    sessions.finished(event, clock.now());
    requests.finished(event);
  });
  net::WakeupListener listener(loop, wakeup, [&streams] { streams.deliver(); });
  net::OffloadPool offload(loop);
  Service service{
      settings, model,     limits,       metrics, clock,    loop,     offload,   engine,
      keys,     admission, fingerprints, streams, sessions, adapters, responses, keeper ? &*keeper : nullptr,
      &requests};
  const std::unique_ptr<SlotKeeper> slots = keep_slots(std::move(folders.slots), service, metrics);
  std::optional<SpanExporter> spans;
  if (collector) {
    spans.emplace(loop, offload, *collector, SpanSource{settings.model_name, settings.version});
    requests.on_ended([&spans](const std::shared_ptr<RequestRecord>& record) { spans->add(record); });
    spans->add_to(metrics);
  }
  net::Router router(&http_error);
  add_routes(router, service);
  net::HttpServer server(loop, router, settings.http);
  FrameDoor door(service);
  net::FrameMetrics frame_metrics;
  net::FrameServer frames(loop, frame_metrics, settings.frames,
                          [&door](net::FrameConnection& connection) { return door.open(connection); });
  add_request_metrics(metrics, settings.model_name, engine, admission, sessions);
  net_metrics.add_to(metrics);
  frame_metrics.add_to(metrics);
  offload.add_to(metrics);

  const auto url = open_doors(server, frames, config);
  if (!url) return fail(url.error());
  Shutdown shutdown(loop, server, frames, admission, engine, config.drain_time, spans ? &*spans : nullptr);
  SessionSweep sweep(loop, sessions);
  KeyReload reload(config, keys, loop, offload);
  for (const int end : {SIGTERM, SIGINT}) loop.on_signal(end, [&shutdown] { shutdown.begin(); });
  // Without a key file SIGHUP means what it means everywhere: the terminal has gone.
  if (!config.api_key_file.empty()) loop.on_signal(SIGHUP, [&reload] { reload.begin(); });
  greet(*url, service);
  loop.run();
  if (keeper) keeper->finish();
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
  const auto collector = collector_of(config);
  if (!collector) return fail(collector.error());
  auto model = load(config);
  if (!model) return fail(model.error());
  const ModelConfig whole = with_capacity(config.model, model->info, config.workers);
  const auto part = part_of_worker(whole, config.workers, default_threads());
  if (!part) return fail(part.error());
  const auto make = [&make_context = model->make, &part] { return make_context(*part); };
  const bool sleeps = config.operation.sleep_after > Duration::zero();
  // One after the other, so that each finds its number of compute threads on cores that the others do not use.
  Models contexts;
  for (std::int32_t i = 0; i < config.workers; ++i) {
    auto context = sleeps ? SleepyModel::start(make) : make();
    if (!context) return fail(context.error());
    contexts.push_back(std::move(*context));
  }
  auto folders = open_folders(config, *model, *part, contexts.front()->shape());
  if (!folders) return fail(folders.error());
  return run(config, *model, std::move(contexts), std::move(*folders), keys, *collector);
}

}  // namespace chasqui
