#include "adapter.h"

#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>

#include <ggml.h>
#include <gguf.h>

namespace mkmodel {
namespace {

constexpr std::int64_t kRank = 4;
// Of what is added to a weight, over the weight of a random model of that width.
constexpr float kStrength = 1.0f;
// The matrices of each layer that adapters usually change.
constexpr std::array<const char*, 3> kMatrices = {"attn_q.weight", "attn_v.weight", "ffn_down.weight"};

bool changes(const std::string& name) {
  for (const char* matrix : kMatrices) {
    if (name.starts_with("blk.") && name.ends_with(std::string(".") + matrix)) return true;
  }
  return false;
}

TensorPlan random_matrix(std::string name, std::int64_t in, std::int64_t out, float deviation) {
  TensorPlan plan;
  plan.name = std::move(name);
  plan.extents = {in, out};
  plan.value = deviation;
  return plan;
}

}  // namespace

Written write_adapter(const std::string& model, const std::string& path, std::uint64_t seed) {
  ggml_context* tensors = nullptr;
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> base(
      gguf_init_from_file(model.c_str(), {.no_alloc = true, .ctx = &tensors}), &gguf_free);
  if (!base) throw std::runtime_error("cannot read " + model);
  const std::unique_ptr<ggml_context, void (*)(ggml_context*)> list(tensors, &ggml_free);
  const std::int64_t key = gguf_find_key(base.get(), "general.architecture");
  if (key < 0) throw std::runtime_error(model + " does not say what it is");

  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> out(gguf_init_empty(), &gguf_free);
  gguf_set_val_str(out.get(), "general.architecture", gguf_get_val_str(base.get(), key));
  gguf_set_val_str(out.get(), "general.type", "adapter");
  gguf_set_val_str(out.get(), "general.name", "random");
  gguf_set_val_str(out.get(), "adapter.type", "lora");
  gguf_set_val_f32(out.get(), "adapter.lora.alpha", static_cast<float>(kRank));

  std::vector<TensorPlan> plan;
  for (ggml_tensor* t = ggml_get_first_tensor(list.get()); t != nullptr; t = ggml_get_next_tensor(list.get(), t)) {
    const std::string name = ggml_get_name(t);
    if (!changes(name)) continue;
    const float in = 1 / std::sqrt(static_cast<float>(t->ne[0]));
    plan.push_back(random_matrix(name + ".lora_a", t->ne[0], kRank, in));
    plan.push_back(random_matrix(name + ".lora_b", kRank, t->ne[1], kStrength / std::sqrt(static_cast<float>(kRank))));
  }
  if (plan.empty()) throw std::runtime_error(model + " has none of the matrices that are changed");
  return write_file(out.get(), plan, path, seed);
}

}  // namespace mkmodel
