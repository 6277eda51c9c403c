// Writes MessagePack, those kinds that events need: a value after the other, at the end of a text. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chasqui::publish {

class MsgpackWriter {
 public:
  // Outlives the writer.
  explicit MsgpackWriter(std::string& out) : out_(out) {}

  // So many values follow, which are its members. REQUIRES: fewer than 2^32
  void array(std::size_t members);
  void nil() { put(0xC0); }
  // In the shortest form.
  void number(std::uint64_t value);
  void real(double value);
  // REQUIRES: UTF-8, fewer than 2^32 bytes
  void text(std::string_view text);

 private:
  void put(unsigned byte) { out_.push_back(static_cast<char>(byte)); }
  void put_big_endian(std::uint64_t value, int bytes);

  std::string& out_;
};

}  // namespace chasqui::publish
