#include "app/serve_plan.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "app/capacity.h"
#include "app/draft_models.h"
#include "app/link_service.h"
#include "app/media_decoders.h"
#include "app/model_memory.h"
#include "app/observability_options.h"
#include "app/record_writer.h"
#include "app/rpc_peers.h"
#include "app/settings.h"
#include "app/tls_reload.h"
#include "cli/doctor.h"
#include "model/core_share.h"
#include "model/llama_options.h"
#include "store/line_queue_choice.h"

namespace chasqui {
namespace {

Result<void> good(const std::string& flag, const cli::Finding& finding) {
  if (finding.level != cli::Finding::Level::bad) return {};
  return invalid_field(flag, flag + ": " + finding.found);
}

Result<void> check_file(const std::string& flag, const std::string& path) {
  if (path.empty()) return {};
  return good(flag, cli::check_readable(flag, path, false));
}

Result<void> check_folders(const ServeConfig& config) {
  if (!config.cache_disk.empty() && config.cache_ram == 0) {
    return invalid_field("--cache-disk", "--cache-disk needs host memory to read into: --cache-ram must not be 0");
  }
  if (!config.slot_save_path.empty() && config.cache_ram == 0) {
    return invalid_field("--slot-save-path", "--slot-save-path saves what --cache-ram keeps, which must not be 0");
  }
  const std::pair<const char*, const std::string&> folders[] = {
      {"--cache-disk", config.cache_disk},
      {"--session-dir", config.session_dir},
      {"--slot-save-path", config.slot_save_path},
  };
  for (const auto& [flag, path] : folders) {
    if (path.empty()) continue;
    if (auto usable = good(flag, cli::check_folder(flag, path)); !usable) return usable;
  }
  if (config.batch_dir.empty()) return {};
  return good("--batch-dir", cli::check_private_folder("--batch-dir", config.batch_dir));
}

// Only what is known without the model: the numbers that were given.
Result<void> check_capacity(const ServeConfig& config) {
  if (!config.fit && config.model.cells == 0) {
    return invalid_field("--fit", "--fit off leaves open how many cells there are: give --ctx-size N, too");
  }
  if (config.model.slots == 0) return {};
  ModelConfig whole = config.model;
  if (whole.cells == 0) whole.cells = 2 * whole.slots;
  const auto part = part_of_worker(whole, config.workers, 1);
  if (!part) return part.error();
  return {};
}

Result<void> check_speculation(SpeculationOptions& speculation) {
  if (auto usable = check_file("--model-draft", speculation.draft_model); !usable) return usable;
  const bool needs_file = speculation.source == DraftSource::draft || speculation.source == DraftSource::eagle3;
  if (needs_file && speculation.draft_model.empty()) {
    const std::string type = speculation.source == DraftSource::draft ? "draft" : "eagle3";
    return invalid_field("--spec-type", "--spec-type " + type + " needs a file: --model-draft FILE");
  }
  return find_drafter(speculation);
}

Result<LoadOptions> load_options(const ServeConfig& config) {
  LoadOptions options;
  options.weights.gpu_layers = config.gpu_layers;
  options.weights.mmap = config.use_mmap;
  options.weights.mlock = config.use_mlock;
  options.weights.llama = config.llama;
  options.weights.heads = config.speculation.source == DraftSource::mtp;
  options.weights.on_trial = config.on_trial;
  follow_peers(options.weights);
  options.grammar_engine = config.grammar_engine;
  options.forced_tokens = config.forced_tokens;
  options.sleeps = can_sleep(config);
  const bool sim = config.engine == EngineKind::sim;
  auto adapters = adapter_files(config.adapters);
  if (!adapters) return adapters.error();
  if (adapters->size() > kAdaptersMax) {
    return invalid_field("--lora", "--lora and --lora-scaled name " + std::to_string(adapters->size()) +
                                       " adapters; a model has at most " + std::to_string(kAdaptersMax));
  }
  for (const AdapterFile& adapter : *adapters) {
    if (sim) break;  // it does not read them
    if (auto usable = check_file("--lora", adapter.path); !usable) return usable.error();
  }
  options.weights.adapters = std::move(*adapters);
  auto media = media_options(config.media, sim ? "" : config.model_path, !config.hf_repo.empty());
  if (!media) return media.error();
  options.media = std::move(*media);
  options.media.cores = config.model.cores;
  options.media.decoder = config.decoders;
  options.media.flash_attention = config.model.flash_attention;
  if (auto usable = check_file("--chat-template-file", config.chat_template_file); !usable) return usable.error();
  if (!config.chat_template_file.empty()) {
    std::ifstream file(config.chat_template_file);
    options.chat_template.assign(std::istreambuf_iterator<char>(file), {});
  } else if (config.llama) {
    options.chat_template = config.llama->chat_template();
  }
  return options;
}

// One that stays loaded is there twice while another version replaces it, if there is memory for that.
void let_large_ones_rest(std::vector<ServeConfig>& models) {
  std::uint64_t all = 0;
  std::vector<std::uint64_t> needs;
  for (const ServeConfig& model : models) {
    needs.push_back(model.on_demand ? 0 : memory_needed(model));
    all += needs.back();
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].rests = needs[i] > 0 && all + needs[i] > models_memory(models[i]);
  }
}

// Those on certain CPUs have these to themselves.
void share_cores(std::vector<ServeConfig>& models) {
  std::size_t contexts = 0;
  for (const ServeConfig& model : models) contexts += static_cast<std::size_t>(model.workers) + 1;  // and a projector
  // Of each there are at most three versions at once: one that is loaded, one that serves, one that leaves.
  const auto cores = std::make_shared<CoreShare>(default_threads(), 3 * contexts);
  for (ServeConfig& model : models) {
    if (!model.llama || !model.llama->names_cpus()) model.model.cores = cores;
  }
}

Result<void> check_batch_queue(const ServeConfig& config) {
  if (config.batch_queue.empty()) return {};
  if (config.batch_dir.empty()) {
    return invalid_field("--batch-queue",
                         "--batch-queue is for the batches of this server: say with --batch-dir where it keeps them");
  }
  return store::check_line_queue(config.batch_queue);
}

// All but the models.
Result<ServePlan> plan_server(const ServeConfig& config) {
  ServePlan plan;
  auto keys = read_keys(config.api_keys, config.api_key_file);
  if (!keys) return keys.error();
  plan.keys = std::move(*keys);
  auto tls = read_tls_identity(config);
  if (!tls) return tls.error();
  plan.tls = std::move(*tls);
  auto listeners = listeners_of(config);
  if (!listeners) return listeners.error();
  plan.listeners = std::move(*listeners);
  if (auto free = check_listeners(plan.listeners); !free) return free.error();
  auto collector = collector_of(config);
  if (!collector) return collector.error();
  plan.collector = std::move(*collector);
  if (!config.record.empty()) {
    if (auto usable = RecordWriter::check(config.record); !usable) return usable.error();
  }
  if (auto usable = publish::check_kv_events(config.kv_events, config.models.size()); !usable) return usable.error();
  if (auto usable = check_batch_queue(config); !usable) return usable.error();
  if (auto usable = LinkService::check(config.media.url_hosts); !usable) return usable.error();
  return plan;
}

}  // namespace

Result<LoadOptions> plan_model(ServeConfig& config) {
  if (auto usable = check_capacity(config); !usable) return usable.error();
  if (auto usable = check_folders(config); !usable) return usable.error();
  if (!config.on_demand) {  // of those the others are served
    if (!config.not_found.empty()) return invalid_field("--model", config.not_found);
    const auto usable = check_file("--model", config.engine == EngineKind::llama ? config.model_path : "");
    if (!usable) return usable.error();
  }
  if (auto usable = check_speculation(config.speculation); !usable) return usable.error();
  return load_options(config);
}

Result<ServePlan> plan_serve(ServeConfig& config) {
  auto plan = plan_server(config);
  if (!plan) return with_origin(plan.error(), config.origins);
  if (auto usable = complete_shared_store(config.shared, config.session_dir); !usable) {
    return with_origin(usable.error(), config.origins);
  }
  for (ServeConfig& model : config.models) model.shared = config.shared;
  share_cores(config.models);
  let_large_ones_rest(config.models);
  config.decoders = std::make_shared<MediaDecoders>();
  for (ServeConfig& model : config.models) model.decoders = config.decoders;
  for (ServeConfig& model : config.models) {
    auto load = plan_model(model);
    if (!load) return with_origin(load.error(), model.origins);
    plan->loads.push_back(std::move(*load));
  }
  return plan;
}

}  // namespace chasqui
