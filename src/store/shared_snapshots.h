// SharedSnapshotStore over an object store. A snapshot is two objects of one name in two folders, the one with the KV
// written first and removed last:
//
//   snapshots/NAME        as in a file of the disk cache (cache/snapshot_file.h)
//   snapshot_heads/NAME   the beginning of it, up to its last token
//
// NAME says, in hexadecimal digits: when it was written (unix seconds), the bytes of the first object, the tenant,
// the model, and the content, with '-' between them. So all that can be known without reading an object comes with one
// list. A program that can list the store and guesses all tokens of a snapshot can see that it is there; what is in
// it is sealed where the store is.
//
// One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shared_snapshot_store.h"
#include "store/object_store.h"

namespace chasqui::store {

class SharedSnapshots final : public SharedSnapshotStore {
 public:
  // `place`: for messages.
  SharedSnapshots(std::unique_ptr<ObjectStore> objects, const ModelIdentity& identity, std::string place);

  Checksum content_of(LastingKey key, std::span<const Token> tokens) const override;
  Result<std::vector<SharedSnapshot>> list() override;
  std::vector<Result<SnapshotHead>> heads(std::span<const SharedSnapshot> of, const SnapshotLimits& limits) override;
  Result<LoadedSnapshot> read(const SharedSnapshot& which, const SnapshotLimits& limits) override;
  Result<SharedSnapshot> write(LastingKey key, std::span<const Token> tokens, KvSnapshotPtr kv,
                               std::int64_t now) override;
  Result<void> remove(std::span<const SharedSnapshot> which) override;
  Result<std::size_t> remove_strays(std::int64_t before) override;
  Result<std::size_t> erase(std::uint64_t tenant) override;
  const std::string& place() const override { return place_; }

 private:
  Result<LoadedSnapshot> read_once(const SharedSnapshot& which, const SnapshotLimits& limits);
  bool is_as_named(const SharedSnapshot& name, const SnapshotHead& head) const;
  // Names in a folder that this layout gives.
  Result<std::vector<std::string>> names_in(const std::string& folder);
  Result<void> remove_objects(std::vector<std::string> objects);

  const std::unique_ptr<ObjectStore> objects_;
  const ModelIdentity identity_;
  const std::uint64_t model_;  // identity_ in names
  const std::string place_;
};

}  // namespace chasqui::store
