#include "api/core/model_table.h"

#include <algorithm>
#include <utility>

#include "api/core/served_model.h"
#include "base/nearest_word.h"
#include "engine/adapter_registry.h"

namespace chasqui {
namespace {

constexpr std::size_t kNamesListed = 8;
// Of a name that is not there: comparing a longer one with many would take the loop too long.
constexpr std::size_t kComparedBytes = 64;

constexpr std::string_view kLatest = ":latest";

std::string first_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesListed); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return out;
}

Error no_model(std::string_view name, std::vector<std::string> names) {
  const std::string there_is_none = "there is no model " + std::string(name) + "; ";
  if (names.size() <= kNamesListed) {
    return {ErrorCode::not_found, there_is_none + "model must be one of " + first_of(names), "model"};
  }
  const std::string_view compared = name.substr(0, kComparedBytes);
  std::ranges::stable_sort(names, {}, [compared](const std::string& one) {
    return edit_distance(compared, std::string_view(one).substr(0, kComparedBytes));
  });
  return {ErrorCode::not_found,
          there_is_none + "of the " + std::to_string(names.size()) + " that GET /v1/models lists the nearest are " +
              first_of(names),
          "model"};
}

}  // namespace

std::string_view name(ModelState state) {
  switch (state) {
    case ModelState::unloaded: return "unloaded";
    case ModelState::loading: return "loading";
    case ModelState::ready: return "loaded";
    case ModelState::draining: return "draining";
    case ModelState::failed: return "failed";
  }
  return "";
}

Error no_model_of_long_name() {
  return {ErrorCode::not_found,
          "there is no model with a name of more than " + std::to_string(kSizeLimit<"model_name_bytes">) +
              " bytes; model must be one of those that GET /v1/models lists",
          "model"};
}

void ModelTable::add(ServedModel& model) {
  const ServedModelConfig& config = model.config;
  ModelEntry entry{config.name, config.aliases, config.tags};
  const AdapterListPtr list = model.adapters.list();
  for (const ListedAdapter& adapter : list->all()) entry.adapters.push_back(adapter.info.name);
  entry.served = &model;
  entries_.push_back(std::move(entry));
  made_.push_back(&model);
}

const ModelEntry& ModelTable::add(ModelEntry entry, ModelLoader& loader) {
  loader_ = &loader;
  return entries_.emplace_back(std::move(entry));
}

void ModelTable::made(const ModelEntry& entry, ServedModel& model) {
  for (ModelEntry& one : entries_) {
    if (&one == &entry) one.served = &model;
  }
  made_.push_back(&model);
}

void ModelTable::replaced(const ModelEntry& entry, ServedModel& next) {
  const auto one = std::ranges::find_if(entries_, [&entry](const ModelEntry& each) { return &each == &entry; });
  ServedModel& before = *one->served;
  std::ranges::replace(made_, &before, &next);
  one->served = &next;
  before.replaced = true;
  next.older = std::exchange(before.older, {});
  next.older.push_back(&before);
  leaving_.push_back(&before);
}

void ModelTable::left(const ServedModel& model) {
  std::erase(leaving_, &model);
  for (ServedModel* const one : all_versions()) std::erase(one->older, &model);
}

void ModelTable::set_needs(const ModelEntry& entry, std::uint64_t needs, std::uint64_t bytes) {
  for (ModelEntry& one : entries_) {
    if (&one != &entry) continue;
    one.needs = needs;
    one.bytes = bytes;
  }
}

void ModelTable::follow_adapters(const ServedModel& model) {
  const auto one = std::ranges::find(entries_, &model, &ModelEntry::served);
  if (one == entries_.end()) return;
  std::vector<std::string> names;
  const AdapterListPtr list = model.adapters.list();
  for (const ListedAdapter& adapter : list->all()) names.push_back(adapter.info.name);
  one->adapters = std::move(names);
}

bool ModelTable::reads_names() const { return has_choice() || !first().adapters.list()->unloaded().empty(); }

std::vector<ServedModel*> ModelTable::all_versions() const {
  std::vector<ServedModel*> out = made_;
  out.insert(out.end(), leaving_.begin(), leaving_.end());
  return out;
}

const ModelEntry& ModelTable::entry_of(const ServedModel& model) const {
  const auto found = std::ranges::find(entries_, &model, &ModelEntry::served);
  CHECK(found != entries_.end(), "a model that is in no table");
  return *found;
}

Result<const ModelEntry*> ModelTable::find(std::string_view name) const {
  if (name.empty()) return &entry_of(first());
  if (!has_choice() && !first().adapters.list()->was_unloaded(name)) return &entry_of(first());
  if (const ModelEntry* const entry = named(name)) return entry;
  if (name.ends_with(kLatest)) {
    if (const ModelEntry* const entry = named(name.substr(0, name.size() - kLatest.size()))) return entry;
  }
  if (!may_name_model(name)) return no_model_of_long_name();
  std::vector<std::string> names;
  for (const ModelEntry& entry : entries_) names.push_back(entry.name);
  return no_model(name, std::move(names));
}

const ModelEntry* ModelTable::named(std::string_view name) const {
  const auto has = [](const std::vector<std::string>& names, std::string_view wanted) {
    return std::ranges::find(names, wanted) != names.end();
  };
  for (const ModelEntry& entry : entries_) {
    if (name == entry.name || has(entry.aliases, name)) return &entry;
    const std::size_t own = entry.name.size();
    const bool longer = name.size() > own && name.starts_with(entry.name) && name[own] == ':';
    if (longer && has(entry.adapters, name.substr(own + 1))) return &entry;
  }
  for (const ModelEntry& entry : entries_) {
    if (has(entry.adapters, name)) return &entry;
  }
  return nullptr;
}

ModelStatus ModelTable::status(const ModelEntry& entry) const {
  return loader_ != nullptr ? loader_->status(entry) : ModelStatus();
}

net::Awaitable<Result<ServedModel*>> ModelTable::ready(const ModelEntry& entry, ModelWait wait) const {
  if (!may_wait()) co_return entry.served;
  Result<ServedModel*> served = co_await loader_->ready(entry, std::move(wait));
  co_return served;
}

}  // namespace chasqui
