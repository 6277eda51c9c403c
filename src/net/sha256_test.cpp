#include "net/sha256.h"

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

TEST(Sha256, IsThatOfTheStandard) {
  const Sha256 abc = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                      0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
  EXPECT_EQ(sha256({"abc"}), abc);
  EXPECT_EQ(sha256({"a", "", "bc"}), abc);
  EXPECT_TRUE(equal_in_constant_time(sha256({"a", "bc"}), abc));
  EXPECT_FALSE(equal_in_constant_time(sha256({"abd"}), abc));
  EXPECT_FALSE(equal_in_constant_time(sha256({}), abc));
}

}  // namespace
}  // namespace chasqui::net
