#include "cache/private_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chasqui {
namespace {

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path, const std::string& what, const std::string& field) {
  const auto refused = [&](ErrorCode code, const std::string& why) {
    return Error{code, "the folder for " + what + ", " + path + ", " + why, field};
  };
  const auto system_refused = [&](const std::string& action) {
    return refused(ErrorCode::unavailable, action + ": " + std::strerror(errno));
  };
  std::error_code failed;
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_refused("cannot be made");
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.is_open()) return system_refused("cannot be opened");
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return system_refused("cannot be looked at");
  if (status.st_uid != ::geteuid()) return refused(ErrorCode::forbidden, "must belong to the server's user");
  if ((status.st_mode & 077) != 0) {
    return refused(ErrorCode::forbidden, "holds what clients have said: others may not look into it (chmod 700)");
  }
  FileDescriptor lock(::openat(folder.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.is_open()) return system_refused("cannot be locked");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_refused("cannot be locked");
    return refused(ErrorCode::conflict, "is in use by another process: give each server one of its own");
  }
  return PrivateFolder(path, std::move(folder), std::move(lock));
}

std::vector<std::string> PrivateFolder::names() const {
  std::vector<std::string> names;
  const int again = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, DirectoryCloser> directory(::fdopendir(again));
  if (!directory) {
    if (again >= 0) ::close(again);
    return names;
  }
  while (const dirent* entry = ::readdir(directory.get())) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace chasqui
