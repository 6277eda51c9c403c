// The lines of a file, one after the other from any place on, without holding the file. Blank lines count and are
// skipped; a carriage return before the line feed, and a byte order mark in front of the first line, belong to no line.
// Any thread, one at a time.
//
// bounded: of a line over `line_max` nothing is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/job_folder.h"

namespace chasqui {

struct LinePlace {
  std::uint32_t number = 1;  // of the next line
  std::uint64_t at = 0;      // where it begins
};

struct FileLine {
  LinePlace place;
  std::string_view text;  // until the next call
  bool too_long = false;  // then there is no text
};

class LineReader {
 public:
  // `file` outlives it.
  LineReader(const OpenFile& file, std::size_t line_max, LinePlace from = {})
      : file_(file), line_max_(line_max), next_(from) {}

  // Nothing at the end. Errors: the system's.
  Result<std::optional<FileLine>> next();
  // Behind the line that was read last.
  LinePlace place() const { return next_; }

 private:
  static constexpr std::size_t kPiece = 1 << 18;

  // Where the line that begins at `next_` ends: the place of its line feed, or the end of the file.
  Result<std::uint64_t> find_end();
  bool holds(std::uint64_t at) const { return at >= buffer_at_ && at < buffer_at_ + buffer_.size(); }

  const OpenFile& file_;
  const std::size_t line_max_;
  LinePlace next_;
  std::string buffer_;
  std::uint64_t buffer_at_ = 0;
};

}  // namespace chasqui
