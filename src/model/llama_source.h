// Where the weights of a model come from, for as long as they are in use: the contexts share them, the last one
// frees them, and the next user loads them again, with the adapters that there are by then. Any thread; one loads
// while the others wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/llama_weights.h"

namespace chasqui {

class LlamaSource {
 public:
  using Load = std::function<Result<WeightsPtr>()>;

  // `loaded` is kept until the first weights() and its holder. `load` loads it again, without adapters.
  LlamaSource(Load load, WeightsPtr loaded);

  Result<WeightsPtr> weights();

  // Adds an adapter to the weights that are in use, in a free place. Errors: unavailable while there are none; what is
  // wrong with it; too many.
  Result<AdapterInfo> add_adapter(const AdapterFile& file);
  // REQUIRES: no set with it is used any more
  void remove_adapter(std::int32_t place);

 private:
  class Turn;
  void attach_all(const LlamaWeights& weights);

  const Load load_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  // Of the thread that has set busy_.
  WeightsPtr first_;
  std::weak_ptr<const LlamaWeights> now_;
  std::vector<std::optional<OpenAdapter>> adapters_;  // by place
  std::uint32_t versions_ = 0;                        // of adapters that were added
};

}  // namespace chasqui
