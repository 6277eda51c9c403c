#include "store/folder_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random_bits.h"
#include "cache/whole_file.h"
#include "store/object_name.h"

namespace chasqui::store {
namespace {

constexpr const char* kParts = ".parts";
constexpr std::int64_t kOldPart = 24 * 3600;  // seconds: the process that wrote it was killed
constexpr int kTries = 5;                     // another process may remove a folder that was just made
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// Calls for each entry until it says no. False: the folder cannot be read to its end.
bool each_entry(int folder, const std::function<bool(const char*)>& take) {
  const int again = ::openat(folder, ".", kFolderFlags);
  const std::unique_ptr<DIR, FolderCloser> entries(again < 0 ? nullptr : ::fdopendir(again));
  if (!entries) {
    const int why = errno;
    if (again >= 0) ::close(again);
    errno = why;
    return false;
  }
  for (errno = 0; const dirent* entry = ::readdir(entries.get()); errno = 0) {
    if (!take(entry->d_name)) return true;
  }
  return errno == 0;
}

std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}
std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

ErrorCode code_of_errno(int why) {
  switch (why) {
    case ENOENT: return ErrorCode::not_found;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ErrorCode::storage_full;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::forbidden;
    default: return ErrorCode::unavailable;
  }
}

FileDescriptor open_or_make(int folder, const std::string& part, bool makes) {
  FileDescriptor opened(::openat(folder, part.c_str(), kFolderFlags));
  if (opened.is_open() || errno != ENOENT || !makes) return opened;
  if (::mkdirat(folder, part.c_str(), 0700) == 0) {
    if (::fsync(folder) != 0) return {};
  } else if (errno != EEXIST) {
    return {};
  }
  return FileDescriptor(::openat(folder, part.c_str(), kFolderFlags));
}

std::optional<Error> outcome_of(const Result<void>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

}  // namespace

Result<std::unique_ptr<FolderStore>> FolderStore::open(const std::string& path) {
  const auto refused = [&path](const std::string& why) { return invalid_field("", "the folder " + path + ' ' + why); };
  const auto system_refused = [&refused](const std::string& what) {
    return refused(what + ": " + std::strerror(errno));
  };
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_refused("cannot be made");
  FileDescriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return system_refused("cannot be opened");
  struct stat status {};
  if (::fstat(root.get(), &status) != 0) return system_refused("cannot be looked at");
  if ((status.st_mode & 02) != 0) return refused("is open to all: others may not write into it (chmod o-w)");
  FileDescriptor parts = open_or_make(root.get(), kParts, true);
  if (!parts.is_open()) return system_refused("cannot be written to");
  auto store = std::unique_ptr<FolderStore>(new FolderStore(path, std::move(root), std::move(parts)));
  store->remove_old_parts();
  return store;
}

FolderStore::FolderStore(std::string path, FileDescriptor root, FileDescriptor parts)
    : path_(std::move(path)),
      root_(std::move(root)),
      parts_(std::move(parts)),
      own_(std::to_string(RandomBits{}()) + '-' + std::to_string(::getpid()) + '-') {}

Error FolderStore::named(Error error) const {
  error.message = "the store " + path_ + ": " + error.message;
  return error;
}

Error FolderStore::system_error(const std::string& what) const {
  return named({code_of_errno(errno), what + ": " + std::strerror(errno), ""});
}

Result<FileDescriptor> FolderStore::walk(const std::string& folder, Missing missing) const {
  FileDescriptor at = root_.again();
  for (std::size_t from = 0; at.is_open() && from < folder.size();) {
    const std::size_t slash = std::min(folder.find('/', from), folder.size());
    at = open_or_make(at.get(), folder.substr(from, slash - from), missing == Missing::make);
    from = slash + 1;
  }
  if (!at.is_open()) return system_error("cannot open a folder");
  return at;
}

Result<void> FolderStore::put_one(const StoredObject& object) {
  const std::string part = own_ + std::to_string(written_++);
  if (auto written = write_whole(parts_.get(), part, {object.bytes}); !written) {
    Error error = written.error();
    // Without its folder of parts there is no store any more; not that something is not found in it.
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
    if (error.code == ErrorCode::too_large) error.code = ErrorCode::storage_full;
    return named(error);
  }
  Result<void> outcome;
  for (int i = 0; i < kTries; ++i) {
    outcome = {};
    const auto folder = walk(folder_of(object.name), Missing::make);
    if (!folder) {
      outcome = folder.error();
    } else if (::renameat(parts_.get(), part.c_str(), folder->get(), last_part(object.name).c_str()) != 0) {
      outcome = system_error("cannot rename a file");
    } else {
      if (auto synced = sync_folder(folder->get()); !synced) return named(synced.error());
      return {};
    }
    if (outcome.error().code != ErrorCode::not_found) break;
  }
  ::unlinkat(parts_.get(), part.c_str(), 0);
  Error error = outcome.error();
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
  return error;
}

Result<std::vector<std::byte>> FolderStore::get_one(const std::string& name, std::size_t most) const {
  const auto folder = walk(folder_of(name), Missing::leave);
  if (!folder) return folder.error();
  auto bytes = read_whole(folder->get(), last_part(name), most);
  if (bytes) return bytes;
  Error error = bytes.error();
  if (error.code != ErrorCode::not_found) error.code = ErrorCode::unavailable;
  return named(error);
}

Result<void> FolderStore::remove_one(const std::string& name) const {
  const auto folder = walk(folder_of(name), Missing::leave);
  if (!folder) {
    if (folder.error().code == ErrorCode::not_found) return {};
    return folder.error();
  }
  if (::unlinkat(folder->get(), last_part(name).c_str(), 0) != 0) {
    if (errno != ENOENT) return system_error("cannot remove a file");
  } else if (auto synced = sync_folder(folder->get()); !synced) {
    return named(synced.error());
  }
  remove_empty(folder_of(name));
  return {};
}

// The system refuses those with something in them, however soon it came.
void FolderStore::remove_empty(std::string folder) const {
  while (!folder.empty()) {
    const auto above = walk(folder_of(folder), Missing::leave);
    if (!above || ::unlinkat(above->get(), last_part(folder).c_str(), AT_REMOVEDIR) != 0) return;
    folder = folder_of(folder);
  }
}

void FolderStore::remove_old_parts() const {
  const std::int64_t now = RealClock().unix_seconds();
  each_entry(parts_.get(), [&](const char* name) {
    struct stat status {};
    if (::fstatat(parts_.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        now - status.st_mtime > kOldPart) {
      ::unlinkat(parts_.get(), name, 0);
    }
    return true;
  });
}

ObjectStore::Outcomes FolderStore::put(std::span<const StoredObject> objects) {
  Outcomes out;
  for (const StoredObject& object : objects) {
    const auto fault = name_fault(object.name);
    out.push_back(fault ? fault : outcome_of(put_one(object)));
  }
  return out;
}

std::vector<Result<std::vector<std::byte>>> FolderStore::get(std::span<const std::string> names, std::size_t most) {
  std::vector<Result<std::vector<std::byte>>> out;
  for (const std::string& name : names) {
    const auto fault = name_fault(name);
    out.push_back(fault ? Result<std::vector<std::byte>>(*fault) : get_one(name, most));
  }
  return out;
}

ObjectStore::Outcomes FolderStore::remove(std::span<const std::string> names) {
  Outcomes out;
  for (const std::string& name : names) {
    const auto fault = name_fault(name);
    out.push_back(fault ? fault : outcome_of(remove_one(name)));
  }
  return out;
}

Result<std::vector<std::string>> FolderStore::list(const std::string& folder, std::size_t most) {
  std::vector<std::string> names;
  const auto fault = name_fault(folder);
  if (fault && !folder.empty()) return *fault;
  const std::string before = folder.empty() ? "" : folder + '/';
  const auto opened = walk(folder, Missing::leave);
  if (!opened) {
    if (opened.error().code == ErrorCode::not_found) return names;
    return opened.error();
  }
  const bool whole = each_entry(opened->get(), [&](const char* name) {
    if (is_name_part(name)) names.push_back(before + name);
    return names.size() <= most;
  });
  if (!whole) return system_error("cannot read a folder");
  if (names.size() > most) {
    return named({ErrorCode::unavailable, before + " has more than " + std::to_string(most) + " entries", ""});
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace chasqui::store
