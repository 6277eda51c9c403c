// The folder in which the workers keep snapshots as files: belongs to the user of the server alone (0700), is locked
// against other processes, and holds nothing that counts but NUMBER.kv. All of the disk tier's I/O is here; the numbers
// come from SnapshotStore. Opened and scanned at start; then any thread, one at a time for what changes one file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/use_gate.h"
#include "cache/private_folder.h"
#include "cache/snapshot_file.h"
#include "cache/whole_file.h"
#include "core/kv_snapshot.h"
#include "core/model_identity.h"

namespace chasqui {

// A file that was there at the start.
struct FoundSnapshot {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;  // of the whole file
  bool usable = false;      // false: of another model or of other settings; it only takes room
  LastingKey key{};         // the rest of usable ones
  std::vector<Token> tokens{};
};

class SnapshotFolder {
 public:
  // Makes the folder, and those above it, when they are not there. Errors name the path: conflict when another process
  // uses it, forbidden when it belongs to another user or others may look into it, unavailable when the system refuses.
  static Result<std::unique_ptr<SnapshotFolder>> open(const std::string& path, const ModelIdentity& identity);

  // The same folder for another model, when what is being read or written is done. It is empty then: an erase could
  // not find what another model has left. This one does nothing any more: its writes and reads fail, and what it was
  // told to remove counts as removed. Once; not on the loop.
  std::unique_ptr<SnapshotFolder> hand_over(const ModelIdentity& identity);

  // Removes what an end in the middle of a write has left behind, and what is damaged, and returns the rest, least
  // recently used first.
  std::vector<FoundSnapshot> scan(const SnapshotLimits& limits);

  Result<void> write(std::uint64_t number, LastingKey key, std::span<const Token> tokens, const KvSnapshot& kv);
  Result<LoadedSnapshot> read(std::uint64_t number, const SnapshotLimits& limits);
  // Without the KV.
  Result<SnapshotHead> head(std::uint64_t number, const SnapshotLimits& limits);
  // It was used just now, as the next scan() will see.
  void touch(std::uint64_t number);
  // A file that is not there is removed already.
  Result<void> remove(std::uint64_t number);
  // What was removed before stays so, whatever happens to the machine.
  Result<void> sync();

  const std::string& path() const { return folder_.path(); }

 private:
  Result<void> gone() const;
  SnapshotFolder(PrivateFolder folder, const ModelIdentity& identity)
      : folder_(std::move(folder)), identity_(identity), gate_(std::make_unique<UseGate>()) {}

  PrivateFolder folder_;
  ModelIdentity identity_;
  std::unique_ptr<UseGate> gate_;
};

}  // namespace chasqui
