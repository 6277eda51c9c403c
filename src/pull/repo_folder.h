// One repository in the cache of Hugging Face's clients, to be written: contents under their checksums (blobs), names
// that lead to them for each commit (snapshots), commits of branches (refs), and a lock for each content. What is there
// is whole: a content that is being fetched has another name. Its owner's thread; other processes, Hugging Face's own
// clients among them, may work in it at the same time. A file system without symbolic links has contents under their
// names in the snapshots instead, as with those clients.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "cache/file_descriptor.h"
#include "pull/hub_files.h"

namespace chasqui::pull {

class RepoFolder {
 public:
  // `hub`: the folder of the cache. `repo`: USER/REPO.
  RepoFolder(const std::string& hub, const std::string& repo);

  // Makes the folders. Errors name the one that cannot be made.
  Result<void> prepare() const;

  // The whole content of that file is there, of whichever commit, or under its name in this one.
  bool has(const std::string& commit, const HubFile& file) const;
  // What an earlier time has left of it, in bytes.
  std::uint64_t partial_bytes(const HubFile& file) const;
  std::filesystem::path blob(const HubFile& file) const { return folder_ / "blobs" / file.oid; }
  std::filesystem::path partial(const HubFile& file) const { return folder_ / "blobs" / (file.oid + ".incomplete"); }
  std::filesystem::path named(const std::string& commit, const HubFile& file) const;

  // The right to fetch it, until it is closed; not open: another process has it.
  Result<FileDescriptor> lock(const HubFile& file) const;

  // The name in the snapshot of the commit leads to the content, or is moved there where nothing can lead to it.
  Result<void> name(const std::string& commit, const HubFile& file) const;
  // The revision is that commit from now on. A commit has no name but itself.
  Result<void> set_revision(const std::string& revision, const std::string& commit) const;

  // For this user; nothing: the system does not say.
  std::optional<std::uint64_t> free_bytes() const;
  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::filesystem::path locks_;
};

}  // namespace chasqui::pull
