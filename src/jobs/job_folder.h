// The folder of --batch-dir: files that clients have uploaded, batches, their results. For the server's user alone, one
// process at a time. Names are the server's own, never a client's. Opened at start; then any thread, one at a time for
// each name.
//
// before-or-after: a file that put() or a FileWriter has written is there whole or not at all, whatever ends the
// process; it is on disk when they say so.
//
// Errors: not_found, storage_full where the disk has no room, unavailable where the system refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/file_descriptor.h"
#include "cache/private_folder.h"
#include "cache/whole_file.h"

namespace chasqui {

class JobFolder {
 public:
  // Errors as those of PrivateFolder::open, and they name the flag. Removes what an end in the middle of a write has
  // left behind.
  static Result<std::shared_ptr<JobFolder>> open(const std::string& path);

  std::vector<std::string> names() const;
  Result<void> put(const std::string& name, std::string_view text);
  Result<std::string> read(const std::string& name, std::size_t most) const;
  Result<OpenFile> open_file(const std::string& name) const;
  // Behind the first `at` bytes; what else was behind them is cut first.
  Result<void> append(const std::string& name, std::uint64_t at, std::string_view bytes);
  // Also where there is no such file.
  Result<void> remove(const std::string& name);

  int descriptor() const { return folder_.get(); }
  const std::string& path() const { return folder_.path(); }

 private:
  explicit JobFolder(PrivateFolder folder) : folder_(std::move(folder)) {}

  PrivateFolder folder_;
};

// A file that is written piece by piece. Gone where finish() was not reached.
class FileWriter {
 public:
  FileWriter(const JobFolder& folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  Result<void> add(std::string_view bytes);
  Result<void> finish();
  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kBuffer = 1 << 18;

  Result<void> flush();
  Result<void> write_out(std::string_view bytes);

  const JobFolder& folder_;
  const std::string name_;
  FileDescriptor file_;
  std::string buffer_;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;
};

// Up to so many bytes from a place on; fewer at the end of the file.
Result<std::string> read_at(const OpenFile& file, std::uint64_t at, std::size_t most);

}  // namespace chasqui
