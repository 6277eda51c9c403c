// Files of snapshots, with checksums that are right, so that what is behind them is reached: nothing is read that is
// not there, and what is good has the size that it says.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>

#include "base/checksum.h"
#include "cache/snapshot_file.h"
#include "fuzz.h"

namespace chasqui {
namespace {

// As cache/snapshot_file.cpp has them.
constexpr std::size_t kIdentity = 40, kKvSum = 72, kHeadSum = 88, kHeadBytes = 104;

struct Folder {
  Folder() {
    path = (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/chasqui-fuzz-XXXXXX");
    must(::mkdtemp(path.data()) != nullptr, "there is a folder");
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
  int fd = -1;
};

void put(std::vector<std::byte>& file, std::size_t at, const Checksum& sum) {
  std::ranges::copy(sum, file.begin() + static_cast<std::ptrdiff_t>(at));
}

// The magic word, the version, the identity and the sums as they must be; the rest is as it came.
void seal(std::vector<std::byte>& file) {
  const std::string_view magic = "ChasquiK";
  std::ranges::transform(magic, file.begin(), [](char c) { return static_cast<std::byte>(c); });
  for (std::size_t i = 0; i < 4; ++i) file[8 + i] = std::byte{i == 0};
  std::fill_n(file.begin() + kIdentity, 32, std::byte{});
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < 4; ++i) tokens |= std::to_integer<std::size_t>(file[12 + i]) << 8 * i;
  const std::size_t kv = std::min(file.size(), kHeadBytes + 4 * tokens);
  put(file, kKvSum, checksum(std::span(file).subspan(kv)));
  Checksummer sum;
  sum.add(std::span(file).first(kHeadSum));
  sum.add(std::span(file).subspan(kHeadBytes, kv - kHeadBytes));
  put(file, kHeadSum, sum.result());
}

}  // namespace
}  // namespace chasqui

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  static const Folder folder;
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(bytes) + 1;
  std::vector<std::byte> file(begin, begin + size - 1);
  if (bytes[0] % 4 != 0 && file.size() >= kHeadBytes) seal(file);
  std::ofstream(folder.path + "/x", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  const auto head = read_snapshot_head(folder.fd, "x", {}, {});
  const auto loaded = read_snapshot(folder.fd, "x", {}, {});
  must(head.has_value() || !loaded.has_value(), "a bad head has no good body");
  if (!loaded) return 0;
  must(snapshot_file_bytes(loaded->head.tokens.size(), loaded->kv->bytes().size()) == file.size(), "all of it is used");
  return 0;
}
