// The models that mkmodel can make: real shapes and vocabularies, random weights. Speed, memory and every code path
// are those of a real model of that shape; only what it says makes no sense. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ggml.h>

namespace mkmodel {

struct Shape {
  std::string name;
  std::string about;
  std::string architecture;  // llama, qwen2, qwen2vl, qwen3, gemma2, mamba, lfm2, qwen35, qwen35moe, glm4moe, eagle3
  std::string vocabulary;    // a models/ggml-vocab-*.gguf of llama.cpp
  std::int64_t tokens = 0;   // in that vocabulary
  std::int64_t width = 0;    // embedding length
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t feed_forward = 0;
  std::int64_t window = 0;   // of a sliding-window architecture
  std::int64_t attends = 1;  // every so many layers, from the last of them; the others keep a state (lfm2, qwen35)
  std::int64_t state = 0;    // width of a head of that state (qwen35)
  std::uint32_t context = 0;
  ggml_type weights = GGML_TYPE_F16;
  ggml_type embeddings = GGML_TYPE_F16;
  bool tied = false;            // the output layer is the embedding table
  bool ranks = false;           // with a head that says yes or no to a query and a document (qwen3)
  std::int64_t heads_for = 0;   // width of the model that these heads draft for (eagle3)
  std::int64_t mtp_layers = 0;  // layers at the end that draft next tokens (glm4moe, qwen35)
  bool small = false;           // tens of MiB, written in a fraction of a second: the tests make it themselves
  bool large = false;           // gigabytes: made by its name only
};

// Positions that a layer of lfm2 convolves.
constexpr std::int64_t kConvolution = 3;

// … of qwen35; and its heads of values for each head of keys.
constexpr std::int64_t kDeltaConvolution = 4;
constexpr std::int64_t kValuesOfKey = 2;

// Of the states that EAGLE-3 reads, and of the experts in a layer that has some.
constexpr std::int64_t kLayersRead = 3;
constexpr std::int64_t kExperts = 4;

// Heads of values in a layer with a gated delta net: as wide together as two embeddings, as those of Qwen 3.5 are.
inline std::int64_t delta_values(const Shape& shape) { return 2 * shape.width / shape.state; }

const std::vector<Shape>& shapes();
const Shape* find_shape(const std::string& name);

}  // namespace mkmodel
