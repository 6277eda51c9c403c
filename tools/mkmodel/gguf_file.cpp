#include "gguf_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <ggml.h>
#include <gguf.h>
#include <llama.h>

#include "fill.h"

namespace mkmodel {
namespace {

constexpr const char* kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

struct GgufFree {
  void operator()(gguf_context* context) const { gguf_free(context); }
};
using Gguf = std::unique_ptr<gguf_context, GgufFree>;

struct TensorListFree {
  void operator()(ggml_context* context) const { ggml_free(context); }
};
using TensorList = std::unique_ptr<ggml_context, TensorListFree>;

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileClose>;

// All tokenizer keys of the vocab-only file, and nothing else of it.
void copy_vocabulary(gguf_context* to, const std::string& path) {
  const Gguf from(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (!from) throw std::runtime_error("no vocabulary " + path + "; tools/fetch_libllama.sh brings it");
  std::vector<std::string> others;
  for (std::int64_t i = 0; i < gguf_get_n_kv(from.get()); ++i) {
    const std::string key = gguf_get_key(from.get(), i);
    if (!key.starts_with("tokenizer.ggml.")) others.push_back(key);
  }
  for (const std::string& key : others) gguf_remove_key(from.get(), key.c_str());
  gguf_set_kv(to, from.get());
}

llama_ftype file_type(ggml_type weights) {
  switch (weights) {
    case GGML_TYPE_F16: return LLAMA_FTYPE_MOSTLY_F16;
    case GGML_TYPE_Q8_0: return LLAMA_FTYPE_MOSTLY_Q8_0;
    case GGML_TYPE_Q4_K: return LLAMA_FTYPE_MOSTLY_Q4_K_M;
    default: return LLAMA_FTYPE_MOSTLY_Q4_0;
  }
}

using Number = std::function<void(const std::string& key, std::int64_t value)>;

// Of the rotated pairs of a head, those that turn with each dimension: a quarter, three eighths, three eighths.
void set_sections(gguf_context* gguf, const Shape& s) {
  const auto eighth = static_cast<std::int32_t>(s.width / s.heads / 2 / 8);
  const std::int32_t sections[4] = {2 * eighth, 3 * eighth, 3 * eighth, 0};
  gguf_set_arr_data(gguf, (s.architecture + ".rope.dimension_sections").c_str(), GGUF_TYPE_INT32, sections, 4);
}

void set_delta_keys(const Shape& s, const Number& number) {
  number("full_attention_interval", s.attends);
  number("ssm.conv_kernel", kDeltaConvolution);
  number("ssm.state_size", s.state);
  number("ssm.time_step_rank", delta_values(s));
  number("ssm.group_count", delta_values(s) / kValuesOfKey);
  number("ssm.inner_size", delta_values(s) * s.state);
}

void set_expert_keys(const Shape& s, const Number& number) {
  number("expert_count", kExperts);
  number("expert_used_count", 2);
  number("expert_feed_forward_length", s.feed_forward);
  if (s.architecture == "qwen35moe") return number("expert_shared_feed_forward_length", s.feed_forward);
  number("leading_dense_block_count", s.layers - s.mtp_layers);
  number("expert_shared_count", 1);
}

void set_keys(gguf_context* gguf, const Shape& s) {
  const auto number = [&](const std::string& key, std::int64_t value) {
    gguf_set_val_u32(gguf, (s.architecture + "." + key).c_str(), static_cast<std::uint32_t>(value));
  };
  const auto real = [&](const std::string& key, float value) {
    gguf_set_val_f32(gguf, (s.architecture + "." + key).c_str(), value);
  };
  gguf_set_val_str(gguf, "general.architecture", s.architecture.c_str());
  gguf_set_val_str(gguf, "general.name", s.name.c_str());
  gguf_set_val_str(gguf, "general.description", ("Random weights: " + s.about).c_str());
  gguf_set_val_u32(gguf, "general.file_type", file_type(s.weights));
  gguf_set_val_str(gguf, "tokenizer.chat_template", kChatTemplate);
  number("block_count", s.layers);
  number("context_length", s.context);
  number("embedding_length", s.width);
  number("vocab_size", s.tokens);
  real("attention.layer_norm_rms_epsilon", 1e-6f);
  if (s.architecture == "mamba") {
    number("feed_forward_length", 0);
    number("attention.head_count", 0);
    number("ssm.conv_kernel", 4);
    number("ssm.inner_size", 2 * s.width);
    number("ssm.state_size", 16);
    number("ssm.time_step_rank", s.width / 16);
    return;
  }
  number("feed_forward_length", s.feed_forward);
  number("attention.head_count", s.heads);
  if (s.architecture == "lfm2") {
    std::vector<std::uint32_t> kv_heads;  // none where a layer does not attend
    for (std::int64_t i = 0; i < s.layers; ++i) {
      kv_heads.push_back((i + 1) % s.attends == 0 ? static_cast<std::uint32_t>(s.kv_heads) : 0);
    }
    gguf_set_arr_data(gguf, "lfm2.attention.head_count_kv", GGUF_TYPE_UINT32, kv_heads.data(), kv_heads.size());
    number("shortconv.l_cache", kConvolution);
  } else {
    number("attention.head_count_kv", s.kv_heads);
  }
  number("attention.key_length", s.width / s.heads);
  number("attention.value_length", s.width / s.heads);
  number("rope.dimension_count", s.width / s.heads);
  real("rope.freq_base", s.architecture.starts_with("qwen") ? 1e6f : 1e4f);
  const bool delta_net = s.architecture.starts_with("qwen35");
  if (s.architecture == "qwen2vl" || delta_net) set_sections(gguf, s);
  if (delta_net) set_delta_keys(s, number);
  if (s.heads_for > 0) {
    const std::uint32_t layers[kLayersRead] = {1, 3, 5};
    gguf_set_arr_data(gguf, "eagle3.target_layers", GGUF_TYPE_UINT32, layers, kLayersRead);
    number("target_hidden_size", s.heads_for);
  }
  if (s.mtp_layers > 0) number("nextn_predict_layers", s.mtp_layers);
  if (s.architecture.ends_with("moe")) set_expert_keys(s, number);
  if (s.window > 0) number("attention.sliding_window", s.window);
  if (s.ranks) {
    constexpr std::uint32_t kRank = 4;  // LLAMA_POOLING_TYPE_RANK
    number("pooling_type", kRank);
    const char* labels[] = {"yes", "no"};
    gguf_set_arr_str(gguf, (s.architecture + ".classifier.output_labels").c_str(), labels, 2);
    gguf_set_val_str(gguf, "tokenizer.chat_template.rerank", "Does it answer? Question: {query} Text: {document} :");
  }
}

// Tensors without data: gguf wants to know their names, types and extents.
TensorList add_tensors(gguf_context* gguf, const std::vector<TensorPlan>& plan) {
  TensorList list(
      ggml_init({.mem_size = ggml_tensor_overhead() * (plan.size() + 1), .mem_buffer = nullptr, .no_alloc = true}));
  for (const TensorPlan& p : plan) {
    ggml_tensor* tensor = ggml_new_tensor(list.get(), p.type, static_cast<int>(p.extents.size()), p.extents.data());
    ggml_set_name(tensor, p.name.c_str());
    gguf_add_tensor(gguf, tensor);
  }
  return list;
}

// FNV-1a; std::hash differs between libraries.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return h;
}

void write(std::FILE* file, std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) throw std::runtime_error("the disk is full");
}

void write_tensor(std::FILE* file, const TensorPlan& plan, std::size_t bytes, std::uint64_t seed,
                  std::size_t alignment) {
  Random random(hash(plan.name) + seed);
  const std::size_t row = ggml_row_size(plan.type, plan.extents.front());
  std::vector<std::byte> chunk(std::max<std::size_t>(kChunkBytes / row, 1) * row);
  for (std::size_t left = bytes; left > 0;) {
    const std::span<std::byte> part = std::span(chunk).first(std::min(left, chunk.size()));
    fill(plan, random, part);
    write(file, part);
    left -= part.size();
  }
  const std::vector<std::byte> padding(GGML_PAD(bytes, alignment) - bytes);
  write(file, padding);
}

}  // namespace

Written write_model(const Shape& shape, const std::string& vocabularies, const std::string& path, std::uint64_t seed) {
  const Gguf gguf(gguf_init_empty());
  copy_vocabulary(gguf.get(), vocabularies + "/ggml-vocab-" + shape.vocabulary + ".gguf");
  set_keys(gguf.get(), shape);
  return write_file(gguf.get(), plan_tensors(shape), path, seed);
}

Written write_file(gguf_context* gguf, const std::vector<TensorPlan>& plan, const std::string& path,
                   std::uint64_t seed) {
  const TensorList list = add_tensors(gguf, plan);

  const std::string unfinished = path + ".part";
  Written written;
  {
    const File file(std::fopen(unfinished.c_str(), "wb"));
    if (!file) throw std::runtime_error("cannot write " + unfinished);
    if (!gguf_write_to_file_ptr(gguf, file.get(), true)) throw std::runtime_error("cannot write " + unfinished);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const std::size_t bytes = gguf_get_tensor_size(gguf, static_cast<std::int64_t>(i));
      write_tensor(file.get(), plan[i], bytes, seed, gguf_get_alignment(gguf));
      std::uint64_t elements = 1;
      for (std::int64_t extent : plan[i].extents) elements *= static_cast<std::uint64_t>(extent);
      written.parameters += elements;
    }
    written.bytes = static_cast<std::uint64_t>(std::ftell(file.get()));
    if (std::fflush(file.get()) != 0) throw std::runtime_error("the disk is full");
  }
  std::filesystem::rename(unfinished, path);
  return written;
}

}  // namespace mkmodel
