// Loads LoRA adapters while their models serve, and frees them when the last request with them has ended. Owned by
// Server; loop thread only, but for one thread that reads files and has them from libllama.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/core/adapter_loader.h"
#include "api/core/model_table.h"
#include "model/model_info.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

// Shows which adapters there are on the page of metrics. Of Server; called on the loop's thread.
class AdapterHosting {
 public:
  virtual void adapter_came(const ServedModel& model, std::int32_t place, const std::string& name) = 0;
  virtual void adapter_went(const ServedModel& model, std::int32_t place) = 0;

 protected:
  ~AdapterHosting() = default;
};

class AdapterKeeper final : public AdapterLoader {
 public:
  // All outlive it.
  AdapterKeeper(net::EventLoop& loop, ModelTable& table, const ModelLoader& models, AdapterHosting& hosting);
  // Waits for what is being read.
  ~AdapterKeeper() override;
  AdapterKeeper(const AdapterKeeper&) = delete;
  AdapterKeeper& operator=(const AdapterKeeper&) = delete;

  net::Awaitable<Result<void>> load(const ModelEntry& entry, AdapterOrder order, ModelWait wait) override;
  Result<void> unload(const ModelEntry& entry, const std::string& name) override;

 private:
  Result<void> may_load(const ModelEntry& entry, const AdapterOrder& order) const;
  net::Awaitable<Result<void>> wake(ServedModel& served);
  Result<void> take(const ModelEntry& entry, ServedModel& served, const AdapterOrder& order, AdapterInfo adapter);
  void follow_ends();
  net::Awaitable<void> free_place(std::function<void(std::int32_t)> free, std::int32_t place);
  net::OffloadPool& pool();

  net::EventLoop& loop_;
  ModelTable& table_;
  const ModelLoader& models_;
  AdapterHosting& hosting_;
  net::Timer timer_;                        // while adapters that were unloaded are in use
  std::unique_ptr<net::OffloadPool> pool_;  // from the first order on
};

}  // namespace chasqui
