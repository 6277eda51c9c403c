// Which file a path named when it was looked at, as far as the system tells it without reading: another file of the
// same name, or one that was written to, has another stamp. A touched file has, too. A plain value; looking takes one
// call of the system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace chasqui {

struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t changed_seconds = 0;
  std::int64_t changed_nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
  // None: there is no such file.
  static std::optional<FileStamp> of(const std::string& path);
};

}  // namespace chasqui
