#include "app/serve.h"

#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

#include <chasqui_demo_model.h>
#include <sys/resource.h>

#include "app/capacity.h"
#include "app/draft_models.h"
#include "app/load_guard.h"
#include "app/log_file.h"
#include "app/log_writer.h"
#include "app/progress_bar.h"
#include "app/serve_plan.h"
#include "app/server.h"
#include "app/tuning_file.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "cli/machine.h"
#include "model/llama_runtime.h"
#include "model/llama_threads.h"
#include "model/sleepy_model.h"

namespace chasqui {
namespace {

int fail(const Error& error, int code = 1) {
  flush_log();
  std::fprintf(stderr, "chasqui: %s\n", error.message.c_str());
  return code;
}

Result<LoadedModel> load(const ServeConfig& config, LoadOptions options) {
  if (config.engine == EngineKind::sim) {
    SimOptions sim;
    sim.spend = [](Duration time) { std::this_thread::sleep_for(time); };
    if (config.sim_step_ms) {
      sim.step = std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(*config.sim_step_ms));
      sim.decode_row = sim.prefill_row = Duration::zero();
      if (sim.step == Duration::zero()) sim.spend = {};
    }
    if (!options.chat_template.empty()) return load_forced_sim(demo_model(), options, sim);
    return load_sim(sim, options.weights.adapters);
  }
  ProgressBar bar("loading the model", ProgressBar::End::stays, true);
  options.weights.progress = [&bar](double share) { return bar.show(share); };
  auto model = config.model_path.empty() ? load_llama(demo_model(), "chasqui-demo", options)
                                         : load_llama(config.model_path, options);
  if (model) bar.done();
  return model;
}

// Each connection is a descriptor; the soft limit of 1,024 is a relic of select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("the limit of open files could not be raised");
}

Result<Folders> open_folders(const ServeConfig& config, const LoadedModel& model, const ModelConfig& context,
                             const ModelShape& shape) {
  Folders out;
  if (config.cache_disk.empty() && config.session_dir.empty() && config.slot_save_path.empty()) return out;
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

// One after the other, so that each finds its number of compute threads on cores that the others do not use. `part` is
// kept by those that will be made again after they have slept.
Result<Models> make_contexts(const ServeConfig& config, const LoadedModel& model, ModelConfig& part) {
  std::optional<TuningFile> tuning;
  ThreadFigures measured;
  if (config.engine == EngineKind::llama) {
    tuning.emplace(tuning_folder(config), tuned_for(config, model.info, part));
    part.thread_figures = tuning->read();
    part.on_threads_measured = [&measured](const ThreadFigures& figures) { measured = figures; };
  }
  const auto make = [&make_context = model.make, &part] { return make_context(part); };
  const bool sleeps = config.operation.sleep_after > Duration::zero();
  Models contexts;
  ProgressBar bar("trying compute threads", ProgressBar::End::stays, true);
  for (std::int32_t i = 0; i < config.workers; ++i) {
    bar.show(static_cast<double>(i) / config.workers);
    auto context = sleeps ? SleepyModel::start(make) : make();
    if (!context) return context.error();
    contexts.push_back(std::move(*context));
    if (part.thread_figures.empty()) part.thread_figures = measured;  // the next ones are like it
  }
  bar.done();
  part.on_threads_measured = nullptr;
  if (tuning && !measured.empty()) tuning->write(measured);
  return contexts;
}

// Bytes that --fit-target leaves free.
std::optional<std::uint64_t> fit_target(const ServeConfig& config) {
  if (!config.fit_target_mib) return std::nullopt;
  return static_cast<std::uint64_t>(*config.fit_target_mib) << 20;
}

}  // namespace

int serve(ServeConfig config) {
  configure_log(config.log_level, config.log_format);
  LogMetrics log_metrics;
  auto log_file = LogFile::open(config.log_file);
  if (!log_file) return fail(log_file.error(), 2);
  LogWriter log(log_metrics, kCountLimit<"log_lines">, log_file->descriptor());
  for (const std::string& note : config.notes) log_warning(note);
  ExitGuard guard;
  raise_descriptor_limit();
  auto plan = plan_serve(config);
  if (!plan) return fail(plan.error(), 2);  // as for every mistake on the command line
  KeyRing keys;
  keys.replace(plan->keys);
  // OpenSSL writes to sockets without the flag that Asio has, so a client that has gone would end the process.
  if (plan->tls) std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail
  std::optional<LoadGuard> load_guard(std::in_place, config.model_path.empty() ? "chasqui-demo" : config.model_path);
  const std::uint64_t free_bytes = cli::look_at_machine().free_bytes();
  auto model = load(config, std::move(plan->load));
  if (!model) return fail(model.error());
  const std::uint64_t kv_bytes =
      kv_bytes_for(free_bytes, model->info.size_bytes, offloads_to_gpu(), fit_target(config));
  const ModelConfig whole = with_capacity(config.model, model->info, kv_bytes, config.workers);
  auto part = part_of_worker(whole, config.workers, default_threads(config.llama));
  if (!part) return fail(part.error());
  part->outputs_max = outputs_for(part->slots, config.speculation.draft_tokens_max());
  auto heads = choose_heads(config, *model);
  if (!heads) return fail(heads.error());
  part->heads = std::move(*heads);
  const bool sleeps = config.operation.sleep_after > Duration::zero();
  auto contexts = make_contexts(config, *model, *part);
  if (!contexts) return fail(contexts.error());
  auto drafts = make_drafts(config, *model, *part);
  if (!drafts) return fail(drafts.error());
  load_guard.reset();
  auto folders = open_folders(config, *model, *part, contexts->front()->shape());
  if (!folders) return fail(folders.error());
  const auto embedding =
      EmbeddingService::configure(*model, config.pooling, contexts->front()->shape().cells_per_slot, sleeps);
  if (!embedding) return fail(embedding.error());
  Server server(config, *model,
                {plan->listeners, std::move(*contexts), std::move(*drafts), std::move(*folders), *embedding,
                 plan->collector, std::move(plan->tls)},
                keys, log_metrics, *log_file, guard);
  if (auto open = server.open(); !open) return fail(open.error());
  server.run();
  return 0;
}

}  // namespace chasqui
