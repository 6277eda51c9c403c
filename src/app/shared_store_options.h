// The flags for what nodes share: a store of objects, and Redis, which says whose each session is. Part of app/config.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/limits.h"
#include "engine/shared_session_store.h"
#include "engine/shared_snapshot_store.h"
#include "store/open_store.h"

namespace chasqui {

struct SharedStoreFlags {
  store::ObjectStoreConfig objects;  // without a URL: nothing is shared
  std::string leases;                // Redis
  std::int64_t cache_mib = kCountLimit<"shared_cache_bytes"> / (1 << 20);  // of the disk caches' snapshots in the store

  bool wanted() const { return !objects.url.empty() || !leases.empty(); }
};

void add_shared_store_options(CLI::App& app, SharedStoreFlags& flags);

// While the program starts: what the environment says of S3, and whether the flags make sense together. Errors name the
// flag. `session_dir`: of --session-dir.
Result<void> complete_shared_store(SharedStoreFlags& flags, const std::string& session_dir);

// `root`: the folder of a model's objects; empty: there is one model. Asks neither the store nor Redis for anything.
// Errors name the flag.
Result<std::shared_ptr<SharedSessionStore>> open_shared_sessions(const SharedStoreFlags& flags, const std::string& root,
                                                                 const Checksum& vocabulary);
// Snapshots of the disk cache in the same store, for a model; index is null where they are not to be shared. As above.
Result<SharedSnapshotStores> open_shared_snapshots(const SharedStoreFlags& flags, const ModelIdentity& identity);
// The name of a model as a part of the names of objects, where there are several; no two names give the same.
std::string shared_root_of(const std::string& model);

}  // namespace chasqui
