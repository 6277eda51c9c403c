// The folder of --slot-save-path: what clients have saved of slots, each under a name of theirs. Belongs to the user of
// the server alone (0700) and is locked against other processes; each file is one snapshot (cache/snapshot_file.h),
// bound to model, context and tenant. Names of different tenants never meet: a file's name begins with its tenant's.
// Opened at start; then one thread at a time. Invariant: all files together are at most `bytes` once this has written,
// and what is there already counts. Where there are several tenants, no file makes one's have more than a fourth of it.
//
// Errors of restore() are those of cache/snapshot_file.h; conflict also when the file is of another tenant.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/use_gate.h"
#include "cache/private_folder.h"
#include "cache/snapshot_file.h"
#include "core/kv_snapshot.h"
#include "core/model_identity.h"

namespace chasqui {

// What clients may call a file: 1 to 128 bytes of UTF-8 that mean the same on every file system, and nothing but a
// name. The error names the field `filename`.
Result<void> check_slot_file_name(std::string_view name);

// Whose a file is, and for which model's adapters.
struct SlotFileOwner {
  LastingKey key;
  bool alone = false;  // there is no other tenant to be protected from this one
};

class SlotFiles {
 public:
  // `bytes`: of all files together. Errors as of PrivateFolder. Removes what an end in the middle of a write has left
  // behind.
  static Result<std::unique_ptr<SlotFiles>> open(const std::string& path, const ModelIdentity& identity,
                                                 std::uint64_t bytes);

  // The same folder for another model, when what is being saved or restored is done; this one refuses both from then
  // on. Once; not on the loop.
  std::unique_ptr<SlotFiles> hand_over(const ModelIdentity& identity);

  // Returns the bytes of the file, which is on disk then. too_large when there is no room for it; one that takes the
  // place of a file as large needs none in its tenant's share, which may have been all when the tenant was alone.
  // REQUIRES: check_slot_file_name(name), there are as many tokens as the snapshot has, and there are some
  Result<std::uint64_t> save(const std::string& name, SlotFileOwner owner, std::span<const Token> tokens,
                             const KvSnapshot& kv);
  // REQUIRES: check_slot_file_name(name)
  Result<LoadedSnapshot> restore(const std::string& name, std::uint64_t tenant, const SnapshotLimits& limits) const;

  const std::string& path() const { return folder_.path(); }

 private:
  SlotFiles(PrivateFolder folder, const ModelIdentity& identity, std::uint64_t bytes)
      : folder_(std::move(folder)), identity_(identity), bytes_max_(bytes), gate_(std::make_unique<UseGate>()) {}

  // What is on disk, also from an earlier process.
  struct Bytes {
    std::uint64_t former = 0;  // of the file that would be overwritten
    std::uint64_t own = 0;     // of all others of its tenant
    std::uint64_t all = 0;     // … of all tenants
  };
  Bytes bytes_beside(const std::string& file) const;
  Result<void> has_room(const std::string& file, std::uint64_t bytes, bool alone) const;

  PrivateFolder folder_;
  ModelIdentity identity_;
  std::uint64_t bytes_max_;
  std::unique_ptr<UseGate> gate_;
};

}  // namespace chasqui
