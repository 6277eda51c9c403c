// The models of a node, by the name that a request says. Filled at start, constant afterwards; loop thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct ServedModel;

class ModelTable {
 public:
  // `model` outlives the table. The first one answers requests that name none.
  void add(ServedModel& model) { models_.push_back(&model); }

  // A table of one model has it for every name, as clients send the names of other servers' models, unless names are
  // checked. Otherwise the name is that of a model, or of one of its adapters ("model:adapter", or as vLLM has it
  // "adapter"), and may end in ":latest" as Ollama's names do; not_found lists the models whose names are near.
  // REQUIRES: there is a model
  Result<ServedModel*> find(std::string_view name) const;
  ServedModel& first() const { return *models_.front(); }
  bool has_choice() const { return models_.size() > 1 || checks_names_; }
  // One model, too, answers to its own names alone (--check-model).
  void check_names() { checks_names_ = true; }
  const std::vector<ServedModel*>& all() const { return models_; }

 private:
  ServedModel* named(std::string_view name) const;

  std::vector<ServedModel*> models_;
  bool checks_names_ = false;
};

}  // namespace chasqui
