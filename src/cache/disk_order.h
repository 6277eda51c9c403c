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

// Snapshots that nodes share (engine/snapshot_exchange) are files with numbers of their own, above those of workers.
constexpr std::uint64_t kSharedFiles = std::uint64_t{0xFFFF} << 48;
constexpr bool is_shared_file(std::uint64_t file) { return file >= kSharedFiles; }

struct DiskOrder {
  // sync: the files that were removed before it are gone for good; `file` is the ticket of DiskTier::forget().
  // found, gone: never ordered; a shared file that can be read from now on, or not any more.
  enum class Kind { remove, touch, read, write, sync, found, gone };

  Kind kind = Kind::remove;
  std::uint64_t file = 0;
  // write only
  LastingKey key{};
  std::vector<Token> tokens{};
  KvSnapshotPtr kv{};
};

// Of a read, a write or a sync, or what other nodes have done; of the others nothing can be said.
struct DiskOutcome {
  DiskOrder::Kind kind = DiskOrder::Kind::read;
  std::uint64_t file = 0;
  std::optional<Error> error{};  // codes as in cache/snapshot_file.h
  Duration took{};
  KvSnapshotPtr kv{};  // a write's own; what was read, when there is no error, and then also
  LastingKey key{};    // … of what was found
  std::vector<Token> tokens{};
  std::uint64_t bytes = 0;  // of a whole file that was found
};

}  // namespace chasqui
