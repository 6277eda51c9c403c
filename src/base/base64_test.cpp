#include "base/base64.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Base64, DecodesWhatItEncodes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes) << i;
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(encode_base64("Man"), "TWFu");
  EXPECT_EQ(encode_base64("Ma"), "TWE=");
  EXPECT_EQ(encode_base64("M"), "TQ==");
}

TEST(Base64, TakesBothAlphabetsAndNoPadding) {
  EXPECT_EQ(decode_base64("+/+/"), "\xfb\xff\xbf");
  EXPECT_EQ(decode_base64("-_-_"), "\xfb\xff\xbf");
  EXPECT_EQ(decode_base64("TWE"), "Ma");
  EXPECT_EQ(decode_base64("TQ"), "M");
  EXPECT_EQ(decode_base64(""), "");
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* text : {"T", "TWFuT", "TWF\n", "TW Fu", "TWF*", "=", "==", "====", "T===", "TQ=", "TWE==",
                           "TQ==TQ==", "TR==", "TWF=", "TWFu\xc3\xa9", "TWFu TWE="}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
  EXPECT_FALSE(decode_base64(std::string_view("TWFu\0AAA", 8)));
}

}  // namespace
}  // namespace chasqui
