#include "pull/repo_folder.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace chasqui::pull {
namespace {

namespace fs = std::filesystem;

Error cannot(const fs::path& path, const std::string& why) {
  return {ErrorCode::unavailable, path.string() + ": " + why, ""};
}

Result<void> make_folder(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed && !fs::is_directory(path)) return cannot(path, failed.message());
  return {};
}

// The content itself, and not a name that leads to one.
bool is_content(const fs::path& path, const HubFile& file) {
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(path, none))) return false;
  const std::uint64_t bytes = fs::file_size(path, none);
  return !none && bytes == file.bytes;
}

// As the file systems of memory cards (exFAT) and of other machines (SMB) and those of FUSE say it.
bool means_no_links(const std::error_code& failed) {
  return failed == std::errc::operation_not_permitted || failed == std::errc::operation_not_supported ||
         failed == std::errc::function_not_supported;
}

}  // namespace

RepoFolder::RepoFolder(const std::string& hub, const std::string& repo) {
  std::string name = "models--" + repo;
  name.replace(name.find('/'), 1, "--");
  folder_ = fs::path(hub) / name;
  locks_ = fs::path(hub) / ".locks" / name;
}

Result<void> RepoFolder::prepare() const {
  for (const fs::path& path : {folder_ / "blobs", folder_ / "snapshots", folder_ / "refs", locks_}) {
    if (auto made = make_folder(path); !made) return made;
  }
  return {};
}

bool RepoFolder::has(const std::string& commit, const HubFile& file) const {
  std::error_code none;
  const std::uint64_t bytes = fs::file_size(blob(file), none);
  return (!none && bytes == file.bytes) || is_content(named(commit, file), file);
}

std::uint64_t RepoFolder::partial_bytes(const HubFile& file) const {
  std::error_code none;
  const std::uint64_t bytes = fs::file_size(partial(file), none);
  return none ? 0 : bytes;
}

fs::path RepoFolder::named(const std::string& commit, const HubFile& file) const {
  return folder_ / "snapshots" / commit / file.path;
}

Result<FileDescriptor> RepoFolder::lock(const HubFile& file) const {
  const fs::path path = locks_ / (file.oid + ".lock");
  while (true) {
    FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock.is_open()) return cannot(path, std::strerror(errno));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return FileDescriptor();
      if (errno == EINTR) continue;
      return lock;  // a file system without locks: as good as it gets
    }
    // Who had it before may have removed it: then another process can have the lock of a new file of this name.
    struct stat ours {};
    struct stat theirs {};
    const bool same = ::fstat(lock.get(), &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
                      ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
    if (same) return lock;
  }
}

Result<void> RepoFolder::name(const std::string& commit, const HubFile& file) const {
  const fs::path path = named(commit, file);
  const auto is_named = [&] {
    std::error_code unknown;
    return is_content(path, file) || fs::equivalent(path, blob(file), unknown);
  };
  if (is_named()) return {};
  if (auto made = make_folder(path.parent_path()); !made) return made;
  std::error_code failed;
  // Only what was there before: by now another process may have moved the content to this name.
  if (fs::exists(fs::symlink_status(path, failed))) fs::remove(path, failed);
  fs::create_symlink(blob(file).lexically_relative(path.parent_path()), path, failed);
  if (!failed || is_named()) return {};  // another process may have been faster
  if (means_no_links(failed)) fs::rename(blob(file), path, failed);
  if (failed && !is_named()) return cannot(path, failed.message());
  return {};
}

Result<void> RepoFolder::set_revision(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return {};
  const fs::path path = folder_ / "refs" / revision;
  if (auto made = make_folder(path.parent_path()); !made) return made;
  const fs::path written = path.string() + '.' + std::to_string(::getpid());
  std::error_code failed;
  std::ofstream file(written);
  file << commit;
  file.close();
  if (!file) failed = std::error_code(errno != 0 ? errno : EIO, std::generic_category());  // the disk is full
  if (!failed) fs::rename(written, path, failed);
  if (!failed) return {};
  std::error_code unknown;
  fs::remove(written, unknown);
  return cannot(path, failed.message());
}

std::optional<std::uint64_t> RepoFolder::free_bytes() const {
  struct statvfs room {};
  if (::statvfs(folder_.c_str(), &room) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
}

}  // namespace chasqui::pull
