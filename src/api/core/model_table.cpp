#include "api/core/model_table.h"

#include <algorithm>
#include <utility>

#include "api/core/served_model.h"
#include "base/nearest_word.h"

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

Result<ServedModel*> ModelTable::find(std::string_view name) const {
  if (!has_choice() || name.empty()) return models_.front();
  if (ServedModel* const model = named(name)) return model;
  if (name.ends_with(kLatest)) {
    if (ServedModel* const model = named(name.substr(0, name.size() - kLatest.size()))) return model;
  }
  std::vector<std::string> names;
  for (const ServedModel* const model : models_) names.push_back(model->config.name);
  return no_model(name, std::move(names));
}

ServedModel* ModelTable::named(std::string_view name) const {
  for (ServedModel* const model : models_) {
    const std::string& own = model->config.name;
    if (name == own || std::ranges::find(model->config.aliases, name) != model->config.aliases.end()) return model;
    const bool has_adapter = name.size() > own.size() && name.starts_with(own) && name[own.size()] == ':';
    if (has_adapter && model->adapters.find(name.substr(own.size() + 1))) return model;
  }
  for (ServedModel* const model : models_) {
    if (model->adapters.find(name)) return model;
  }
  return nullptr;
}

}  // namespace chasqui
