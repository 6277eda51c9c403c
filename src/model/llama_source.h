// Where the weights of a model come from, for as long as somebody uses them: the contexts share them, the last one
// frees them, and whoever comes next loads them again. Any thread; one loads while the others wait for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "model/llama_weights.h"

namespace chasqui {

class LlamaSource {
 public:
  using Load = std::function<Result<WeightsPtr>()>;

  // `loaded` is kept until the first weights() and whoever gets them.
  LlamaSource(Load load, WeightsPtr loaded) : load_(std::move(load)), first_(std::move(loaded)), now_(first_) {}

  Result<WeightsPtr> weights();

 private:
  const Load load_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // Of whoever has set busy_.
  WeightsPtr first_;
  std::weak_ptr<const LlamaWeights> now_;
};

}  // namespace chasqui
