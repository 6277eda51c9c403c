#include "app/serve.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "app/backends.h"
#include "app/gpu_energy.h"
#include "app/kv_publisher.h"
#include "app/log_file.h"
#include "app/log_writer.h"
#include "app/model_parts.h"
#include "app/record_writer.h"
#include "app/serve_plan.h"
#include "app/server.h"
#include "base/clock.h"
#include "base/cpu_account.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "base/rapl_energy.h"
#include "model/llama_runtime.h"
#include "store/line_queue_choice.h"

namespace chasqui {
namespace {

int fail(const Error& error, int code = 1) {
  flush_log();
  std::fprintf(stderr, "chasqui: %s\n", error.message.c_str());
  return code;
}

// Each connection is a descriptor; the soft limit of 1,024 is a relic of select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("the limit of open files could not be raised");
}

// Models load for minutes, and the loop hears no signal meanwhile: a SIGHUP that means files to be read again, or comes
// from a service manager, which hands sockets over, waits for it. Before other threads are made, which take over what
// is blocked.
class HeldHangup {
 public:
  explicit HeldHangup(const ServeConfig& config) {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGHUP);
    const bool managed = std::getenv("LISTEN_FDS") != nullptr;
    if (config.reads_files_again() || managed) ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void release() const { ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr); }

 private:
  sigset_t set_;
};

// Only what all clients share: a router cannot tell tenants apart, and tokens of one are not for others.
Result<std::unique_ptr<KvPublisher>> open_publisher(const ServeConfig& config, const KeyRing& keys) {
  if (config.cache_shared) return KvPublisher::open(config.kv_events, kAllTenants);
  if (const auto tenant = keys.only_tenant()) {
    return KvPublisher::open(config.kv_events, {tenant->id, tenant->lasting});
  }
  return invalid_field("--kv-events",
                       "--kv-events is for one tenant, since routers cannot tell tenants apart: the keys have several, "
                       "so let them share what is cached with --cache-shared, or give their keys one name=");
}

// What counts the energy of GPUs, where there are any; null: there are none.
NvmlEnergy* measure_energy() {
  const TimePoint now = RealClock().now();
  std::vector<std::unique_ptr<EnergySource>> sources;
  if (auto packages = RaplEnergy::open("/sys/class/powercap", now)) sources.push_back(std::move(packages));
  NvmlEnergy* gpus = nullptr;
  if (offloads_to_gpu()) {
    auto energy = std::make_unique<NvmlEnergy>(now);
    gpus = energy.get();
    sources.push_back(std::move(energy));
  }
  if (!sources.empty()) cpu_account().measure_energy(std::make_unique<EnergyMeter>(std::move(sources)));
  return gpus;
}

// All that logs, and ends before the log does.
int serve_with(ServeConfig& config, const HeldHangup& hangup, const LogMetrics& log_metrics, LogFile& log_file) {
  for (const std::string& note : config.notes) log_warning(note);
  log_backends();
  ExitGuard guard;
  raise_descriptor_limit();
  NvmlEnergy* const gpus = measure_energy();
  auto plan = plan_serve(config);
  if (!plan) return fail(plan.error(), 2);  // as for every mistake on the command line
  KeyRing keys;
  keys.replace(plan->keys);
  // OpenSSL and the clients of Redis and NATS write to sockets without the flag that Asio has: a peer that has gone
  // would end the process.
  const bool closes = plan->tls || config.shared.wanted() || !config.batch_queue.empty();
  if (closes) std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  const RealClock queue_clock;                // outlives the server
  std::unique_ptr<LineQueue> queue;
  if (!config.batch_queue.empty()) queue = store::make_line_queue(config.batch_queue, queue_clock);
  std::shared_ptr<JobFolder> jobs;
  if (!config.batch_dir.empty()) {
    auto folder = JobFolder::open(config.batch_dir);
    if (!folder) return fail(folder.error(), 2);
    jobs = std::move(*folder);
  }
  std::unique_ptr<RecordWriter> recorder;
  if (!config.record.empty()) {
    auto opened = RecordWriter::open(config.record);
    if (!opened) return fail(opened.error(), 2);
    recorder = std::move(*opened);
  }
  std::unique_ptr<KvPublisher> publisher;
  if (!config.kv_events.endpoint.empty()) {
    auto opened = open_publisher(config, keys);
    if (!opened) return fail(opened.error(), 2);
    publisher = std::move(*opened);
  }
  std::optional<GpuEnergy> gpu_energy;
  if (gpus != nullptr) {
    gpu_energy.emplace(*gpus, cpu_account());
    for (ServeConfig& model : config.models) {
      model.model.on_gpus = [&gpu_energy](const std::vector<std::string>& addresses) { gpu_energy->use(addresses); };
    }
  }
  auto models = load_models(config, std::move(plan->loads));
  if (!models) return fail(models.error());
  Server server(config,
                {plan->listeners, std::move(*models), plan->collector, std::move(plan->tls), std::move(jobs),
                 std::move(queue), recorder.get(), publisher.get()},
                keys, log_metrics, log_file, guard);
  if (auto open = server.open(); !open) return fail(open.error());
  hangup.release();
  server.run();
  return 0;
}

}  // namespace

int serve(ServeConfig config) {
  const HeldHangup hangup(config);
  LogMetrics log_metrics;
  auto log_file = LogFile::open(config.log_file);
  if (!log_file) return fail(log_file.error(), 2);
  configure_log_for(log_file->descriptor(), config.log_level, config.log_format);
  LogWriter log(log_metrics, kCountLimit<"log_lines">, log_file->descriptor());
  const int code = serve_with(config, hangup, log_metrics, *log_file);
  if (!log.close()) ::_exit(code);
  return code;
}

}  // namespace chasqui
