// What a worker asks of the thread that does its file I/O, and what comes back. Plain values that are moved through
// mailboxes. The snapshots in them are constant, and a lease that was given away comes back in the outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "core/kv_snapshot.h"
#include "core/model_identity.h"
#include "core/types.h"

namespace chasqui {

struct DiskOrder {
  // sync: the files that were removed before it are gone for good; `file` is the ticket of DiskTier::forget().
  enum class Kind { remove, touch, read, write, sync };

  Kind kind = Kind::remove;
  std::uint64_t file = 0;
  // write only
  LastingKey key{};
  std::vector<Token> tokens{};
  KvSnapshotPtr kv{};
};

// Of a read, a write or a sync; of the others nothing can be said.
struct DiskOutcome {
  DiskOrder::Kind kind = DiskOrder::Kind::read;
  std::uint64_t file = 0;
  std::optional<Error> error{};  // codes as in cache/snapshot_file.h
  Duration took{};
  KvSnapshotPtr kv{};  // a write's own; what was read, when there is no error, and then also
  LastingKey key{};
  std::vector<Token> tokens{};
};

}  // namespace chasqui
