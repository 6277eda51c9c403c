#include "projector.h"

#include <array>
#include <cmath>
#include <memory>

#include <gguf.h>

namespace mkmodel {
namespace {

constexpr std::int64_t kPatch = 14;
constexpr std::int64_t kMerged = 2;  // patches a side that become one position (Gemma 3, InternVL, Qwen2-VL)
constexpr const char* kQwen = "qwen2vl_merger";
constexpr const char* kTiled = "internvl";
constexpr std::int64_t kTiles = 6;         // of a picture, at most
constexpr std::int64_t kMels = 80;         // bands of a sound
constexpr std::int64_t kFrames = 1500;     // of 30 seconds
constexpr std::int64_t kStack = 25;        // frames that become one position
constexpr std::int64_t kStackInner = 256;  // halved by the gate

class Plan {
 public:
  explicit Plan(const Projector& projector) : size(projector) {}

  void matrix(std::string name, std::vector<std::int64_t> extents, std::int64_t in, ggml_type type = GGML_TYPE_F32) {
    TensorPlan plan;
    plan.name = std::move(name);
    plan.extents = std::move(extents);
    plan.type = type;
    plan.value = 1 / std::sqrt(static_cast<float>(in));
    tensors.push_back(std::move(plan));
  }
  void constant(std::string name, std::vector<std::int64_t> extents, float value) {
    TensorPlan plan;
    plan.name = std::move(name);
    plan.extents = std::move(extents);
    plan.fill = TensorPlan::Fill::constant;
    plan.value = value;
    tensors.push_back(std::move(plan));
  }
  void norm(const std::string& name) {
    constant(name + ".weight", {size.own_width}, 1);
    constant(name + ".bias", {size.own_width}, 0.1f);
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias = true) {
    matrix(name + ".weight", {in, out}, in, GGML_TYPE_F16);
    if (bias) constant(name + ".bias", {out}, 0.05f);
  }
  void layers(const std::string& side, bool bias_of_keys) {
    for (std::int64_t i = 0; i < size.layers; ++i) {
      const std::string layer = side + ".blk." + std::to_string(i) + ".";
      norm(layer + "ln1");
      norm(layer + "ln2");
      for (const char* name : {"attn_q", "attn_v", "attn_out"}) linear(layer + name, size.own_width, size.own_width);
      linear(layer + "attn_k", size.own_width, size.own_width, bias_of_keys);
      linear(layer + "ffn_up", size.own_width, size.inner);
      linear(layer + "ffn_down", size.inner, size.own_width);
    }
    norm(side + ".post_ln");
  }

  const Projector& size;
  std::vector<TensorPlan> tensors;
};

void plan_eyes(const Projector& projector, Plan& plan) {
  const std::int64_t patches = (projector.side / kPatch) * (projector.side / kPatch);
  plan.matrix("v.patch_embd.weight", {kPatch, kPatch, 3, projector.own_width}, kPatch * kPatch * 3, GGML_TYPE_F16);
  if (projector.sees == kQwen) {
    constexpr std::int64_t kEach = kMerged * kMerged;
    plan.matrix("v.patch_embd.weight.1", {kPatch, kPatch, 3, projector.own_width}, kPatch * kPatch * 3, GGML_TYPE_F16);
    plan.layers("v", true);
    plan.linear("mm.0", projector.own_width * kEach, projector.own_width * kEach);
    plan.linear("mm.2", projector.own_width * kEach, projector.width);
    return;
  }
  plan.constant("v.patch_embd.bias", {projector.own_width}, 0.02f);
  const bool tiled = projector.sees == kTiled;
  plan.matrix("v.position_embd.weight", {projector.own_width, patches + (tiled ? 1 : 0)}, 16);
  plan.layers("v", true);
  if (tiled) {
    plan.matrix("v.class_embd", {projector.own_width}, 16);
    const std::int64_t merged = projector.own_width * kMerged * kMerged;
    plan.constant("mm.model.mlp.0.weight", {merged}, 1);
    plan.constant("mm.model.mlp.0.bias", {merged}, 0.1f);
    plan.linear("mm.model.mlp.1", merged, projector.width);
    plan.linear("mm.model.mlp.3", projector.width, projector.width);
  } else if (projector.sees == "gemma3") {
    plan.matrix("mm.input_projection.weight", {projector.width, projector.own_width}, projector.own_width);
    plan.constant("mm.soft_emb_norm.weight", {projector.own_width}, 1);
  } else {
    plan.linear("mm.0", projector.own_width, projector.width);
    plan.linear("mm.2", projector.width, projector.width);
  }
}

void plan_ears(const Projector& projector, Plan& plan) {
  plan.matrix("a.conv1d.1.weight", {3, kMels, projector.own_width}, 3 * kMels, GGML_TYPE_F16);
  plan.constant("a.conv1d.1.bias", {1, projector.own_width}, 0.02f);
  const std::int64_t width = projector.own_width;
  plan.matrix("a.conv1d.2.weight", {3, width, width}, 3 * width, GGML_TYPE_F16);
  plan.constant("a.conv1d.2.bias", {1, projector.own_width}, 0.02f);
  plan.matrix("a.position_embd.weight", {projector.own_width, kFrames}, 16);
  plan.layers("a", false);
  plan.constant("mm.a.norm_pre.weight", {projector.own_width * kStack}, 1);
  plan.linear("mm.a.mlp.1", projector.own_width * kStack, kStackInner, false);
  plan.constant("mm.a.norm_mid.weight", {kStackInner / 2}, 1);
  plan.linear("mm.a.mlp.2", kStackInner / 2, projector.width, false);
}

void set_keys(gguf_context* gguf, const Projector& projector) {
  const auto number = [gguf](const std::string& key, std::int64_t value) {
    gguf_set_val_u32(gguf, ("clip." + key).c_str(), static_cast<std::uint32_t>(value));
  };
  gguf_set_val_str(gguf, "general.architecture", "clip");
  gguf_set_val_str(gguf, "general.name", projector.name.c_str());
  gguf_set_val_str(gguf, "general.description", ("Random weights: " + projector.about).c_str());
  gguf_set_val_bool(gguf, "clip.use_gelu", true);
  for (const std::string side : {"vision", "audio"}) {
    const std::string& type = side == "vision" ? projector.sees : projector.hears;
    gguf_set_val_bool(gguf, ("clip.has_" + side + "_encoder").c_str(), !type.empty());
    if (type.empty()) continue;
    gguf_set_val_str(gguf, ("clip." + side + ".projector_type").c_str(), type.c_str());
    number(side + ".embedding_length", projector.own_width);
    number(side + ".feed_forward_length", projector.inner);
    number(side + ".block_count", projector.layers);
    number(side + ".projection_dim", projector.width);
    number(side + ".attention.head_count", projector.heads);
    gguf_set_val_f32(gguf, ("clip." + side + ".attention.layer_norm_epsilon").c_str(), 1e-5f);
  }
  number("vision.image_size", projector.side);
  number("vision.patch_size", kPatch);
  number("vision.projector.scale_factor", kMerged);
  if (projector.sees == kTiled) {
    number("vision.preproc_min_tiles", 1);
    number("vision.preproc_max_tiles", kTiles);
  }
  constexpr std::array<float, 3> kHalf = {0.5f, 0.5f, 0.5f};
  gguf_set_arr_data(gguf, "clip.vision.image_mean", GGUF_TYPE_FLOAT32, kHalf.data(), kHalf.size());
  gguf_set_arr_data(gguf, "clip.vision.image_std", GGUF_TYPE_FLOAT32, kHalf.data(), kHalf.size());
  number("audio.num_mel_bins", kMels);
  number("audio.projector.stack_factor", kStack);
}

}  // namespace

const std::vector<Projector>& projectors() {
  static const std::vector<Projector> all = {
      {"mmproj-random-24m", "pictures as LLaVA, sounds as Ultravox", "mlp", "ultravox", 288},
      {"mmproj-random-24m-mutual", "pictures as Gemma 3, whose positions see each other", "gemma3", "", 288},
      {"mmproj-random-24m-tiles", "pictures in tiles, as InternVL", kTiled, "", 288},
      {"mmproj-random-mrope", "for random-mrope: pictures of any size, as Qwen2-VL", kQwen, "", 256},
      {.name = "mmproj-random-24m-large",
       .about = "pictures as LLaVA, with the size of CLIP ViT-L/14",
       .sees = "mlp",
       .hears = "",
       .width = 288,
       .own_width = 1024,
       .inner = 4096,
       .heads = 16,
       .layers = 24,
       .side = 336,
       .large = true},
  };
  return all;
}

const Projector* find_projector(const std::string& name) {
  for (const Projector& projector : projectors()) {
    if (projector.name == name) return &projector;
  }
  return nullptr;
}

Written write_projector(const Projector& projector, const std::string& path, std::uint64_t seed) {
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf(gguf_init_empty(), &gguf_free);
  set_keys(gguf.get(), projector);
  Plan plan(projector);
  if (!projector.sees.empty()) plan_eyes(projector, plan);
  if (!projector.hears.empty()) plan_ears(projector, plan);
  return write_file(gguf.get(), plan.tensors, path, seed);
}

}  // namespace mkmodel
