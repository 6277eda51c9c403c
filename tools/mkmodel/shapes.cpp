#include "shapes.h"

namespace mkmodel {
namespace {

Shape with_weights(Shape shape, std::string name, ggml_type weights) {
  shape.name = std::move(name);
  shape.weights = weights;
  return shape;
}

Shape with_k_weights(Shape shape, std::string name) {
  shape.embeddings = GGML_TYPE_Q4_K;
  return with_weights(std::move(shape), std::move(name), GGML_TYPE_Q4_K);
}

Shape small_llama() {
  return {.name = "random-24m-f16",
          .about = "small Llama, 24 M parameters, F16",
          .architecture = "llama",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 288,
          .layers = 6,
          .heads = 6,
          .kv_heads = 6,
          .feed_forward = 768,
          .context = 2048,
          .small = true};
}

Shape half_billion() {
  return {.name = "random-0.5b-q4_0",
          .about = "Qwen2 0.5B",
          .architecture = "qwen2",
          .vocabulary = "qwen2",
          .tokens = 151936,
          .width = 896,
          .layers = 24,
          .heads = 14,
          .kv_heads = 2,
          .feed_forward = 4864,
          .context = 32768,
          .weights = GGML_TYPE_Q4_0,
          .embeddings = GGML_TYPE_Q8_0,
          .tied = true};
}

Shape one_billion() {
  return {.name = "random-1.1b-q4_0",
          .about = "TinyLlama 1.1B",
          .architecture = "llama",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 2048,
          .layers = 22,
          .heads = 32,
          .kv_heads = 4,
          .feed_forward = 5632,
          .context = 2048,
          .weights = GGML_TYPE_Q4_0,
          .embeddings = GGML_TYPE_Q8_0};
}

// 256 KiB of KV a token, as models have whose heads all keep their own, with little to compute.
Shape heavy_kv() {
  return {.name = "random-heavy-kv-q4_0",
          .about = "every head with KV of its own: 256 KiB a token",
          .architecture = "llama",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 1024,
          .layers = 64,
          .heads = 16,
          .kv_heads = 16,
          .feed_forward = 256,
          .context = 8192,
          .weights = GGML_TYPE_Q4_0,
          .embeddings = GGML_TYPE_Q8_0};
}

Shape seven_billion() {
  return {.name = "random-7b-q4_0",
          .about = "Mistral 7B, 4 GB",
          .architecture = "llama",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 4096,
          .layers = 32,
          .heads = 32,
          .kv_heads = 8,
          .feed_forward = 14336,
          .context = 32768,
          .weights = GGML_TYPE_Q4_0,
          .embeddings = GGML_TYPE_Q8_0,
          .large = true};
}

Shape draft() {
  return {.name = "random-draft",
          .about = "very small, with the vocabulary of random-0.5b",
          .architecture = "qwen2",
          .vocabulary = "qwen2",
          .tokens = 151936,
          .width = 128,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .feed_forward = 384,
          .context = 32768,
          .weights = GGML_TYPE_Q8_0,
          .embeddings = GGML_TYPE_Q8_0,
          .tied = true};
}

Shape sliding_window() {
  return {.name = "random-swa",
          .about = "Gemma 2, every second layer with a window of 256",
          .architecture = "gemma2",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 256,
          .layers = 4,
          .heads = 4,
          .kv_heads = 2,
          .feed_forward = 768,
          .window = 256,
          .context = 8192,
          .tied = true,
          .small = true};
}

Shape recurrent() {
  return {.name = "random-recurrent",
          .about = "Mamba: a state instead of a KV cache",
          .architecture = "mamba",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 256,
          .layers = 4,
          .context = 1048576,
          .tied = true,
          .small = true};
}

Shape hybrid() {
  return {.name = "random-hybrid",
          .about = "LFM2, two layers that attend and four that keep a state",
          .architecture = "lfm2",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 256,
          .layers = 6,
          .heads = 4,
          .kv_heads = 2,
          .feed_forward = 768,
          .attends = 3,
          .context = 8192,
          .tied = true,
          .small = true};
}

Shape medium_hybrid() {
  Shape shape = hybrid();
  shape.name = "random-hybrid-0.35b-q4_0";
  shape.about = "LFM2 350M: as fast as its weights are read";
  shape.width = 1024;
  shape.layers = 16;
  shape.heads = 16;
  shape.kv_heads = 8;
  shape.feed_forward = 4608;
  shape.weights = GGML_TYPE_Q4_0;
  shape.embeddings = GGML_TYPE_Q8_0;
  shape.small = false;
  return shape;
}

Shape several_dimensions() {
  return {.name = "random-mrope",
          .about = "Qwen2-VL: a picture's positions have several dimensions",
          .architecture = "qwen2vl",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 256,
          .layers = 4,
          .heads = 4,
          .kv_heads = 2,
          .feed_forward = 768,
          .context = 8192,
          .tied = true,
          .small = true};
}

Shape ranking() {
  return {.name = "random-rank",
          .about = "Qwen3 with a head for ranking",
          .architecture = "qwen3",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 128,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .feed_forward = 384,
          .context = 8192,
          .weights = GGML_TYPE_Q8_0,
          .embeddings = GGML_TYPE_Q8_0,
          .tied = true,
          .ranks = true,
          .small = true};
}

Shape eagle3() {
  return {.name = "random-eagle3",
          .about = "EAGLE-3 heads for random-24m-f16",
          .architecture = "eagle3",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 192,
          .layers = 1,
          .heads = 4,
          .kv_heads = 4,
          .feed_forward = 384,
          .context = 2048,
          .heads_for = small_llama().width,
          .small = true};
}

Shape multi_token() {
  return {.name = "random-mtp",
          .about = "GLM 4 MoE with a layer that drafts (MTP)",
          .architecture = "glm4moe",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 192,
          .layers = 4,
          .heads = 4,
          .kv_heads = 2,
          .feed_forward = 384,
          .context = 2048,
          .mtp_layers = 1,
          .small = true};
}

Shape delta_net() {
  return {.name = "random-qwen35",
          .about = "Qwen 3.5: one layer that attends after three with a gated delta net, and a layer that drafts (MTP)",
          .architecture = "qwen35",
          .vocabulary = "llama-spm",
          .tokens = 32000,
          .width = 256,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .feed_forward = 768,
          .attends = 4,
          .state = 32,
          .context = 8192,
          .mtp_layers = 1,
          .small = true};
}

Shape expert_delta_net() {
  Shape shape = delta_net();
  shape.name = "random-qwen35moe";
  shape.about = "Qwen 3.5 with experts, and a layer that drafts (MTP)";
  shape.architecture = "qwen35moe";
  shape.width = 128;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.feed_forward = 256;
  shape.tied = true;
  return shape;
}

Shape medium_delta_net() {
  Shape shape = delta_net();
  shape.name = "random-qwen35-0.8b-q4_0";
  shape.about = "Qwen 3.5 0.8B with a smaller vocabulary";
  shape.width = 1024;
  shape.layers = 25;
  shape.heads = 8;
  shape.feed_forward = 3584;
  shape.state = 128;
  shape.weights = GGML_TYPE_Q4_0;
  shape.embeddings = GGML_TYPE_Q8_0;
  shape.small = false;
  return shape;
}

}  // namespace

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{small_llama(),
                                      half_billion(),
                                      with_weights(half_billion(), "random-0.5b-q8_0", GGML_TYPE_Q8_0),
                                      one_billion(),
                                      with_weights(one_billion(), "random-1.1b-q8_0", GGML_TYPE_Q8_0),
                                      with_k_weights(one_billion(), "random-1.1b-q4_k_m"),
                                      heavy_kv(),
                                      seven_billion(),
                                      draft(),
                                      sliding_window(),
                                      recurrent(),
                                      hybrid(),
                                      medium_hybrid(),
                                      several_dimensions(),
                                      ranking(),
                                      eagle3(),
                                      multi_token(),
                                      delta_net(),
                                      expert_delta_net(),
                                      medium_delta_net()};
  return all;
}

const Shape* find_shape(const std::string& name) {
  for (const Shape& shape : shapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

}  // namespace mkmodel
