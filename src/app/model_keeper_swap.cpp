// How another version of a model takes the place of the one that serves: looked at, loaded beside it if there is room
// for both, otherwise after it, and the older one goes when nothing refers to it any more.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "api/core/generation.h"
#include "api/core/served_model.h"
#include "app/model_keeper.h"
#include "app/settings.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "engine/admission.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

constexpr Duration kLookAtFiles = milliseconds(100);

// Paths from the root, which errors name, cut down to their last parts.
std::string without_folders(std::string_view text) {
  constexpr std::string_view kBefore = " '\"(:=";
  constexpr std::string_view kBehind = " '\"):,;";
  std::string out;
  while (!text.empty()) {
    const bool begins = text.front() == '/' && (out.empty() || kBefore.find(out.back()) != std::string_view::npos);
    if (begins) {
      const std::string_view path = text.substr(0, text.find_first_of(kBehind));
      if (path.find('/', 1) != std::string_view::npos) text.remove_prefix(path.rfind('/') + 1);
      if (text.empty()) break;
    }
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

bool ModelKeeper::replacing(const ModelEntry& entry) const {
  const Kept& one = kept(entry);
  return one.swap != nullptr || (loading_ == &one && one.entry.served != nullptr);
}

// Those that a version has now, for the next one.
std::vector<AdapterFile> ModelKeeper::adapters_of(const ServedModel& served) {
  std::vector<AdapterFile> out;
  const AdapterListPtr list = served.adapters.list();
  for (const auto& [info, standing, lease] : list->all()) {
    out.push_back({info.path, info.name, info.scale, info.at_run_time});
  }
  return out;
}

std::string ModelKeeper::shown(std::string reason, const ServeConfig& config) {
  const std::string file = std::filesystem::path(config.model_path).filename().string();
  for (std::size_t at = 0; !file.empty() && (at = reason.find(config.model_path, at)) != std::string::npos;) {
    reason.replace(at, config.model_path.size(), file);
    at += file.size();
  }
  return without_folders(reason);
}

bool ModelKeeper::file_changed(const Kept& one) {
  if (one.config->model_path.empty() || !one.stamp) return false;
  const auto now = FileStamp::of(one.config->model_path);
  return now && *now != *one.stamp;
}

// For requests that wait, which ask again and again.
bool ModelKeeper::has_another_file(Kept& one) {
  const TimePoint now = loop_.now();
  if (now - one.looked_at < kLookAtFiles) return one.another;
  one.looked_at = now;
  one.another = file_changed(one);
  return one.another;
}

Result<void> ModelKeeper::begin_swap(Kept& one, std::string path) {
  const std::string the_model = "the model " + one.entry.name;
  if (table_.first().engine.draining()) return Error{ErrorCode::unavailable, "the server is shutting down", ""};
  if (path.empty() && one.config->model_path.empty()) {
    return Error{ErrorCode::not_supported, the_model + " has no file that could be read again", "model"};
  }
  if (path.empty() && !file_changed(one)) {
    return Error{ErrorCode::conflict, the_model + " is loaded already, and its file has not changed", "model"};
  }
  auto config = std::make_shared<ServeConfig>(*one.config);
  config->name = one.entry.name;
  if (!path.empty()) {
    config->model_path = std::move(path);
    config->hf_repo.clear();
    config->not_found.clear();
  }
  one.swap = std::make_shared<Swap>();
  one.swap->config = std::move(config);
  follow_orders();
  return {};
}

void ModelKeeper::follow_swap(Kept& one) {
  if (!one.swap || table_.first().engine.draining()) return;
  switch (one.swap->stage) {
    case Swap::Stage::asked:
      // The version before the one that serves has gone, so that there are never more than three.
      if (!busy() && std::ranges::find(leaving_, &one, &Leaving::of) == leaving_.end()) look(one);
      break;
    case Swap::Stage::looked: choose_room(one); break;
    case Swap::Stage::draining: drain(one); break;
    case Swap::Stage::looking:
    case Swap::Stage::loading:
    case Swap::Stage::over: break;
  }
}

void ModelKeeper::look(Kept& one) {
  if (thread_.joinable()) thread_.join();
  one.swap->stage = Swap::Stage::looking;
  swapping_ = &one;
  began_ = loop_.now();
  log_info("looking at another version of a model", {{"model", one.entry.name}});
  thread_ = std::thread([this, &one, config = one.swap->config] {
    name_this_thread("load");
    const auto needs = std::make_shared<Result<std::uint64_t>>(look_at_model(*config, stop_));
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(config->model_path, unknown);
    loop_.post([this, &one, needs, bytes = unknown ? 0 : size] { looked(one, *needs, bytes); });
  });
}

void ModelKeeper::looked(Kept& one, const Result<std::uint64_t>& needs, std::uint64_t bytes) {
  if (!needs) return end_swap(one, needs.error());
  if (table_.first().engine.draining()) {
    return end_swap(one, Error{ErrorCode::unavailable, "the server is shutting down", ""});
  }
  one.swap->needs = *needs;
  one.swap->bytes = bytes;
  one.swap->stage = Swap::Stage::looked;
  choose_room(one);
}

// Beside the version that serves where the memory allows it. Otherwise its requests end first, and new ones wait.
void ModelKeeper::choose_room(Kept& one) {
  Swap& swap = *one.swap;
  std::uint64_t used = swap.needs + leaving_needs();
  for (const Kept& other : kept_) used += takes_room(other) ? other.entry.needs : 0;
  const bool there = loaded(one) && !one.resting;
  if (there && (used <= limits_.memory || swap.needs == 0)) return load_next(one);
  if (there && !can_sleep(*one.config)) {
    return end_swap(one, Error{ErrorCode::not_supported,
                               "there is no room for another version of the model " + one.entry.name +
                                   " beside the one that serves (--models-memory), and that one cannot be unloaded: "
                                   "restart the server",
                               "model"});
  }
  swap.holds = true;
  ++holding_;
  swap.needs_before = one.entry.needs;
  table_.set_needs(one.entry, swap.needs, one.entry.bytes);
  swap.stage = Swap::Stage::draining;
  log_info("a model goes before its next version is loaded", {{"model", one.entry.name}});
  drain(one);
}

// A request that was on its way may wake it again; then it is told once more.
void ModelKeeper::drain(Kept& one) {
  if (one.entry.served != nullptr && !one.entry.served->engine.sleeping()) {
    ServedModel& served = *one.entry.served;
    const bool works = served.engine.in_flight() > 0 || served.admission.in_flight() > 0;
    if (one.swap->rest.due(works, served.engine.count(&EngineMetrics::wakes))) served.engine.rest();
    return;
  }
  if (make_room(one)) load_next(one);
}

void ModelKeeper::load_next(Kept& one) {
  one.swap->stage = Swap::Stage::loading;
  count_memory();
  log_info("loading another version of a model", {{"model", one.entry.name}});
  load_in_thread(one, one.swap->config, &ModelKeeper::loaded_next);
}

void ModelKeeper::loaded_next(Kept& one, Result<ModelParts> parts) {
  if (!parts) return end_swap(one, parts.error());
  if (table_.first().engine.draining()) {
    return end_swap(one, Error{ErrorCode::unavailable, "the server is shutting down", ""});
  }
  const std::shared_ptr<Swap> swap = one.swap;
  one.owned_config = swap->config;
  one.config = one.owned_config.get();
  one.failure.clear();
  one.retry_after = {};
  one.loading_took = loop_.now() - began_;
  if (one.entry.served == nullptr) {
    made(one, std::move(*parts));
  } else {
    replace(one, std::move(*parts));
  }
  end_swap(one, {});
}

void ModelKeeper::end_swap(Kept& one, Result<void> outcome) {
  const std::shared_ptr<Swap> swap = std::exchange(one.swap, nullptr);
  swapping_ = nullptr;
  swap->stage = Swap::Stage::over;
  if (swap->holds) --holding_;
  if (outcome) {
    table_.set_needs(one.entry, swap->needs, swap->bytes);
    log_info("another version of a model serves",
             {{"model", one.entry.name}, {"took_ms", to_milliseconds(loop_.now() - began_)}});
  } else {
    swap_metrics_.failures.add();
    log_error("another version of a model cannot be loaded",
              {{"model", one.entry.name}, {"reason", outcome.error().message}});
    Error error = outcome.error();
    error.message = shown(error.message, *swap->config);
    error.field = "model";
    if (swap->holds) go_back(one, swap->needs_before, error.message);
    outcome = std::move(error);
  }
  swap->outcome = std::move(outcome);
  count_memory();
}

// The version before was unloaded, and can be loaded again if its file is still there.
void ModelKeeper::go_back(Kept& one, std::uint64_t needs, const std::string& reason) {
  table_.set_needs(one.entry, needs, one.entry.bytes);
  if (one.entry.served == nullptr || file_changed(one)) {
    one.failure = reason;
    one.retry_after = kRetryFirst;
    one.retry_at = loop_.now() + one.retry_after;
  } else if (!one.waking && one.entry.served->engine.sleeping()) {
    wake(one);
  }
}

// From here on requests go to the next version. What runs ends with the one before.
void ModelKeeper::replace(Kept& one, ModelParts parts) {
  ServedModel& before = *one.entry.served;
  const std::uint64_t needs = one.swap && !one.swap->holds ? one.entry.needs : 0;
  one.stamp = parts.stamp;
  one.another = false;
  one.resting = one.waking = false;
  ServedModel& next = hosting_.host(std::move(parts), &before);
  if (one.config->on_demand) {
    next.keep_loaded = [this, &one](Duration time) { keep(one, time); };
  }
  table_.replaced(one.entry, next);
  leaving_.push_back({&before, &one, needs});
  one.used_at = one.loaded_at = loop_.now();
  swap_metrics_.swaps.add();
  swap_metrics_.leaving.set(static_cast<std::int64_t>(leaving_.size()));
  follow_later(kLookEvery);
}

std::uint64_t ModelKeeper::leaving_needs() const {
  std::uint64_t sum = 0;
  for (const Leaving& one : leaving_) sum += one.needs;
  return sum;
}

// No request is in it or on its way, no handler refers to it, nor a job of the offload pool that a handler has left
// behind.
bool ModelKeeper::free_of_use(Leaving& one) const {
  const ServedModel& served = *one.served;
  if (served.engine.in_flight() > 0 || served.admission.in_flight() > 0 || served.users > 0) {
    one.last_job.reset();
    return false;
  }
  if (!one.last_job) {
    one.last_job = offload_.newest();
    return false;
  }
  return offload_.ended_until(*one.last_job);
}

// One after the other.
void ModelKeeper::follow_leaving() {
  if (frees_ || table_.first().engine.draining()) return;
  const auto gone = std::ranges::find_if(leaving_, [this](Leaving& one) { return free_of_use(one); });
  if (gone == leaving_.end()) return;
  table_.left(*gone->served);
  free_in_thread(hosting_.release(*gone->served), gone->of->entry.name);
  leaving_.erase(gone);
  swap_metrics_.leaving.set(static_cast<std::int64_t>(leaving_.size()));
}

void ModelKeeper::free_in_thread(std::shared_ptr<const void> computing, const std::string& name) {
  if (freeing_.joinable()) freeing_.join();  // it has posted that it is done, and ends
  frees_ = true;
  freeing_ = std::thread([this, computing = std::move(computing), name]() mutable {
    name_this_thread("unload");
    computing.reset();
    loop_.post([this, name] {
      frees_ = false;
      log_info("the version before of a model has gone", {{"model", name}});
    });
  });
}

}  // namespace chasqui
