// The folder in which encoded pictures and sounds are kept as files, so that a prompt with a picture that was encoded
// before need not encode it again, also after a restart. A file is a snapshot (cache/snapshot_file) whose tokens are
// the numbers of the unit's places and whose KV is its rows; its name says whose it is. Files that were used least
// recently make room for others. Belongs to the user of the server alone (0700), and is locked against other processes.
// Shared by the threads that encode for a model (engine/media_encodings); any thread, and one at a time reads or
// writes.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/metric_set.h"
#include "base/shared_lock.h"
#include "cache/private_folder.h"
#include "core/media.h"

namespace chasqui {

struct EncodingMetrics : MetricSet {
  Gauge bytes{*this, {"chasqui_media_disk_bytes", "Files of --cache-disk with encoded pictures and sounds."}};
  Gauge files{*this, {"chasqui_media_disk_files", "How many these are."}};
};

class EncodingFolder {
 public:
  static constexpr std::size_t kFilesMax = 65'536;  // bounds the index

  // Makes the folder, as PrivateFolder does, and looks at what is in it: what an end in the middle of a write has left
  // is removed, and what is beyond `bytes_max`.
  static Result<std::shared_ptr<EncodingFolder>> open(const std::string& path, std::uint64_t bytes_max);

  // `tenant`: Tenant::lasting, see lasting_tenant(). The rows as they were written, equally many numbers for each
  // place; none: they are not there, or cannot be read; a file that is damaged is removed.
  std::vector<float> read(std::uint64_t tenant, const MediaUnit& unit);
  // Replaces what was there. What cannot be written is not kept: the log has a line for a row of such failures.
  // REQUIRES: equally many rows for each place
  void write(std::uint64_t tenant, const MediaUnit& unit, std::span<const float> rows);
  // Removes all files of the tenant, and says how many when no crash brings them back. Those that could not be removed
  // are still known afterwards.
  Result<std::size_t> forget(std::uint64_t tenant);

  // Of all files. Waits for nothing.
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(metrics_.bytes.value()); }
  const EncodingMetrics& metrics() const { return metrics_; }
  const std::string& path() const { return folder_.path(); }

 private:
  struct Key {
    std::uint64_t tenant = 0;
    Checksum identity{};
    auto operator<=>(const Key&) const = default;
  };
  struct File {
    Key key;
    std::uint64_t bytes = 0;
  };
  using Files = std::list<File>;
  EncodingFolder(PrivateFolder folder, std::uint64_t bytes_max) : folder_(std::move(folder)), bytes_max_(bytes_max) {}
  static std::string name_of(const Key& key);
  Result<void> scan();
  bool fits(std::uint64_t bytes) const;
  void add(const Key& key, std::uint64_t bytes);
  bool remove(const Key& key);
  bool make_room(std::uint64_t bytes);

  const PrivateFolder folder_;
  const std::uint64_t bytes_max_;
  SharedLock lock_;  // of all that follows, and of the files
  Files files_;      // the one that was used least recently first
  std::map<Key, Files::iterator> by_key_;
  bool complained_ = false;
  EncodingMetrics metrics_;
};

}  // namespace chasqui
