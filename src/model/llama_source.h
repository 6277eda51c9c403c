// Where the weights of a model come from, for as long as they are in use: the contexts share them, the last one
// frees them, and the next user loads them again. Any thread; one loads while the others wait for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "model/llama_weights.h"

namespace chasqui {

class LlamaSource {
 public:
  using Load = std::function<Result<WeightsPtr>()>;

  // `loaded` is kept until the first weights() and its holder.
  LlamaSource(Load load, WeightsPtr loaded) : load_(std::move(load)), first_(std::move(loaded)), now_(first_) {}

  Result<WeightsPtr> weights();

 private:
  const Load load_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // Of the thread that has set busy_.
  WeightsPtr first_;
  std::weak_ptr<const LlamaWeights> now_;
};

}  // namespace chasqui
