#include "model/weights_identity.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <gguf.h>
#include <llama.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/gguf_handle.h"
#include "model/llama_params.h"

namespace chasqui {
namespace {

constexpr std::size_t kSampleBytes = 4096;
constexpr std::size_t kSamples = 16;

class ReadFile {
 public:
  explicit ReadFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~ReadFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  std::uint64_t size() const {
    struct stat status {};
    return ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  // False when it does not have all of it.
  bool add(std::uint64_t at, std::size_t bytes, Checksummer& sum) {
    buffer_.resize(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = ::pread(fd_, buffer_.data() + done, bytes - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    sum.add(buffer_);
    return true;
  }

 private:
  const int fd_;
  std::vector<std::byte> buffer_;
};

bool add_tensor(ReadFile& file, std::uint64_t at, std::size_t bytes, Checksummer& sum) {
  if (bytes <= kSampleBytes * kSamples) return file.add(at, bytes, sum);
  for (std::size_t i = 0; i < kSamples; ++i) {
    if (!file.add(at + (bytes - kSampleBytes) * i / (kSamples - 1), kSampleBytes, sum)) return false;
  }
  return true;
}

bool add_file(const std::string& path, const gguf_context* gguf, Checksummer& sum) {
  ReadFile file(path);
  const std::uint64_t size = file.size();
  sum.add(std::as_bytes(std::span(&size, 1)));
  const std::uint64_t tensors_at = gguf_get_data_offset(gguf);
  if (!file.add(0, std::min<std::uint64_t>(tensors_at, size), sum)) return false;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
    const std::uint64_t at = tensors_at + gguf_get_tensor_offset(gguf, i);
    if (!add_tensor(file, at, gguf_get_tensor_size(gguf, i), sum)) return false;
  }
  return true;
}

// How many files the model is split into.
std::int32_t split_count(const gguf_context* gguf) {
  const std::int64_t key = gguf_find_key(gguf, "split.count");
  return key >= 0 && gguf_get_kv_type(gguf, key) == GGUF_TYPE_UINT16 ? gguf_get_val_u16(gguf, key) : 1;
}

Error cannot(const std::string& path) {
  return invalid_field("model", "Cannot read the model " + path + " again, to tell it from others.");
}

}  // namespace

Result<Checksum> identify_weights(const std::string& path) {
  Checksummer sum;
  std::string next = path;
  std::int32_t files = 1;
  for (std::int32_t i = 0; i < files; ++i) {
    const GgufHandle gguf(gguf_init_from_file(next.c_str(), {.no_alloc = true, .ctx = nullptr}));
    if (!gguf || !add_file(next, gguf.get(), sum)) return cannot(next);
    if (i == 0) files = std::max(1, split_count(gguf.get()));
    if (i + 1 == files) break;
    std::array<char, 4096> prefix{};
    std::array<char, 4096> name{};
    if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, files) <= 0 ||
        llama_split_path(name.data(), name.size(), prefix.data(), i + 1, files) <= 0) {
      return cannot(path);
    }
    next = name.data();
  }
  return sum.result();
}

Checksum identify_weights(std::span<const std::byte> gguf) { return checksum(gguf); }

Checksum identify_context(const ModelConfig& config, const ModelShape& shape) {
  const std::string text = std::string("libllama ") + CHASQUI_LLAMA_COMMIT + ", state " +
                           std::to_string(LLAMA_STATE_SEQ_VERSION) + ", keys " +
                           std::to_string(static_cast<int>(config.kv_keys)) + ", values " +
                           std::to_string(static_cast<int>(config.kv_values)) + ", flash attention " +
                           std::to_string(static_cast<int>(config.flash_attention)) + ", streams " +
                           std::to_string(shape.unified ? 1 : shape.slots) + (shape.long_rope ? ", long rope" : "") +
                           marks_of_kv(config.llama);
  return checksum(std::as_bytes(std::span(text)));
}

}  // namespace chasqui
