// Objects as files of a folder that all nodes mount (NFS and the like), or that one node has for itself. No lock is
// taken: a file is written whole under a name of its own in `.parts`, synced, renamed to its place, and then the folder
// is synced. Folders of names are made when they are needed, for the server's user alone, and go when they are empty.
// One thread at a time; any number of processes.
//
// Patience means nothing here: a call takes as long as the file system, and the mount says how long that may be.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/file_descriptor.h"
#include "store/object_store.h"

namespace chasqui::store {

class FolderStore final : public ObjectStore {
 public:
  // Makes the folder, and those above it, when they are not there. invalid_request, without a field, says why it cannot
  // be used: others may write into it, or what the system says.
  static Result<std::unique_ptr<FolderStore>> open(const std::string& path);

  Outcomes put(std::span<const StoredObject> objects) override;
  std::vector<Result<std::vector<std::byte>>> get(std::span<const std::string> names, std::size_t most) override;
  Outcomes remove(std::span<const std::string> names) override;
  Result<std::vector<std::string>> list(const std::string& folder, std::size_t most) override;

 private:
  enum class Missing { make, leave };
  FolderStore(std::string path, FileDescriptor root, FileDescriptor parts);

  Error named(Error error) const;
  Error system_error(const std::string& what) const;
  // The folder of this name, empty for the root.
  Result<FileDescriptor> walk(const std::string& folder, Missing missing) const;
  Result<void> put_one(const StoredObject& object);
  Result<std::vector<std::byte>> get_one(const std::string& name, std::size_t most) const;
  Result<void> remove_one(const std::string& name) const;
  void remove_empty(std::string folder) const;
  void remove_old_parts() const;

  const std::string path_;
  const FileDescriptor root_;
  const FileDescriptor parts_;
  std::uint64_t written_ = 0;
  const std::string own_;  // begins the names of this one's parts
};

}  // namespace chasqui::store
