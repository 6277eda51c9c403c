// What a batch has answered so far: a file that only grows, a record for each line, in the order in which they were
// answered. A record counts once it is on disk whole; what an end of the process has left of one at the end of the file
// is not read, and cut by the next append. Pure but for reading; any thread.
//
//   at  bytes
//    0      4  magic
//    4      4  size of the text
//    8      4  number of the line in the input file
//   12      4  kind
//   16     16  checksum (XXH3) of bytes 4 … 15 and of the text
//   32      …  text
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/job_folder.h"

namespace chasqui {

enum class RecordKind : std::uint32_t { answered = 1, failed = 2 };

struct JobRecord {
  std::uint32_t line = 0;
  RecordKind kind = RecordKind::answered;
  std::string text;
};

void append_record(std::string& out, std::uint32_t line, RecordKind kind, std::string_view text);

class RecordReader {
 public:
  // `file` outlives it.
  explicit RecordReader(const OpenFile& file) : file_(file) {}

  // Nothing where there is no whole record. Errors: the system's.
  Result<std::optional<JobRecord>> next();
  // Behind the last whole record.
  std::uint64_t end() const { return at_; }

 private:
  Result<std::string_view> peek(std::size_t bytes);

  const OpenFile& file_;
  std::uint64_t at_ = 0;
  std::string buffer_;
  std::uint64_t buffer_at_ = 0;
};

}  // namespace chasqui
