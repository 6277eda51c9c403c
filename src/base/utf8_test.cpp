#include "base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct Case {
  const char* what;
  std::string_view bytes;
  std::size_t length;  // what utf8_character() must say
  bool incomplete;     // what utf8_incomplete() must say
};

// Every border of table 3-7 of the Unicode standard, from both sides.
const Case kCases[] = {
    {"empty", "", 0, false},
    {"NUL", std::string_view("\0", 1), 1, false},
    {"last of one byte", "\x7F", 1, false},
    {"first of two", "\xC2\x80", 2, false},
    {"last of two", "\xDF\xBF", 2, false},
    {"first of three", "\xE0\xA0\x80", 3, false},
    {"before the surrogates", "\xED\x9F\xBF", 3, false},
    {"after the surrogates", "\xEE\x80\x80", 3, false},
    {"last of three", "\xEF\xBF\xBF", 3, false},
    {"first of four", "\xF0\x90\x80\x80", 4, false},
    {"U+10FFFF", "\xF4\x8F\xBF\xBF", 4, false},

    {"continuation first", "\x80", 0, false},
    {"last continuation first", "\xBF", 0, false},
    {"overlong slash of two", "\xC0\xAF", 0, false},
    {"overlong U+007F", "\xC1\xBF", 0, false},
    {"overlong of three", "\xE0\x9F\xBF", 0, false},
    {"overlong of four", "\xF0\x8F\xBF\xBF", 0, false},
    {"first surrogate", "\xED\xA0\x80", 0, false},
    {"last surrogate", "\xED\xBF\xBF", 0, false},
    {"over U+10FFFF", "\xF4\x90\x80\x80", 0, false},
    {"far over U+10FFFF", "\xF5\x80\x80\x80", 0, false},
    {"five bytes", "\xF8\x88\x80\x80\x80", 0, false},
    {"FE", "\xFE", 0, false},
    {"FF", "\xFF", 0, false},
    {"two, then ASCII", "\xC2"
                        "A", 0, false},
    {"three, bad third", "\xE2\x82"
                         "A", 0, false},
    {"four, bad fourth", "\xF0\x9F\x98\xC0", 0, false},

    {"one of two", "\xC2", 0, true},
    {"one of three", "\xE2", 0, true},
    {"two of three", "\xE2\x82", 0, true},
    {"one of four", "\xF0", 0, true},
    {"three of four", "\xF0\x9F\x98", 0, true},
    {"overlong can never be completed", "\xE0\x80", 0, false},
    {"a surrogate can never be completed", "\xED\xA0", 0, false},
    {"over U+10FFFF can never be completed", "\xF4\x90", 0, false},
};

TEST(Utf8, CharacterAndIncompleteAgreeWithTheUnicodeTable) {
  for (const Case& c : kCases) {
    EXPECT_EQ(utf8_character(c.bytes), c.length) << c.what;
    EXPECT_EQ(utf8_incomplete(c.bytes), c.incomplete) << c.what;
    EXPECT_EQ(is_valid_utf8(c.bytes), c.bytes.empty() || c.length == c.bytes.size()) << c.what;
  }
}

TEST(Utf8, CharacterLooksAtTheFirstOneOnly) {
  EXPECT_EQ(utf8_character("\xC3\xB1\xFF"), 2u);
  EXPECT_EQ(utf8_character("a\xFF"), 1u);
  EXPECT_FALSE(utf8_incomplete("a\xE2"));
}

TEST(Utf8, EveryCodePointIsValidExceptTheSurrogates) {
  for (unsigned point = 0; point <= 0x10FFFF; ++point) {
    std::string text;
    const auto more = [&](unsigned shift) { text += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xC0 | (point >> 6)), more(0);
    } else if (point < 0x10000) {
      text += static_cast<char>(0xE0 | (point >> 12)), more(6), more(0);
    } else {
      text += static_cast<char>(0xF0 | (point >> 18)), more(12), more(6), more(0);
    }
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    ASSERT_EQ(utf8_character(text), surrogate ? 0u : text.size()) << "U+" << std::hex << point;
  }
}

TEST(Utf8, OneBadByteAnywhereMakesATextInvalid) {
  EXPECT_TRUE(is_valid_utf8("chasqui corre \xF0\x9F\x8F\x83 y ma\xC3\xB1"
                            "ana"));
  EXPECT_FALSE(is_valid_utf8("ends in the middle \xF0\x9F\x8F"));
  EXPECT_FALSE(is_valid_utf8("\x80 first"));
}

}  // namespace
}  // namespace chasqui
