// Loads and unloads LoRA adapters while their models serve. Made by the application. Loop thread.
#pragma once

#include <string>

#include "api/core/model_table.h"
#include "base/error.h"
#include "net/awaitable.h"

namespace chasqui {

// What an administrator says.
struct AdapterOrder {
  std::string model{};  // empty: the first one
  std::string name{};
  std::string path{};     // of one to load
  bool in_place = false;  // it may replace one of its name
};

class AdapterLoader {
 public:
  virtual ~AdapterLoader() = default;

  // Loads its model first, if need be. Requests find the adapter when this has returned. Errors: the name is taken,
  // the file is missing or does not fit, there are too many, another version of the model is being loaded.
  virtual net::Awaitable<Result<void>> load(const ModelEntry& entry, AdapterOrder order, ModelWait wait) = 0;
  // No new request finds it; its memory is free when those that have it have ended. Errors: there is none.
  virtual Result<void> unload(const ModelEntry& entry, const std::string& name) = 0;
};

}  // namespace chasqui
