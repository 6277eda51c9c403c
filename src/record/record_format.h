// How a recording lies in its file: kMagic, then pieces, each with a checksum, of one stream each; a stream is what one
// worker was told and has planned. A piece holds whole records, so that a file which ends in the middle of one (a
// killed process, a full disk) is good up to that piece. A record is its kind, its length and its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

inline constexpr std::string_view kRecordMagic = "chasqui-record 6\n";

enum class TapKind : std::uint8_t {
  head = 1,
  added,
  cancelled,
  all_cancelled,
  all_failed,
  tenant_forgotten,
  slots_copied_out,
  slots_emptied,
  slot_copy_wanted,
  slot_copied,
  slot_adopted,
  found_on_disk,
  disk_rests,
  disk_flushed,
  disk_done,
  disk_ordered,
  load_asked,
  planned,
  computed,
  finished,
  ended,  // the recording, though the server went on
  encoded,
  committed,
};
inline constexpr std::size_t kRecordKinds = 24;

struct RecordPiece {
  std::uint32_t stream = 0;
  std::string bytes;  // whole records
};

// As it lies in the file, at the end of `out`.
void append_piece(const RecordPiece& piece, std::string& out);

// Where a record begins in `out`, which end_record() completes.
std::size_t begin_record(TapKind kind, std::string& out);
void end_record(std::size_t begun, std::string& out);

struct Record {
  TapKind kind{};
  std::string_view parts;
};

// The records of one stream, in their order.
struct RecordStream {
  std::uint32_t number = 0;
  std::vector<Record> records;  // of the RecordFile that it is in
};

// A whole recording in memory.
class RecordFile {
 public:
  // Errors say what is wrong with it and at which byte: it is no recording, of another version, or damaged. One that
  // only ends too early is none: see cut().
  static Result<RecordFile> parse(std::string bytes);
  RecordFile(RecordFile&&) = default;
  RecordFile& operator=(RecordFile&&) = default;

  const std::vector<RecordStream>& streams() const { return streams_; }
  // Bytes at the end that are no whole piece.
  std::size_t cut() const { return cut_; }
  std::size_t size() const { return bytes_->size(); }

 private:
  explicit RecordFile(std::string bytes);
  Result<void> read();
  Result<void> read_piece(std::uint32_t stream, std::string_view bytes, std::size_t at);

  std::unique_ptr<const std::string> bytes_;  // what all records point into
  std::vector<RecordStream> streams_;
  std::size_t cut_ = 0;
};

}  // namespace chasqui
