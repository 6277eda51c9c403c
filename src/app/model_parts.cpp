#include "app/model_parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <chasqui_demo_model.h>

#include "app/capacity.h"
#include "app/draft_models.h"
#include "app/load_guard.h"
#include "app/load_trial.h"
#include "app/model_memory.h"
#include "app/progress_bar.h"
#include "app/rpc_peers.h"
#include "app/settings.h"
#include "app/tuning_file.h"
#include "base/ascii.h"
#include "base/log.h"
#include "cli/machine.h"
#include "model/core_share.h"
#include "model/llama_runtime.h"
#include "model/llama_threads.h"
#include "model/sleepy_model.h"
#include "model/vocabulary_identity.h"

namespace chasqui {
namespace {

Result<LoadedModel> load_weights(const ServeConfig& config, LoadOptions options) {
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
  std::optional<ProgressBar> bar;
  if (!options.weights.progress) {
    bar.emplace(config.listed == 1 ? "loading the model" : "loading " + names_of_model(config).front(),
                ProgressBar::End::stays, true);
    options.weights.progress = [&bar](double share) { return bar->show(share); };
  }
  auto model = config.model_path.empty() ? load_llama(demo_model(), "chasqui-demo", options)
                                         : load_llama(config.model_path, options);
  if (model && bar) bar->done();
  return model;
}

// Several models have folders of their own in it, by their names: a letter that a path cannot have is written as in an
// address.
std::string folder_of(const ServeConfig& config, const std::string& folder) {
  if (config.listed == 1) return folder;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out = folder + "/models/";
  const std::string name = names_of_model(config).front();
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = is_ascii_word_or("-_", c) || (c == '.' && name.front() != '.');
    if (plain) {
      out += c;
    } else {
      out += std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

// Also where no projector is there any more: what tenants have erased must not be left in it.
Result<void> open_encodings(const ServeConfig& config, const ModelParts& parts, Folders& out) {
  if (config.cache_disk.empty()) return {};
  const std::string path = folder_of(config, config.cache_disk) + "/encodings";
  std::error_code failed;
  const bool encodes = parts.contexts.front()->encoder() != nullptr;
  if (!encodes && !std::filesystem::exists(path, failed)) return {};
  auto folder = EncodingFolder::open(path, disk_for_encodings(config));
  if (!folder) return folder.error();
  out.encodings = std::move(*folder);
  return {};
}

// Sessions go on in the table, and the folder, of the version before.
Result<Folders> open_folders(const ServeConfig& config, ModelParts& parts, const ModelConfig& context,
                             const ModelShape& shape, const Predecessor* before) {
  Folders out;
  const bool keeps = !config.cache_disk.empty() || !config.session_dir.empty() || !config.slot_save_path.empty();
  if (!keeps && !config.shared.wanted()) return out;
  const auto identity = parts.model.identify(context, shape);
  if (!identity) return identity.error();
  parts.identity = *identity;
  if (config.shared.wanted() && !config.cache_disk.empty()) {
    auto shared = open_shared_snapshots(config.shared, *identity);
    if (!shared) return shared.error();
    out.shared_snapshots = std::move(*shared);
  }
  if (before != nullptr) {
    if (before->snapshots) out.snapshots = before->snapshots->hand_over(*identity);
    out.encodings = before->encodings;  // each file says of which projector it is
    if (!out.encodings) {
      if (auto opened = open_encodings(config, parts, out); !opened) return opened.error();
    }
    if (before->slots) out.slots = before->slots->hand_over(*identity);
    return out;
  }
  if (!config.cache_disk.empty()) {
    auto folder = SnapshotFolder::open(folder_of(config, config.cache_disk) + "/snapshots", *identity);
    if (!folder) return folder.error();
    out.snapshots = std::move(*folder);
  }
  if (auto opened = open_encodings(config, parts, out); !opened) return opened.error();
  if (!config.session_dir.empty()) {
    auto store = SessionStore::open(folder_of(config, config.session_dir) + "/sessions", parts.vocabulary);
    if (!store) return store.error();
    out.sessions = std::move(*store);
  }
  if (config.shared.wanted()) {
    const std::string root = config.listed == 1 ? "" : shared_root_of(names_of_model(config).front());
    auto shared = open_shared_sessions(config.shared, root, parts.vocabulary);
    if (!shared) return shared.error();
    out.shared_sessions = std::move(*shared);
  }
  if (!config.slot_save_path.empty()) {
    const std::uint64_t most = static_cast<std::uint64_t>(config.slot_save_mib) << 20;
    auto files = SlotFiles::open(folder_of(config, config.slot_save_path) + "/slots", *identity, most);
    if (!files) return files.error();
    out.slots = std::move(*files);
  }
  return out;
}

// One after the other, so that each finds its number of compute threads on cores that the others do not use. Those that
// will be made again after they have slept keep what they are made with. Adds to `of_each` what was measured.
Result<Models> make_contexts(const ServeConfig& config, const LoadedModel& model, ModelConfig& of_each) {
  const auto kept = std::make_shared<ModelConfig>(of_each);
  ModelConfig& part = *kept;
  std::optional<TuningFile> tuning;
  ThreadFigures measured;
  if (config.engine == EngineKind::llama) {
    tuning.emplace(tuning_folder(config), tuned_for(config, model.info, part));
    part.thread_figures = tuning->read();
    part.on_threads_measured = [&measured](const ThreadFigures& figures) { measured = figures; };
  }
  const auto make = [make_context = model.make, kept] { return make_context(*kept); };
  const bool sleeps = can_sleep(config);
  Models contexts;
  ProgressBar bar("trying compute threads", ProgressBar::End::stays, true);
  for (std::int32_t i = 0; i < config.workers; ++i) {
    bar.show(static_cast<double>(i) / config.workers);
    auto context = sleeps ? SleepyModel::start(make, config.model.cores) : make();
    if (!context) return context.error();
    contexts.push_back(std::move(*context));
    if (part.thread_figures.empty()) part.thread_figures = measured;  // the next ones are like it
  }
  bar.done();
  part.on_threads_measured = nullptr;
  of_each = part;
  if (tuning && !measured.empty()) tuning->write(measured);
  return contexts;
}

std::uint64_t free_for_models() { return cli::look_at_machine().free_bytes() + memory_of_peers().free_bytes; }

Result<void> make_parts(ModelParts& parts, std::uint64_t free_bytes, std::uint64_t weights,
                        const Predecessor* before = nullptr) {
  const ServeConfig& config = parts.config;
  const std::uint64_t kv_bytes = cell_bytes_of(config, free_bytes, weights, offloads_to_gpu());
  ModelConfig asked = config.model;
  asked.rollback = wanted_rollback(config.speculation, parts.model.info.trims_anywhere());
  const ModelConfig whole = with_capacity(asked, parts.model.info, kv_bytes, config.workers);
  auto part = part_of_worker(whole, config.workers, default_threads(config.llama), config.sharers);
  if (!part) return part.error();
  part->outputs_max = outputs_for(part->slots, config.speculation.draft_tokens_max());
  auto heads = choose_heads(config, parts.model);
  if (!heads) return heads.error();
  part->heads = std::move(*heads);
  auto contexts = make_contexts(config, parts.model, *part);
  if (!contexts) return contexts.error();
  parts.contexts = std::move(*contexts);
  const ModelShape shape = parts.contexts.front()->shape();
  warn_of_no_rollback(config.speculation, shape);
  auto drafts = make_drafts(config, parts.model, *part, shape);
  if (!drafts) return drafts.error();
  parts.drafts = std::move(*drafts);
  const bool sleeps = can_sleep(config);
  const auto embedding = EmbeddingService::configure(parts.model, config.pooling, shape.cells_per_slot, sleeps);
  if (!embedding) return embedding.error();
  parts.embedding = *embedding;
  parts.embedding.cores = config.model.cores;
  parts.embedding.threads = std::max(config.model.threads, config.model.threads_batch);
  parts.vocabulary = identify_vocabulary(*parts.model.tokenizer);
  auto folders = open_folders(config, parts, *part, shape, before);
  if (!folders) return folders.error();
  parts.folders = std::move(*folders);
  return {};
}

// Which of several it is.
Error of_model(const ServeConfig& config, Error error) {
  if (config.listed > 1) error.message = "model " + names_of_model(config).front() + ": " + error.message;
  return error;
}

bool can_be_tried(const ServeConfig& config) {
  return config.models_trial && config.engine == EngineKind::llama && !config.model_path.empty();
}

// One that others are served beside, of a file.
bool is_tried(const ServeConfig& config) { return config.on_demand && can_be_tried(config); }

std::string path_of(const ServeConfig& config) {
  return config.model_path.empty() ? "chasqui-demo" : config.model_path;
}

// All weights are loaded first, so that contexts are made knowing what memory is left.
Result<void> load_all(std::vector<ListedModel>& models) {
  const std::uint64_t free_bytes = free_for_models();
  std::uint64_t weights = 0;
  for (ListedModel& one : models) {
    const LoadGuard guard(path_of(one.config));
    const auto stamp = FileStamp::of(one.config.model_path);
    auto model = load_weights(one.config, one.how);
    if (!model) return model.error();
    weights += model->info.size_bytes;
    one.needs = memory_needed(one.config);
    one.parts.emplace(ModelParts{one.config, std::move(*model)}).stamp = stamp;
  }
  for (ListedModel& one : models) {
    const LoadGuard guard(path_of(one.config));
    if (auto made = make_parts(*one.parts, free_bytes, weights); !made) return of_model(one.config, made.error());
  }
  return {};
}

// Of those on demand, beside those that stay.
Result<ModelParts> load_fitting(const ListedModel& one, std::uint64_t beside) {
  if (one.config.on_demand) {
    if (auto fits = check_fits(one.config, one.needs, beside); !fits) return fits.error();
  }
  return load_model(one.config, one.how);
}

// What cannot be loaded later either does not keep others from being served, but one has to be there.
Result<void> load_some(std::vector<ListedModel>& models) {
  bool one_is_there = false;
  std::uint64_t beside = 0;  // of those that stay loaded
  for (ListedModel& one : models) {
    one.needs = memory_needed(one.config);
    if (!one.config.on_demand) beside += one.needs;
  }
  std::uint64_t used = beside;
  for (ListedModel& one : models) {
    if (!one.config.at_start && one_is_there) continue;
    const std::uint64_t others = one.config.on_demand ? used : 0;
    if (one_is_there && one.config.on_demand && !check_fits(one.config, one.needs, others)) {
      log_warning("a model has no room at start", {{"model", names_of_model(one.config).front()}});
      continue;
    }
    const LoadGuard guard(path_of(one.config));
    auto parts = load_fitting(one, beside);
    if (!parts && !one.config.on_demand) return parts.error();
    if (parts) {
      one.parts.emplace(std::move(*parts));
      one_is_there = true;
      if (one.config.on_demand) used += one.needs;
    } else {
      one.failure = parts.error().message;
      log_error("a model cannot be loaded", {{"model", names_of_model(one.config).front()}, {"reason", one.failure}});
    }
  }
  if (one_is_there) return {};
  return Error{ErrorCode::model_failure, "no model can be loaded; the first one: " + models.front().failure, ""};
}

}  // namespace

Result<std::uint64_t> look_at_model(const ServeConfig& config, const Flag& stop) {
  if (!config.not_found.empty()) return Error{ErrorCode::not_found, config.not_found, "model"};
  if (config.engine == EngineKind::llama && !std::filesystem::is_regular_file(config.model_path)) {
    return Error{ErrorCode::not_found, "there is no file " + config.model_path, "model"};
  }
  const std::uint64_t needs = memory_needed(config);
  if (auto fits = check_fits(config, needs, 0); !fits) return fits.error();
  if (can_be_tried(config)) {
    if (auto good = try_loading(config, stop); !good) return good.error();
  }
  return needs;
}

Result<ModelParts> load_model(const ServeConfig& config, LoadOptions how, const Flag& stop, const Predecessor* before) {
  if (!config.not_found.empty()) return Error{ErrorCode::not_found, config.not_found, ""};
  // Once more: the file may be another one than at start.
  const std::uint64_t needs = config.on_demand ? memory_needed(config) : 0;
  if (auto fits = check_fits(config, needs, 0); !fits) return fits.error();
  const RealClock clock;
  const TimePoint began = clock.now();
  std::optional<CoreShare::Taken> loading;
  if (config.model.cores) loading.emplace(*config.model.cores);
  const auto stamp = FileStamp::of(config.model_path);  // before its bytes are read
  if (is_tried(config) && before == nullptr) {
    if (auto good = try_loading(config, stop); !good) return good.error();
  }
  const Duration trial = clock.now() - began;
  const std::uint64_t free_bytes = free_for_models() + (before != nullptr ? before->frees : 0);
  auto model = load_weights(config, std::move(how));
  loading.reset();
  if (!model) return model.error();
  ModelParts parts{config, std::move(*model)};
  parts.trial = trial;
  parts.stamp = stamp;
  parts.needs = memory_needed(config);
  const std::uint64_t weights = parts.model.info.size_bytes;
  if (auto made = make_parts(parts, free_bytes, weights, before); !made) return made.error();
  return parts;
}

Result<std::vector<ListedModel>> load_models(const ServeConfig& config, std::vector<LoadOptions> how) {
  std::vector<ListedModel> out;
  out.reserve(config.models.size());
  for (std::size_t i = 0; i < config.models.size(); ++i)
    out.push_back(ListedModel{config.models[i], std::move(how[i])});
  const bool on_demand = std::ranges::any_of(config.models, &ServeConfig::on_demand);
  if (auto loaded = on_demand ? load_some(out) : load_all(out); !loaded) return loaded.error();
  return out;
}

}  // namespace chasqui
