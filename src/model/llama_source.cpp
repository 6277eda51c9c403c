#include "model/llama_source.h"

namespace chasqui {

Result<WeightsPtr> LlamaSource::weights() {
  while (busy_.test_and_set(std::memory_order_acquire)) busy_.wait(true, std::memory_order_relaxed);
  Result<WeightsPtr> weights = now_.lock();
  first_.reset();
  if (*weights == nullptr) weights = load_();
  if (weights) now_ = *weights;
  busy_.clear(std::memory_order_release);
  busy_.notify_one();
  return weights;
}

}  // namespace chasqui
