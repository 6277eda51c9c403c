#include "jobs/job_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace chasqui {
namespace {

Error system_error(const std::string& what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found
                         : full          ? ErrorCode::storage_full
                                         : ErrorCode::unavailable;
  return {code, what + ": " + std::strerror(errno), ""};
}

// whole_file says too_large where the disk is full.
Result<void> told(Result<void> result) {
  if (result || result.error().code != ErrorCode::too_large) return result;
  Error error = result.error();
  error.code = ErrorCode::storage_full;
  return error;
}

}  // namespace

Result<std::shared_ptr<JobFolder>> JobFolder::open(const std::string& path) {
  auto folder = PrivateFolder::open(path, "files and batches", "--batch-dir");
  if (!folder) return folder.error();
  auto out = std::shared_ptr<JobFolder>(new JobFolder(std::move(*folder)));
  for (const std::string& name : out->names()) {
    if (!name.ends_with(kPartSuffix)) continue;
    if (auto removed = out->remove(name); !removed) return removed.error();
  }
  return out;
}

std::vector<std::string> JobFolder::names() const {
  std::vector<std::string> names = folder_.names();
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".." || name == "lock"; });
  std::ranges::sort(names);
  return names;
}

Result<void> JobFolder::put(const std::string& name, std::string_view text) {
  if (auto written = told(write_whole(folder_.get(), name, {std::as_bytes(std::span(text))})); !written) return written;
  return told(sync_folder(folder_.get()));
}

Result<std::string> JobFolder::read(const std::string& name, std::size_t most) const {
  const auto file = open_file(name);
  if (!file) return file.error();
  if (file->bytes > most) return Error{ErrorCode::too_large, "it is too large", ""};
  return read_at(*file, 0, file->bytes);
}

Result<OpenFile> JobFolder::open_file(const std::string& name) const { return open_whole(folder_.get(), name); }

Result<void> JobFolder::append(const std::string& name, std::uint64_t at, std::string_view bytes) {
  return told(append_at(folder_.get(), name, at, std::as_bytes(std::span(bytes))));
}

Result<void> JobFolder::remove(const std::string& name) {
  if (::unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) return system_error("cannot remove a file");
  return {};
}

FileWriter::~FileWriter() {
  if (file_.is_open() && !finished_) ::unlinkat(folder_.descriptor(), (name_ + kPartSuffix).c_str(), 0);
}

Result<void> FileWriter::add(std::string_view bytes) {
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBuffer) {
    buffer_ += bytes;
    return {};
  }
  if (auto flushed = flush(); !flushed) return flushed;
  return write_out(bytes);
}

Result<void> FileWriter::flush() {
  const std::string pending = std::exchange(buffer_, {});
  return write_out(pending);
}

Result<void> FileWriter::write_out(std::string_view bytes) {
  if (!file_.is_open()) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    file_ = FileDescriptor(::openat(folder_.descriptor(), (name_ + kPartSuffix).c_str(), kFlags, 0600));
    if (!file_.is_open()) return system_error("cannot make a file");
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> FileWriter::finish() {
  if (auto flushed = flush(); !flushed) return flushed;
  if (::fsync(file_.get()) != 0) return system_error("cannot sync a file");
  const int folder = folder_.descriptor();
  if (::renameat(folder, (name_ + kPartSuffix).c_str(), folder, name_.c_str()) != 0)
    return system_error("cannot rename");
  finished_ = true;
  return told(sync_folder(folder));
}

Result<std::string> read_at(const OpenFile& file, std::uint64_t at, std::size_t most) {
  if (at >= file.bytes) return std::string();
  std::string out(static_cast<std::size_t>(std::min<std::uint64_t>(most, file.bytes - at)), '\0');
  std::size_t got = 0;
  while (got < out.size()) {
    const ssize_t n = ::pread(file.file.get(), out.data() + got, out.size() - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read");
    if (n == 0) break;  // it became shorter
    got += static_cast<std::size_t>(n);
  }
  out.resize(got);
  return out;
}

}  // namespace chasqui
