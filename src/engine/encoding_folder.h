// The folder in which encoded pictures and sounds are kept as files, so that a prompt with a picture that was encoded
// before need not encode it again, also after a restart. A file is a snapshot (cache/snapshot_file) whose tokens are
// the numbers of the unit's places and whose KV is its rows; its name says whose it is. Files that were used least
// recently make room for others. Belongs to the user of the server alone (0700), and is locked against other processes.
// Shared by the threads that encode for a model (engine/media_encodings); any thread, and one at a time reads or
// writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/shared_lock.h"
#include "cache/private_folder.h"
#include "core/media.h"

namespace chasqui {

class EncodingFolder {
 public:
  // Makes the folder, as PrivateFolder does, and looks at what is in it: what an end in the middle of a write has left
  // is removed, and what is beyond `bytes_max`.
  static Result<std::shared_ptr<EncodingFolder>> open(const std::string& path, std::uint64_t bytes_max);

  // `tenant`: Tenant::lasting, see lasting_tenant(). The rows as they were written, equally many numbers for each
  // place; none: they are not there, or damaged, and then the file is removed.
  std::vector<float> read(std::uint64_t tenant, const MediaUnit& unit);
  // Replaces what was there. What cannot be written is not kept: the log has a line for a row of such failures.
  // REQUIRES: equally many rows for each place
  void write(std::uint64_t tenant, const MediaUnit& unit, std::span<const float> rows);
  // Removes all files of the tenant, and says how many when no crash brings them back. Those that could not be removed
  // are still known afterwards.
  Result<std::size_t> forget(std::uint64_t tenant);

  // Of all files. Waits for nothing.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  const std::string& path() const { return folder_.path(); }

 private:
  struct Key {
    std::uint64_t tenant = 0;
    Checksum identity{};
    auto operator<=>(const Key&) const = default;
  };
  struct Kept {
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // the larger, the later
  };
  EncodingFolder(PrivateFolder folder, std::uint64_t bytes_max) : folder_(std::move(folder)), bytes_max_(bytes_max) {}
  static std::string name_of(const Key& key);
  void scan();
  bool remove(const Key& key);
  void make_room(std::uint64_t bytes);

  const PrivateFolder folder_;
  const std::uint64_t bytes_max_;
  SharedLock lock_;  // of all that follows, and of the files
  std::map<Key, Kept> kept_;
  std::uint64_t uses_ = 0;
  bool complained_ = false;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace chasqui
