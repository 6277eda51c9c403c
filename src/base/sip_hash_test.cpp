#include "base/sip_hash.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// Bytes 0 to 15 as the key, and the first bytes of these, as OpenSSL computes them.
TEST(SipHash, IsWhatOthersCompute) {
  constexpr std::uint64_t kLow = 0x0706050403020100;
  constexpr std::uint64_t kHigh = 0x0f0e0d0c0b0a0908;
  constexpr SipKey kKey{kLow, kHigh};
  SipHash nothing(kKey);
  EXPECT_EQ(nothing.result(), 0x726fdb47dd0e0e31U);
  SipHash one(kKey);
  one.add(kLow);
  EXPECT_EQ(one.result(), 0x93f5f5799a932462U);
  SipHash two(kKey);
  two.add(kLow);
  two.add(kHigh);
  EXPECT_EQ(two.result(), 0x3f2acc7f57c29bdbU);
}

TEST(SipHash, KeysAreUnlikeEachOther) { EXPECT_NE(SipKey::random().first, SipKey::random().first); }

}  // namespace
}  // namespace chasqui
