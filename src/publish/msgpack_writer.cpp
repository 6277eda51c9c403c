#include "publish/msgpack_writer.h"

#include <bit>

#include "base/error.h"

namespace chasqui::publish {

void MsgpackWriter::put_big_endian(std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) put(static_cast<unsigned>(value >> shift & 0xFF));
}

void MsgpackWriter::array(std::size_t members) {
  CHECK(members <= UINT32_MAX);
  if (members < 16) return put(0x90 | static_cast<unsigned>(members));
  const bool is_short = members <= UINT16_MAX;
  put(is_short ? 0xDC : 0xDD);
  put_big_endian(members, is_short ? 2 : 4);
}

void MsgpackWriter::number(std::uint64_t value) {
  if (value < 128) return put(static_cast<unsigned>(value));
  const unsigned power = value <= UINT8_MAX ? 0 : value <= UINT16_MAX ? 1 : value <= UINT32_MAX ? 2 : 3;
  put(0xCC + power);
  put_big_endian(value, 1 << power);
}

void MsgpackWriter::real(double value) {
  put(0xCB);
  put_big_endian(std::bit_cast<std::uint64_t>(value), 8);
}

void MsgpackWriter::text(std::string_view text) {
  const std::size_t bytes = text.size();
  CHECK(bytes <= UINT32_MAX);
  if (bytes < 32) {
    put(0xA0 | static_cast<unsigned>(bytes));
  } else {
    const unsigned power = bytes <= UINT8_MAX ? 0 : bytes <= UINT16_MAX ? 1 : 2;
    put(0xD9 + power);
    put_big_endian(bytes, 1 << power);
  }
  out_ += text;
}

}  // namespace chasqui::publish
