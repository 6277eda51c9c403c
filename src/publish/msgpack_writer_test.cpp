#include "publish/msgpack_writer.h"

#include <gtest/gtest.h>

namespace chasqui::publish {
namespace {

std::string in_hex(const std::string& bytes) {
  std::string out;
  for (const char byte : bytes) {
    for (const int shift : {4, 0}) out += "0123456789abcdef"[static_cast<unsigned char>(byte) >> shift & 15];
  }
  return out;
}

template <class Write>
std::string written(Write write) {
  std::string out;
  MsgpackWriter writer(out);
  write(writer);
  return in_hex(out);
}

std::string number(std::uint64_t value) {
  return written([value](MsgpackWriter& out) { out.number(value); });
}

TEST(MsgpackWriter, WritesNumbersInTheShortestForm) {
  EXPECT_EQ(number(0), "00");
  EXPECT_EQ(number(127), "7f");
  EXPECT_EQ(number(128), "cc80");
  EXPECT_EQ(number(255), "ccff");
  EXPECT_EQ(number(256), "cd0100");
  EXPECT_EQ(number(65'535), "cdffff");
  EXPECT_EQ(number(65'536), "ce00010000");
  EXPECT_EQ(number(0xFFFFFFFF), "ceffffffff");
  EXPECT_EQ(number(0x100000000), "cf0000000100000000");
  EXPECT_EQ(number(UINT64_MAX), "cfffffffffffffffff");
}

TEST(MsgpackWriter, WritesTheLengthsOfTexts) {
  const auto head = [](std::size_t length, std::size_t digits) {
    return written([length](MsgpackWriter& out) { out.text(std::string(length, 'x')); }).substr(0, digits);
  };
  EXPECT_EQ(written([](MsgpackWriter& out) { out.text("GPU"); }), "a3475055");
  EXPECT_EQ(head(31, 4), "bf78");
  EXPECT_EQ(head(32, 6), "d92078");
  EXPECT_EQ(head(256, 8), "da010078");
  EXPECT_EQ(head(65'536, 12), "db0001000078");
}

TEST(MsgpackWriter, WritesTheLengthsOfArrays) {
  const auto array = [](std::size_t members) { return written([members](MsgpackWriter& out) { out.array(members); }); };
  EXPECT_EQ(array(0), "90");
  EXPECT_EQ(array(15), "9f");
  EXPECT_EQ(array(16), "dc0010");
  EXPECT_EQ(array(65'536), "dd00010000");
}

TEST(MsgpackWriter, WritesNothingAndReals) {
  EXPECT_EQ(written([](MsgpackWriter& out) { out.nil(); }), "c0");
  EXPECT_EQ(written([](MsgpackWriter& out) { out.real(1.5); }), "cb3ff8000000000000");
}

}  // namespace
}  // namespace chasqui::publish
