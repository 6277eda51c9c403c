#include "tensor_plan.h"

#include <cmath>

namespace mkmodel {
namespace {

constexpr auto kF32 = GGML_TYPE_F32;
using Fill = TensorPlan::Fill;

// Of the elements of the embedding table. Small beside what the layers add, so that a model with tied embeddings does
// not answer every token with itself.
constexpr float kEmbeddingDeviation = 0.05f;

class Plan {
 public:
  void matrix(const std::string& name, std::int64_t in, std::int64_t out, ggml_type type) {
    // Keeps the variance of what passes through.
    tensors.push_back({name, {in, out}, type, Fill::random, 1.0f / std::sqrt(static_cast<float>(in))});
  }
  void experts(const std::string& name, std::int64_t in, std::int64_t out, ggml_type type) {
    tensors.push_back({name, {in, out, kExperts}, type, Fill::random, 1.0f / std::sqrt(static_cast<float>(in))});
  }
  void embedding(const std::string& name, const Shape& shape, ggml_type type) {
    tensors.push_back({name, {shape.width, shape.tokens}, type, Fill::random, kEmbeddingDeviation});
  }
  void vector(const std::string& name, std::int64_t length, float value) {
    tensors.push_back({name, {length}, kF32, Fill::constant, value});
  }

  std::vector<TensorPlan> tensors;
  ggml_type finer = kF32;  // of this layer's values and matrix down
};

// As in files called Q4_K_M: half of the layers have some of six bits.
ggml_type finer(const Shape& s, std::int64_t layer) {
  if (s.weights != GGML_TYPE_Q4_K) return s.weights;
  const std::int64_t eighth = s.layers / 8;
  return layer < eighth || layer >= s.layers - eighth || (layer - eighth) % 3 == 2 ? GGML_TYPE_Q6_K : s.weights;
}

// What most kinds of layers have in common; `in`: the width of what attends.
void plan_attention(Plan& plan, const Shape& s, const std::string& layer, std::int64_t in) {
  const std::int64_t kv = s.width / s.heads * s.kv_heads;
  plan.matrix(layer + "attn_q.weight", in, s.width, s.weights);
  plan.matrix(layer + "attn_k.weight", in, kv, s.weights);
  plan.matrix(layer + "attn_v.weight", in, kv, plan.finer);
  plan.matrix(layer + "attn_output.weight", s.width, s.width, s.weights);
}

void plan_feed_forward(Plan& plan, const Shape& s, const std::string& layer, const std::string& kind = "") {
  plan.matrix(layer + "ffn_gate" + kind + ".weight", s.width, s.feed_forward, s.weights);
  plan.matrix(layer + "ffn_up" + kind + ".weight", s.width, s.feed_forward, s.weights);
  plan.matrix(layer + "ffn_down" + kind + ".weight", s.feed_forward, s.width, plan.finer);
}

void plan_attention_layer(Plan& plan, const Shape& s, const std::string& layer) {
  const std::int64_t kv = s.width / s.heads * s.kv_heads;
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  plan_attention(plan, s, layer, s.width);
  if (s.architecture.starts_with("qwen2")) {
    plan.vector(layer + "attn_q.bias", s.width, 0);
    plan.vector(layer + "attn_k.bias", kv, 0);
    plan.vector(layer + "attn_v.bias", kv, 0);
  }
  if (s.architecture == "qwen3") {
    plan.vector(layer + "attn_q_norm.weight", s.width / s.heads, 1);
    plan.vector(layer + "attn_k_norm.weight", s.width / s.heads, 1);
  }
  if (s.architecture == "gemma2") {
    plan.vector(layer + "post_attention_norm.weight", s.width, 1);
    plan.vector(layer + "post_ffw_norm.weight", s.width, 1);
  }
  plan.vector(layer + "ffn_norm.weight", s.width, 1);
  plan_feed_forward(plan, s, layer);
}

// … with one that is always asked.
void plan_experts(Plan& plan, const Shape& s, const std::string& layer) {
  plan_feed_forward(plan, s, layer, "_shexp");
  plan.matrix(layer + "ffn_gate_inp.weight", s.width, kExperts, kF32);
  plan.experts(layer + "ffn_gate_exps.weight", s.width, s.feed_forward, s.weights);
  plan.experts(layer + "ffn_up_exps.weight", s.width, s.feed_forward, s.weights);
  plan.experts(layer + "ffn_down_exps.weight", s.feed_forward, s.width, s.weights);
}

// Reads the model's states next to the tokens that they are of.
void plan_nextn(Plan& plan, const Shape& s, const std::string& layer) {
  plan.matrix(layer + "nextn.eh_proj.weight", 2 * s.width, s.width, s.weights);
  plan.vector(layer + "nextn.enorm.weight", s.width, 1);
  plan.vector(layer + "nextn.hnorm.weight", s.width, 1);
}

// The first layers are dense, the one that drafts has experts.
void plan_glm_layer(Plan& plan, const Shape& s, const std::string& layer, bool draft_tokens) {
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  plan_attention(plan, s, layer, s.width);
  plan.vector(layer + "post_attention_norm.weight", s.width, 1);
  if (!draft_tokens) return plan_feed_forward(plan, s, layer);
  plan_experts(plan, s, layer);
  plan.vector(layer + "exp_probs_b.bias", kExperts, 0);
  plan_nextn(plan, s, layer);
}

// Attends to what a token means and to the model's states before it, side by side.
void plan_eagle3_layer(Plan& plan, const Shape& s, const std::string& layer) {
  plan.matrix("fc.weight", kLayersRead * s.heads_for, s.width, s.weights);
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  plan.vector(layer + "attn_norm_2.weight", s.width, 1);
  plan_attention(plan, s, layer, 2 * s.width);
  plan.vector(layer + "ffn_norm.weight", s.width, 1);
  plan_feed_forward(plan, s, layer);
}

// Attention in every few layers, a short convolution with a state in the others.
void plan_hybrid_layer(Plan& plan, const Shape& s, const std::string& layer, bool attends) {
  const std::int64_t head = s.width / s.heads;
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  if (attends) {
    plan.matrix(layer + "attn_q.weight", s.width, s.width, s.weights);
    plan.matrix(layer + "attn_k.weight", s.width, head * s.kv_heads, s.weights);
    plan.matrix(layer + "attn_v.weight", s.width, head * s.kv_heads, s.weights);
    plan.vector(layer + "attn_q_norm.weight", head, 1);
    plan.vector(layer + "attn_k_norm.weight", head, 1);
    plan.matrix(layer + "attn_output.weight", s.width, s.width, s.weights);
  } else {
    plan.matrix(layer + "shortconv.conv.weight", kConvolution, s.width, kF32);
    plan.matrix(layer + "shortconv.in_proj.weight", s.width, 3 * s.width, s.weights);
    plan.matrix(layer + "shortconv.out_proj.weight", s.width, s.width, s.weights);
  }
  plan.vector(layer + "ffn_norm.weight", s.width, 1);
  plan_feed_forward(plan, s, layer);
}

// A gated delta net; in every few layers, and in the ones that draft, attention with a gate.
void plan_delta_layer(Plan& plan, const Shape& s, const std::string& layer, std::int64_t number) {
  const std::int64_t head = s.width / s.heads;
  const bool drafts = number + s.mtp_layers >= s.layers;
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  if (drafts || (number + 1) % s.attends == 0) {
    plan.matrix(layer + "attn_q.weight", s.width, 2 * s.width, s.weights);
    plan.matrix(layer + "attn_k.weight", s.width, head * s.kv_heads, s.weights);
    plan.matrix(layer + "attn_v.weight", s.width, head * s.kv_heads, s.weights);
    plan.vector(layer + "attn_q_norm.weight", head, 1);
    plan.vector(layer + "attn_k_norm.weight", head, 1);
    plan.matrix(layer + "attn_output.weight", s.width, s.width, s.weights);
  } else {
    const std::int64_t values = delta_values(s);
    const std::int64_t inner = values * s.state;
    const std::int64_t mixed = inner + 2 * inner / kValuesOfKey;
    plan.matrix(layer + "attn_qkv.weight", s.width, mixed, s.weights);
    plan.matrix(layer + "attn_gate.weight", s.width, inner, s.weights);
    plan.matrix(layer + "ssm_conv1d.weight", kDeltaConvolution, mixed, kF32);
    plan.vector(layer + "ssm_dt.bias", values, -4.6f);
    plan.tensors.push_back({layer + "ssm_a", {values}, kF32, Fill::state_decay, 0});
    plan.matrix(layer + "ssm_beta.weight", s.width, values, s.weights);
    plan.matrix(layer + "ssm_alpha.weight", s.width, values, s.weights);
    plan.vector(layer + "ssm_norm.weight", s.state, 1);
    plan.matrix(layer + "ssm_out.weight", inner, s.width, s.weights);
  }
  plan.vector(layer + "post_attention_norm.weight", s.width, 1);
  if (s.architecture == "qwen35moe") {
    plan_experts(plan, s, layer);
    plan.tensors.push_back({layer + "ffn_gate_inp_shexp.weight",
                            {s.width},
                            kF32,
                            Fill::random,
                            1 / std::sqrt(static_cast<float>(s.width))});
  } else {
    plan_feed_forward(plan, s, layer);
  }
  if (drafts) plan_nextn(plan, s, layer);
}

// Initial values as Mamba's authors choose them: states that decay at 1 … 16 times a step of about 0.01.
void plan_state_layer(Plan& plan, const Shape& s, const std::string& layer) {
  const std::int64_t inner = 2 * s.width;
  const std::int64_t rank = s.width / 16;
  plan.vector(layer + "attn_norm.weight", s.width, 1);
  plan.matrix(layer + "ssm_in.weight", s.width, 2 * inner, s.weights);
  plan.matrix(layer + "ssm_conv1d.weight", 4, inner, kF32);
  plan.vector(layer + "ssm_conv1d.bias", inner, 0);
  plan.matrix(layer + "ssm_x.weight", inner, rank + 2 * 16, s.weights);
  plan.matrix(layer + "ssm_dt.weight", rank, inner, kF32);
  plan.vector(layer + "ssm_dt.bias", inner, -4.6f);
  plan.tensors.push_back({layer + "ssm_a", {16, inner}, kF32, Fill::state_decay, 0});
  plan.vector(layer + "ssm_d", inner, 1);
  plan.matrix(layer + "ssm_out.weight", inner, s.width, s.weights);
}

}  // namespace

std::vector<TensorPlan> plan_tensors(const Shape& shape) {
  Plan plan;
  plan.embedding("token_embd.weight", shape, shape.embeddings);
  plan.vector(shape.architecture == "lfm2" ? "token_embd_norm.weight" : "output_norm.weight", shape.width, 1);
  const bool k_mixed = shape.weights == GGML_TYPE_Q4_K;
  if (!shape.tied) plan.embedding("output.weight", shape, k_mixed ? GGML_TYPE_Q6_K : shape.embeddings);
  if (shape.ranks) plan.matrix("cls.output.weight", shape.width, 2, kF32);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    plan.finer = finer(shape, i);
    if (shape.architecture == "mamba") {
      plan_state_layer(plan, shape, layer);
    } else if (shape.architecture == "lfm2") {
      plan_hybrid_layer(plan, shape, layer, (i + 1) % shape.attends == 0);
    } else if (shape.architecture.starts_with("qwen35")) {
      plan_delta_layer(plan, shape, layer, i);
    } else if (shape.architecture == "eagle3") {
      plan_eagle3_layer(plan, shape, layer);
    } else if (shape.architecture == "glm4moe") {
      plan_glm_layer(plan, shape, layer, i + shape.mtp_layers >= shape.layers);
    } else {
      plan_attention_layer(plan, shape, layer);
    }
  }
  return plan.tensors;
}

}  // namespace mkmodel
