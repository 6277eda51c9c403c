#include "record/record_format.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "record/byte_stream.h"

namespace chasqui {
namespace {

// A piece: its stream, its length, a checksum of both and of its bytes.
constexpr std::size_t kNumberBytes = 8;  // of the first two
constexpr std::size_t kHeadBytes = kNumberBytes + 8;
// A record: its kind, its length.
constexpr std::size_t kRecordHead = 5;
// No writer makes longer pieces: the length of one that was damaged is not believed.
constexpr std::uint64_t kPieceMax = std::uint64_t{1} << 28;

std::string_view checksum_of(std::string_view numbers, std::string_view bytes, Checksum& room) {
  Checksummer sum;
  sum.add(std::as_bytes(std::span(numbers)));
  sum.add(std::as_bytes(std::span(bytes)));
  room = sum.result();
  return {reinterpret_cast<const char*>(room.data()), kHeadBytes - kNumberBytes};
}

Error damaged(std::size_t at, const std::string& what) {
  return Error{ErrorCode::invalid_request, "the recording is damaged at byte " + std::to_string(at) + ": " + what, ""};
}

}  // namespace

void append_piece(const RecordPiece& piece, std::string& out) {
  const std::size_t begun = out.size();
  ByteWriter head(out);
  head.fixed(piece.stream, 4);
  head.fixed(piece.bytes.size(), 4);
  Checksum room;
  const std::string numbers = out.substr(begun);
  out += checksum_of(numbers, piece.bytes, room);
  out += piece.bytes;
}

std::size_t begin_record(TapKind kind, std::string& out) {
  const std::size_t begun = out.size();
  out.push_back(static_cast<char>(kind));
  out.append(kRecordHead - 1, '\0');
  return begun;
}

void end_record(std::size_t begun, std::string& out) {
  std::uint64_t length = out.size() - begun - kRecordHead;
  for (std::size_t i = 1; i < kRecordHead; ++i, length >>= 8) out[begun + i] = static_cast<char>(length);
}

RecordFile::RecordFile(std::string bytes) : bytes_(std::make_unique<const std::string>(std::move(bytes))) {}

Result<RecordFile> RecordFile::parse(std::string bytes) {
  RecordFile file(std::move(bytes));
  if (auto read = file.read(); !read) return read.error();
  return file;
}

Result<void> RecordFile::read() {
  const std::string_view all = *bytes_;
  const std::string_view name = kRecordMagic.substr(0, kRecordMagic.find(' ') + 1);
  if (!all.starts_with(kRecordMagic)) {
    const bool other = all.starts_with(name);
    return Error{ErrorCode::invalid_request,
                 other ? "it is a recording of another version of chasqui, which this one cannot read"
                       : "it is no recording of `chasqui serve --record`",
                 ""};
  }
  std::size_t at = kRecordMagic.size();
  while (at < all.size()) {
    const std::string_view left = all.substr(at);
    cut_ = left.size();
    if (left.size() < kHeadBytes) return {};
    ByteReader head(left);
    const std::uint64_t stream = head.fixed(4);
    const std::uint64_t length = head.fixed(4);
    if (length > kPieceMax) return damaged(at, "a piece of " + std::to_string(length) + " bytes");
    if (length > left.size() - kHeadBytes) return {};
    const std::string_view bytes = left.substr(kHeadBytes, length);
    Checksum room;
    if (left.substr(kNumberBytes, kHeadBytes - kNumberBytes) !=
        checksum_of(left.substr(0, kNumberBytes), bytes, room)) {
      return damaged(at, "a checksum is wrong");
    }
    if (auto read = read_piece(static_cast<std::uint32_t>(stream), bytes, at + kHeadBytes); !read) return read;
    at += kHeadBytes + length;
  }
  cut_ = 0;
  return {};
}

Result<void> RecordFile::read_piece(std::uint32_t stream, std::string_view bytes, std::size_t at) {
  auto found = std::ranges::find(streams_, stream, &RecordStream::number);
  if (found == streams_.end()) {
    streams_.push_back({stream, {}});
    found = streams_.end() - 1;
  }
  while (!bytes.empty()) {
    ByteReader head(bytes);
    const std::uint64_t kind = head.fixed(1);
    const std::uint64_t length = head.fixed(4);
    if (head.failed() || length > bytes.size() - kRecordHead) return damaged(at, "a record is not whole");
    if (kind == 0 || kind >= kRecordKinds) return damaged(at, "there are no records of kind " + std::to_string(kind));
    found->records.push_back({static_cast<TapKind>(kind), bytes.substr(kRecordHead, length)});
    bytes.remove_prefix(kRecordHead + length);
    at += kRecordHead + length;
  }
  return {};
}

}  // namespace chasqui
