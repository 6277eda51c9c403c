// Snapshots of the prefix cache that nodes share, as objects in a store: each is there whole or not at all, is found by
// its content, and never changes. They are copies: whatever happens to one costs time and nothing else, and any node
// may remove any of them. An object says in its name when it was written, how large it is and whose KV it has, and a
// second, small one says of which tokens, so that a node learns what there is without reading KV.
//
// Owned by the SnapshotExchange, which has one for each of its threads. Calls block as those of the store do.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "cache/snapshot_file.h"
#include "core/model_identity.h"

namespace chasqui {

// As its name says.
struct SharedSnapshot {
  std::string name;          // names sort by age, the oldest first
  std::uint64_t bytes = 0;   // of the object with the KV
  std::uint64_t tenant = 0;  // LastingKey::tenant
  Checksum content{};        // see SharedSnapshotStore::content_of()
  bool is_of_model = false;  // and of its settings; else it only takes room
};

class SharedSnapshotStore {
 public:
  // Of all models together. A node that finds more removes the oldest.
  static constexpr std::size_t kSnapshotsMax = kSizeLimit<"shared_snapshots">;

  virtual ~SharedSnapshotStore() = default;

  // Of a key and its tokens, with this model.
  virtual Checksum content_of(LastingKey key, std::span<const Token> tokens) const = 0;
  // All that can be found, the oldest first.
  virtual Result<std::vector<SharedSnapshot>> list() = 0;
  // Whose they are and of which tokens; errors as in cache/snapshot_file.h, and those of the store.
  virtual std::vector<Result<SnapshotHead>> heads(std::span<const SharedSnapshot> of, const SnapshotLimits& limits) = 0;
  virtual Result<LoadedSnapshot> read(const SharedSnapshot& which, const SnapshotLimits& limits) = 0;
  // Lets go of the KV before it is sent, when it has a copy. `now`: unix seconds. REQUIRES: as write_snapshot()
  virtual Result<SharedSnapshot> write(LastingKey key, std::span<const Token> tokens, KvSnapshotPtr kv,
                                       std::int64_t now) = 0;
  virtual Result<void> remove(std::span<const SharedSnapshot> which) = 0;
  // What nothing can find, because a node ended between its two objects, and was written before `before`. How many.
  virtual Result<std::size_t> remove_strays(std::int64_t before) = 0;
  // All of a tenant, of whichever model, strays included. How many; after an error there may be some left.
  virtual Result<std::size_t> erase(std::uint64_t tenant) = 0;
  // For messages.
  virtual const std::string& place() const = 0;
};

// What an engine needs to share its snapshots; one connection for each thread of the exchange.
struct SharedSnapshotStores {
  std::shared_ptr<SharedSnapshotStore> index;  // null: nothing is shared
  std::shared_ptr<SharedSnapshotStore> reads;
  std::uint64_t bytes = 0;           // of all snapshots in the store
  Duration look_every = seconds(5);  // at what other nodes have put there; zero: without a pause, for tests
};

}  // namespace chasqui
