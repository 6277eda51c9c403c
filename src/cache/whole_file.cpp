#include "cache/whole_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace chasqui {
namespace {

// write() and read() take no more than 2 GiB at once.
constexpr std::size_t kPiece = std::size_t{1} << 26;

Error system_error(const std::string& what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : full ? ErrorCode::too_large : ErrorCode::unavailable;
  return {code, what + ": " + std::strerror(errno), ""};
}
Error not_whole(std::string why) { return {ErrorCode::invalid_request, std::move(why), ""}; }

Result<void> write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> write_part(int folder, const std::string& part, const FilePieces& pieces) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor file(::openat(folder, part.c_str(), kFlags, 0600));
  if (!file.is_open() && errno == EEXIST && ::unlinkat(folder, part.c_str(), 0) == 0) {
    file = FileDescriptor(::openat(folder, part.c_str(), kFlags, 0600));
  }
  if (!file.is_open()) return system_error("cannot make a file");
  for (const std::span<const std::byte> piece : pieces) {
    if (auto written = write_all(file.get(), piece); !written) return written;
  }
  if (::fsync(file.get()) != 0) return system_error("cannot sync a file");
  return {};
}

}  // namespace

Result<void> write_whole(int folder, const std::string& name, const FilePieces& pieces) {
  const std::string part = name + kPartSuffix;
  auto written = write_part(folder, part, pieces);
  if (written && ::renameat(folder, part.c_str(), folder, name.c_str()) != 0) written = system_error("cannot rename");
  if (!written) ::unlinkat(folder, part.c_str(), 0);
  return written;
}

Result<void> sync_folder(int folder) {
  if (::fsync(folder) != 0) return system_error("cannot sync the folder");
  return {};
}

Result<void> append_at(int folder, const std::string& name, std::uint64_t at, std::span<const std::byte> bytes) {
  const FileDescriptor file(::openat(folder, name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return system_error("cannot open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot look at it");
  if (!S_ISREG(status.st_mode) || std::cmp_less(status.st_size, at)) return not_whole("it became shorter");
  const auto end = static_cast<off_t>(at);
  if (status.st_size > end && ::ftruncate(file.get(), end) != 0) return system_error("cannot cut");
  if (::lseek(file.get(), end, SEEK_SET) != end) return system_error("cannot seek");
  if (auto written = write_all(file.get(), bytes); !written) return written;
  if (::fdatasync(file.get()) != 0) return system_error("cannot sync a file");
  return {};
}

Result<OpenFile> open_whole(int folder, const std::string& name) {
  OpenFile out;
  // Without O_NONBLOCK a pipe by this name would hold us.
  out.file = FileDescriptor(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!out.file.is_open()) {
    if (errno == ELOOP) return not_whole("it is a link");
    return system_error("cannot open");
  }
  struct stat status {};
  if (::fstat(out.file.get(), &status) != 0) return system_error("cannot look at it");
  if (!S_ISREG(status.st_mode)) return not_whole("it is not a file");
  out.bytes = static_cast<std::uint64_t>(status.st_size);
  return out;
}

Result<void> read_exactly(int file, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::read(file, bytes.data(), std::min(bytes.size(), kPiece));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read");
    if (got == 0) return not_whole("it became shorter while it was read");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<std::vector<std::byte>> read_whole(int folder, const std::string& name, std::uint64_t most) {
  const auto opened = open_whole(folder, name);
  if (!opened) return opened.error();
  if (opened->bytes > most) return Error{ErrorCode::too_large, "it is too large", ""};
  std::vector<std::byte> bytes(opened->bytes);
  if (auto got = read_exactly(opened->file.get(), bytes); !got) return got.error();
  return bytes;
}

}  // namespace chasqui
