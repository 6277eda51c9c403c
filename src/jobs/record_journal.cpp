#include "jobs/record_journal.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checksum.h"

namespace chasqui {
namespace {

constexpr std::uint32_t kMagic = 0x424C5143;  // "CQLB"
constexpr std::size_t kHead = 32;
constexpr std::size_t kPiece = 1 << 18;

void append_number(std::string& out, std::uint32_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

std::uint32_t number_at(std::string_view head, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, head.data() + at, sizeof value);
  return value;
}

Checksum checksum_of(std::string_view numbers, std::string_view text) {
  Checksummer sum;
  sum.add(std::as_bytes(std::span(numbers)));
  sum.add(std::as_bytes(std::span(text)));
  return sum.result();
}

}  // namespace

void append_record(std::string& out, std::uint32_t line, RecordKind kind, std::string_view text) {
  const std::size_t begin = out.size();
  append_number(out, kMagic);
  append_number(out, static_cast<std::uint32_t>(text.size()));
  append_number(out, line);
  append_number(out, static_cast<std::uint32_t>(kind));
  const Checksum sum = checksum_of(std::string_view(out).substr(begin + 4, 12), text);
  out.append(reinterpret_cast<const char*>(sum.data()), sum.size());
  out += text;
}

// Fewer at the end of the file.
Result<std::string_view> RecordReader::peek(std::size_t bytes) {
  const bool held = at_ >= buffer_at_ && at_ + bytes <= buffer_at_ + buffer_.size();
  if (!held) {
    auto piece = read_at(file_, at_, std::max(bytes, kPiece));
    if (!piece) return piece.error();
    buffer_ = std::move(*piece);
    buffer_at_ = at_;
  }
  return std::string_view(buffer_).substr(static_cast<std::size_t>(at_ - buffer_at_), bytes);
}

Result<std::optional<JobRecord>> RecordReader::next() {
  const auto head = peek(kHead);
  if (!head) return head.error();
  if (head->size() < kHead || number_at(*head, 0) != kMagic) return std::optional<JobRecord>();
  const std::size_t size = number_at(*head, 4);
  if (at_ + kHead + size > file_.bytes) return std::optional<JobRecord>();
  const auto whole = peek(kHead + size);
  if (!whole) return whole.error();
  if (whole->size() < kHead + size) return std::optional<JobRecord>();
  const std::string_view text = whole->substr(kHead);
  const Checksum sum = checksum_of(whole->substr(4, 12), text);
  if (std::memcmp(sum.data(), whole->data() + 16, sum.size()) != 0) return std::optional<JobRecord>();
  const std::uint32_t kind = number_at(*whole, 12);
  if (kind != 1 && kind != 2) return std::optional<JobRecord>();
  JobRecord record{number_at(*whole, 8), static_cast<RecordKind>(kind), std::string(text)};
  at_ += kHead + size;
  return std::optional<JobRecord>(std::move(record));
}

}  // namespace chasqui
