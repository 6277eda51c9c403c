// A folder of a test's own, removed at its end, and snapshots to put into it. One thread.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cache/file_descriptor.h"
#include "cache/snapshot_file.h"

namespace chasqui {

class FakeFolder {
 public:
  FakeFolder() {
    std::string name = testing::TempDir() + "chasqui.XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    folder_ = FileDescriptor(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~FakeFolder() { std::filesystem::remove_all(path_); }
  FakeFolder(const FakeFolder&) = delete;
  FakeFolder& operator=(const FakeFolder&) = delete;

  int fd() const { return folder_.get(); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string path() const { return path_; }

  std::vector<std::byte> bytes(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
  }
  void put(const std::string& name, std::span<const std::byte> bytes) const {
    std::filesystem::remove(path_ / name);  // some systems sync what is truncated, ten thousand times
    std::ofstream file(path_ / name, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(file.good());
  }
  // What is in it, or in a folder of it, in order.
  std::vector<std::string> names(const std::string& below = {}) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / below)) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::filesystem::path path_;
  FileDescriptor folder_;
};

inline ModelIdentity fake_identity(int model = 1, int settings = 1) {
  ModelIdentity identity;
  identity.weights.fill(static_cast<std::byte>(model));
  identity.context.fill(static_cast<std::byte>(settings));
  return identity;
}

// KV that depends on `salt`.
inline KvSnapshotPtr fake_kv(TokenCount tokens, std::size_t bytes, std::uint64_t salt = 0) {
  const auto kv = std::make_shared<KvSnapshot>(bytes, tokens);
  std::mt19937_64 random(salt + 1);
  for (std::byte& byte : kv->bytes()) byte = static_cast<std::byte>(random());
  return kv;
}

inline bool same_bytes(const KvSnapshot& a, const KvSnapshot& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

}  // namespace chasqui
