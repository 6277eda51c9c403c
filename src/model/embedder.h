// What a text means, as a vector; or how well a document answers a question, as a score. A context of its own beside
// those that generate, made and used by one thread that is not theirs. Implemented by LlamaEmbedder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/adapter_set.h"
#include "core/types.h"

namespace chasqui {

class CoreShare;

// How the vectors of an input's tokens are pooled.
enum class Pooling {
  none,  // they stay
  mean,  // their mean
  cls,   // the first
  last,  // the last
  rank,  // the model's head for ranking makes a score of them
};
std::string_view name(Pooling pooling);

struct EmbedderWish {
  Pooling pooling = Pooling::mean;
  TokenCount tokens_max = 0;           // of one input
  std::shared_ptr<CoreShare> cores{};  // null: one compute thread
  std::int32_t threads = 0;            // at most; 0: as many as there are cores
};

// Constant after construction.
struct EmbedderShape {
  Pooling pooling = Pooling::mean;
  std::int32_t length = 0;    // numbers of one vector; with rank, of the head
  TokenCount tokens_max = 0;  // of one input
};

struct Embedded {
  std::vector<float> values;  // `rows` vectors after each other, as the model makes them: not normalized
  std::size_t rows = 0;       // 1, but with Pooling::none: tokens of the input
};

class Embedder {
 public:
  virtual ~Embedder() = default;

  virtual const EmbedderShape& shape() const = 0;
  // One for each input, in their order, by the model with `adapters` (null: alone). Which inputs are computed together
  // makes no difference but rounding.
  // REQUIRES: no input is empty, nor longer than tokens_max.
  virtual Result<std::vector<Embedded>> embed(std::span<const std::vector<Token>> inputs,
                                              const AdapterSet* adapters) = 0;
};

}  // namespace chasqui
