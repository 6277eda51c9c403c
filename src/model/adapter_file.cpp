// What libllama takes for granted of an adapter is checked first: it ends the process on a key of another type, and a
// step with a tensor of a type that it cannot multiply by.
#include "model/adapter_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>

#include <ggml.h>
#include <gguf.h>
#include <sys/stat.h>

#include "model/gguf_handle.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

std::string reason_of(int error) { return std::string(std::strerror(error)) + "."; }

// FNV-1a over eight bytes at a time. It tells files apart that were made without malice, which is what they are: the
// operator names them. Nothing: it cannot be read.
std::optional<std::uint64_t> hash_of(std::FILE* stream) {
  std::rewind(stream);
  std::uint64_t hash = 0xCBF29CE484222325ull;
  std::array<std::uint64_t, 8192> block{};
  for (;;) {
    block.fill(0);
    const std::size_t read = std::fread(block.data(), 1, sizeof block, stream);
    for (std::size_t i = 0; i < (read + 7) / 8; ++i) {
      hash = (hash ^ block[i]) * 0x100000001B3ull;
      hash ^= hash >> 32;
    }
    if (read < sizeof block) return std::ferror(stream) != 0 ? std::nullopt : std::optional(hash ^ read);
  }
}

bool multiplies(ggml_type type) {
  switch (type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q8_0: return true;
    default: return false;
  }
}

// What is wrong with its head; empty: nothing.
std::string fault_of_head(const gguf_context* file, ggml_context* tensors) {
  for (const char* const key : {"general.type", "general.architecture", "adapter.type"}) {
    const std::int64_t id = gguf_find_key(file, key);
    if (id < 0) return std::string("it is no adapter: it has no ") + key + ".";
    if (gguf_get_kv_type(file, id) != GGUF_TYPE_STRING) return std::string(key) + " is no string in it.";
  }
  if (const std::int64_t alpha = gguf_find_key(file, "adapter.lora.alpha");
      alpha >= 0 && gguf_get_kv_type(file, alpha) != GGUF_TYPE_FLOAT32) {
    return "adapter.lora.alpha is no float in it.";
  }
  if (gguf_get_n_tensors(file) == 0) return "it has no tensors.";
  for (ggml_tensor* t = ggml_get_first_tensor(tensors); t != nullptr; t = ggml_get_next_tensor(tensors, t)) {
    const std::string name = ggml_get_name(t);
    if (ggml_nelements(t) == 0) return "its tensor " + name + " is empty.";
    if (!multiplies(t->type)) return "its tensor " + name + " has the type " + ggml_type_name(t->type) + ".";
    // Experts have a matrix each.
    const bool several = t->ne[2] != 1 && name.find("exps.") != std::string::npos;
    if (ggml_n_dims(t) > (several ? 3 : 2)) return "its tensor " + name + " has too many dimensions.";
  }
  return {};
}

std::string fault_of_head(std::FILE* stream) {
  std::rewind(stream);
  take_llama_error();
  ggml_context* tensors = nullptr;
  const GgufHandle file(gguf_init_from_file_ptr(stream, {.no_alloc = true, .ctx = &tensors}));
  const std::unique_ptr<ggml_context, void (*)(ggml_context*)> owned(tensors, &ggml_free);
  if (file) return fault_of_head(file.get(), tensors);
  const std::string reason = take_llama_error();
  return reason.empty() ? "it is no GGUF file." : reason + ".";
}

// What can be said of a path before it is opened: a pipe would wait for who writes into it.
Result<void> check_path(const AdapterFile& file) {
  struct stat status {};
  if (::stat(file.path.c_str(), &status) != 0) {
    const int failed = errno;
    Error error = bad_adapter(file.name, file.path, reason_of(failed));
    if (failed == ENOENT || failed == ENOTDIR) error.code = ErrorCode::not_found;
    return error;
  }
  if (S_ISDIR(status.st_mode)) {
    return bad_adapter(file.name, file.path, "it is a folder; name the .gguf file in it (convert_lora_to_gguf.py).");
  }
  if (!S_ISREG(status.st_mode)) return bad_adapter(file.name, file.path, "it is not a regular file.");
  return {};
}

}  // namespace

Error bad_adapter(const std::string& name, const std::string& path, const std::string& why) {
  return invalid_field("lora", "Cannot load the adapter " + name + " from " + path + ": " + why);
}

Result<OpenAdapter> open_adapter(const AdapterFile& file) {
  if (auto checked = check_path(file); !checked) return checked.error();
  OpenAdapter out;
  out.info.name = file.name;
  out.info.path = file.path;
  out.info.scale = file.scale;
  out.info.at_run_time = file.at_run_time;
  std::FILE* const stream = std::fopen(file.path.c_str(), "rbe");
  if (stream == nullptr) return bad_adapter(file.name, file.path, reason_of(errno));
  out.stream.reset(stream, &std::fclose);
  std::string fault;
  try {
    fault = fault_of_head(stream);
  } catch (const std::exception& thrown) {  // whatever a broken head makes the reader ask for
    fault = std::string(thrown.what()) + ".";
  }
  if (!fault.empty()) return bad_adapter(file.name, file.path, fault);
  const auto contents = hash_of(stream);
  if (!contents) return bad_adapter(file.name, file.path, reason_of(errno));
  out.info.contents = *contents;
  return out;
}

bool has_changed(const OpenAdapter& adapter) { return hash_of(adapter.stream.get()) != adapter.info.contents; }

}  // namespace chasqui
