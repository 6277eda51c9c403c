#include "model/llama_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"

namespace chasqui {

// Of one thread after the other.
class LlamaSource::Turn {
 public:
  explicit Turn(std::atomic_flag& busy) : busy_(busy) {
    while (busy_.test_and_set(std::memory_order_acquire)) busy_.wait(true, std::memory_order_relaxed);
  }
  ~Turn() {
    busy_.clear(std::memory_order_release);
    busy_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic_flag& busy_;
};

LlamaSource::LlamaSource(Load load, WeightsPtr loaded)
    : load_(std::move(load)), first_(std::move(loaded)), now_(first_) {
  adapters_.assign(first_->opened().begin(), first_->opened().end());
}

Result<WeightsPtr> LlamaSource::weights() {
  const Turn turn(busy_);
  WeightsPtr there = now_.lock();
  first_.reset();
  if (there) return there;
  Result<WeightsPtr> weights = load_();
  if (!weights) return weights;
  attach_all(**weights);
  now_ = *weights;
  return weights;
}

// One that cannot be loaded again is no reason not to serve the model: its own requests fail.
void LlamaSource::attach_all(const LlamaWeights& weights) {
  for (std::optional<OpenAdapter>& adapter : adapters_) {
    if (!adapter) continue;
    std::string reason;
    if (has_changed(*adapter)) {
      reason = "its file has been written to";
    } else if (const auto attached = weights.attach(*adapter); !attached) {
      reason = attached.error().message;
    }
    if (reason.empty()) continue;
    log_error("an adapter cannot be loaded again; its requests fail",
              {{"adapter", adapter->info.name}, {"path", adapter->info.path}, {"reason", reason}});
  }
}

Result<AdapterInfo> LlamaSource::add_adapter(const AdapterFile& file) {
  auto opened = open_adapter(file);
  if (!opened) return opened.error();
  const Turn turn(busy_);
  const WeightsPtr weights = now_.lock();
  if (!weights) return Error{ErrorCode::unavailable, "the model is not in memory; retry", ""};
  auto place = std::ranges::find_if(adapters_, [](const auto& adapter) { return !adapter; });
  if (place == adapters_.end()) {
    if (adapters_.size() >= kAdaptersMax) {
      return invalid_field("lora_name", "The model has " + std::to_string(kAdaptersMax) +
                                            " adapters, which is the most; unload one, and let its requests end.");
    }
    place = adapters_.emplace(adapters_.end());
  }
  opened->info.place = static_cast<std::int32_t>(place - adapters_.begin());
  opened->info.version = ++versions_;
  if (auto attached = weights->attach(*opened); !attached) return attached.error();
  *place = std::move(*opened);
  return (*place)->info;
}

void LlamaSource::remove_adapter(std::int32_t place) {
  const Turn turn(busy_);
  if (const WeightsPtr weights = now_.lock()) weights->detach(place);
  adapters_.at(static_cast<std::size_t>(place)).reset();
}

}  // namespace chasqui
