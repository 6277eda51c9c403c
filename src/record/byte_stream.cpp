#include "record/byte_stream.h"

namespace chasqui {

void ByteWriter::table(std::span<const std::int64_t> figures, std::size_t columns) {
  number(figures.size() / columns);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const std::int64_t above = i < columns ? 0 : figures[i - columns];
    // Any difference of two numbers, with which ByteReader::table() comes back.
    signed_number(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(figures[i]) - static_cast<std::uint64_t>(above)));
  }
}

void ByteReader::table(std::vector<std::int64_t>& figures, std::size_t columns) {
  figures.clear();
  const std::uint64_t rows = number();
  if (rows > left_.size() / columns) return fail();  // a byte for each figure at least
  figures.reserve(rows * columns);
  for (std::size_t i = 0; i < rows * columns && !failed_; ++i) {
    const std::int64_t above = i < columns ? 0 : figures[i - columns];
    figures.push_back(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(signed_number()) + static_cast<std::uint64_t>(above)));
  }
}

void ByteReader::tokens(std::vector<Token>& tokens) {
  tokens.clear();
  const std::uint64_t count = number();
  if (count > left_.size() / 4) return fail();
  tokens.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(fixed(4)));
}

std::uint64_t ByteReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (left_.empty()) break;
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
  return 0;
}

std::uint64_t ByteReader::fixed(int bytes) {
  if (left_.size() < static_cast<std::size_t>(bytes)) {
    fail();
    return 0;
  }
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(left_[static_cast<std::size_t>(i)])) << (8 * i);
  }
  left_.remove_prefix(static_cast<std::size_t>(bytes));
  return value;
}

std::string_view ByteReader::bytes(std::uint64_t count) {
  if (count > left_.size()) {
    fail();
    return {};
  }
  const std::string_view found = left_.substr(0, count);
  left_.remove_prefix(count);
  return found;
}

}  // namespace chasqui
