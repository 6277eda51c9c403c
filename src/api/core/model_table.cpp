#include "api/core/model_table.h"

#include <algorithm>

#include "api/core/served_model.h"

namespace chasqui {

Result<ServedModel*> ModelTable::find(std::string_view name) const {
  if (!has_choice() || name.empty()) return models_.front();
  std::string names;
  for (ServedModel* const model : models_) {
    const std::string& own = model->config.name;
    if (name == own || std::ranges::find(model->config.aliases, name) != model->config.aliases.end()) return model;
    const bool has_adapter = name.size() > own.size() && name.starts_with(own) && name[own.size()] == ':';
    if (has_adapter && model->adapters.find(name.substr(own.size() + 1))) return model;
    names += (names.empty() ? "" : ", ") + own;
  }
  for (ServedModel* const model : models_) {
    if (model->adapters.find(name)) return model;
  }
  return Error{ErrorCode::not_found, "there is no model " + std::string(name) + "; model must be one of " + names,
               "model"};
}

}  // namespace chasqui
