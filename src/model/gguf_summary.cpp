#include "model/gguf_summary.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <ggml.h>
#include <gguf.h>
#include <sys/stat.h>

#include "model/gguf_handle.h"
#include "model/llama_runtime.h"
#include "model/window_layers.h"

namespace chasqui {
namespace {

constexpr std::int64_t kLayersMost = 10'000;
constexpr std::size_t kMetadataText = 1 << 20;
constexpr std::uint64_t kBytesMost = std::uint64_t{1} << 50;

Error bad_file(const std::string& why) { return invalid_field("model", why); }

// Keys by name, whatever type the file gives them: libllama's own getters end the process on a surprise.
class Keys {
 public:
  explicit Keys(const gguf_context* file) : file_(file) {}

  std::string text(const std::string& key) const {
    const std::int64_t id = gguf_find_key(file_, key.c_str());
    if (id < 0 || gguf_get_kv_type(file_, id) != GGUF_TYPE_STRING) return {};
    const std::string_view value = gguf_get_val_str(file_, id);
    return std::string(value.substr(0, kMetadataText));
  }

  std::optional<std::int64_t> number(const std::string& key) const {
    const std::int64_t id = gguf_find_key(file_, key.c_str());
    if (id < 0) return std::nullopt;
    switch (gguf_get_kv_type(file_, id)) {
      case GGUF_TYPE_UINT8: return gguf_get_val_u8(file_, id);
      case GGUF_TYPE_INT8: return gguf_get_val_i8(file_, id);
      case GGUF_TYPE_UINT16: return gguf_get_val_u16(file_, id);
      case GGUF_TYPE_INT16: return gguf_get_val_i16(file_, id);
      case GGUF_TYPE_UINT32: return gguf_get_val_u32(file_, id);
      case GGUF_TYPE_INT32: return gguf_get_val_i32(file_, id);
      case GGUF_TYPE_INT64: return gguf_get_val_i64(file_, id);
      case GGUF_TYPE_UINT64: return static_cast<std::int64_t>(std::min(gguf_get_val_u64(file_, id), kBytesMost));
      default: return std::nullopt;
    }
  }

  // A size: never negative, and not so large that products of two overflow.
  std::int64_t size(const std::string& key, std::int64_t otherwise = 0) const {
    const std::int64_t value = number(key).value_or(otherwise);
    return std::clamp<std::int64_t>(value, 0, std::int64_t{1} << 30);
  }

  // One number for all layers, or a list with one for each.
  std::vector<std::int64_t> per_layer(const std::string& key, std::int64_t layers, std::int64_t otherwise) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(layers), size(key, otherwise));
    const std::int64_t id = gguf_find_key(file_, key.c_str());
    if (id < 0 || gguf_get_kv_type(file_, id) != GGUF_TYPE_ARRAY) return out;
    const gguf_type type = gguf_get_arr_type(file_, id);
    if (type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32) return out;
    const auto* values = static_cast<const std::int32_t*>(gguf_get_arr_data(file_, id));
    const std::size_t count = std::min(gguf_get_arr_n(file_, id), out.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = std::max(values[i], 0);
    return out;
  }

  std::uint64_t length(const std::string& key) const {
    const std::int64_t id = gguf_find_key(file_, key.c_str());
    if (id < 0 || gguf_get_kv_type(file_, id) != GGUF_TYPE_ARRAY) return 0;
    return gguf_get_arr_n(file_, id);
  }

  bool has_any(const std::string& beginning) const {
    const std::int64_t count = gguf_get_n_kv(file_);
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::string_view(gguf_get_key(file_, i)).starts_with(beginning)) return true;
    }
    return false;
  }

 private:
  const gguf_context* file_;
};

void read_attention(const Keys& keys, const std::string& arch, GgufSummary& out) {
  const std::string attention = arch + ".attention.";
  const auto heads = keys.per_layer(attention + "head_count", out.layers, 0);
  const std::int64_t most = heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
  out.heads = most;
  const std::int64_t head_size = most > 0 ? out.embedding_length / most : 0;
  const std::int64_t key_size = keys.size(attention + "key_length", head_size);
  const std::int64_t value_size = keys.size(attention + "value_length", head_size);
  // Not said: as many as there are heads.
  const std::string kv = attention + "head_count_kv";
  const bool said = keys.number(kv) || keys.length(kv) > 0;
  auto kv_heads = keys.per_layer(said ? kv : attention + "head_count", out.layers, 0);
  // Or it is said of every how many layers, but for those that draft; where it is not, libllama takes four for some.
  const bool gated = arch == "qwen3next" || arch.starts_with("qwen35");
  if (const std::int64_t interval = keys.size(arch + ".full_attention_interval", gated ? 4 : 0); interval > 0) {
    const std::int64_t drafting = keys.size(arch + ".nextn_predict_layers");
    for (std::int64_t i = 0; i < out.layers - drafting; ++i) {
      if ((i + 1) % interval != 0) kv_heads[static_cast<std::size_t>(i)] = 0;
    }
  }
  // Where layers do one thing each (Nemotron-H), those with a feed-forward network have neither.
  const bool apart = keys.length(arch + ".feed_forward_length") > 0;
  const auto feed_forward = keys.per_layer(arch + ".feed_forward_length", out.layers, 0);
  out.state_layers = 0;
  for (std::size_t i = 0; i < kv_heads.size(); ++i) {
    out.state_layers += kv_heads[i] == 0 && (!apart || feed_forward[i] == 0) ? 1 : 0;
  }
  if (out.state_layers == 0) out.state_layers = out.layers;
  for (const std::int64_t n : kv_heads) {
    out.key_values_per_cell +=
        static_cast<std::uint64_t>(std::min<std::int64_t>(n, 1 << 16) * std::min<std::int64_t>(key_size, 1 << 20));
    out.value_values_per_cell +=
        static_cast<std::uint64_t>(std::min<std::int64_t>(n, 1 << 16) * std::min<std::int64_t>(value_size, 1 << 20));
  }
}

// The state of layers that have one, in floats: a window of inputs, and what they have become.
void read_states(const Keys& keys, const std::string& arch, GgufSummary& out) {
  const std::string ssm = arch + ".ssm.";
  const std::string wkv = arch + ".wkv.";
  const bool convolutions = keys.number(arch + ".shortconv.l_cache").has_value();
  const bool has_ssm = keys.has_any(ssm);
  const bool has_wkv = keys.has_any(wkv);
  out.recurrent = has_ssm || has_wkv || convolutions;
  out.hybrid = out.recurrent && out.key_values_per_cell > 0 && !has_wkv;
  if (!out.hybrid && out.recurrent) out.key_values_per_cell = out.value_values_per_cell = 0;
  const auto bounded = [&keys](const std::string& key) {
    return static_cast<std::uint64_t>(std::min<std::int64_t>(keys.size(key), 1 << 20));
  };
  std::uint64_t floats = 0;
  if (has_ssm) {
    const std::uint64_t kernel = std::max<std::uint64_t>(bounded(ssm + "conv_kernel"), 1);
    const std::uint64_t inner = bounded(ssm + "inner_size");
    const std::uint64_t state = std::min<std::uint64_t>(bounded(ssm + "state_size"), 1 << 16);
    const std::uint64_t groups = std::min<std::uint64_t>(bounded(ssm + "group_count"), 1 << 10);
    floats = std::min<std::uint64_t>(kernel - 1, 64) * (inner + 2 * groups * state) + state * inner;
  } else if (has_wkv) {
    const auto width = static_cast<std::uint64_t>(std::min<std::int64_t>(out.embedding_length, 1 << 20));
    floats = width * (2 + std::min<std::uint64_t>(bounded(wkv + "head_size"), 1 << 12));
  } else if (convolutions) {
    floats = std::min<std::uint64_t>(bounded(arch + ".shortconv.l_cache"), 64) *
             static_cast<std::uint64_t>(std::min<std::int64_t>(out.embedding_length, 1 << 20));
  }
  out.state_bytes_per_slot = floats * sizeof(float) * static_cast<std::uint64_t>(out.state_layers);
}

Result<void> read_tensors(const gguf_context* file, GgufSummary& out) {
  const std::int64_t count = gguf_get_n_tensors(file);
  std::uint64_t end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t size = gguf_get_tensor_size(file, i);
    const std::uint64_t offset = gguf_get_tensor_offset(file, i);
    if (size > kBytesMost || offset > kBytesMost) return bad_file("its tensors are larger than any file.");
    out.tensor_bytes += size;
    end = std::max(end, offset + size);
    const ggml_type type = gguf_get_tensor_type(file, i);
    const std::uint64_t of_a_row = ggml_type_size(type);
    if (of_a_row > 0) out.parameters += size / of_a_row * static_cast<std::uint64_t>(ggml_blck_size(type));
    std::string format = ggml_type_name(type);
    std::transform(format.begin(), format.end(), format.begin(), [](unsigned char c) { return std::toupper(c); });
    out.formats[format] += size;
  }
  out.tensors = static_cast<std::uint64_t>(count);
  const std::uint64_t needed = gguf_get_data_offset(file) + end;
  if (count == 0 || needed <= out.file_bytes) return {};
  return bad_file("it is cut short: its tensors end at byte " + std::to_string(needed) + ", the file at " +
                  std::to_string(out.file_bytes) + ".");
}

Result<GgufSummary> summarize(const gguf_context* file, std::uint64_t bytes) {
  const Keys keys(file);
  GgufSummary out;
  out.file_bytes = bytes;
  out.architecture = keys.text("general.architecture");
  if (out.architecture.empty()) return bad_file("it does not say its architecture.");
  if (auto read = read_tensors(file, out); !read) return read.error();
  const std::string& arch = out.architecture;
  out.name = keys.text("general.name");
  out.kind = keys.text("general.type");
  if (out.kind.empty()) out.kind = "model";
  out.adapter = keys.text("adapter.type");
  out.layers = keys.size(arch + ".block_count");
  if (out.layers > kLayersMost) return bad_file("it says that it has " + std::to_string(out.layers) + " layers.");
  out.embedding_length = keys.size(arch + ".embedding_length");
  out.context_trained = keys.size(arch + ".context_length");
  out.sliding_window = keys.size(arch + ".attention.sliding_window");
  if (out.sliding_window > 0) {
    out.window_layers = window_layers(arch, out.layers, keys.number(arch + ".attention.sliding_window_pattern"));
  }
  out.experts = keys.size(arch + ".expert_count");
  out.experts_used = keys.size(arch + ".expert_used_count");
  read_attention(keys, arch, out);
  read_states(keys, arch, out);
  out.vocabulary_type = keys.text("tokenizer.ggml.model");
  out.vocabulary = keys.length("tokenizer.ggml.tokens");
  out.chat_template = keys.text("tokenizer.chat_template");
  return out;
}

Result<GgufSummary> summarize(GgufHandle file, std::uint64_t bytes) {
  if (file) return summarize(file.get(), bytes);
  const std::string reason = take_llama_error();
  return bad_file(reason.empty() ? "it is broken." : "it is broken: " + reason + ".");
}

// Whatever a broken head makes the reader ask for.
template <class Read>
Result<GgufSummary> guarded(const Read& read) {
  if (auto started = start_llama_runtime(); !started) return started.error();
  take_llama_error();
  try {
    return read();
  } catch (const std::exception& thrown) {
    return bad_file(std::string("it is broken: ") + thrown.what() + ".");
  }
}

Result<std::uint64_t> size_of_model(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return bad_file(std::string(std::strerror(errno)) + ".");
  if (S_ISDIR(status.st_mode)) return bad_file("it is a folder; name the .gguf file in it.");
  if (!S_ISREG(status.st_mode)) return bad_file("it is not a regular file.");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return bad_file(std::string(std::strerror(errno)) + ".");
  char magic[4] = {};
  if (std::fread(magic, 1, sizeof magic, file.get()) != sizeof magic || std::memcmp(magic, "GGUF", 4) != 0) {
    return bad_file("it is not a GGUF file.");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

constexpr gguf_init_params kHeadOnly{true, nullptr};

}  // namespace

std::string GgufSummary::main_format() const {
  const auto most = std::max_element(formats.begin(), formats.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == formats.end() ? std::string() : most->first;
}

Result<GgufSummary> summarize_gguf(const std::string& path) {
  const auto bytes = size_of_model(path);
  if (!bytes) return bad_file(path + ": " + bytes.error().message);
  auto summary = guarded([&] { return summarize(GgufHandle(gguf_init_from_file(path.c_str(), kHeadOnly)), *bytes); });
  if (!summary) return bad_file(path + ": " + summary.error().message);
  return summary;
}

Result<GgufSummary> summarize_gguf(std::span<const std::byte> gguf) {
  return guarded(
      [&] { return summarize(GgufHandle(gguf_init_from_buffer(gguf.data(), gguf.size(), kHeadOnly)), gguf.size()); });
}

}  // namespace chasqui
