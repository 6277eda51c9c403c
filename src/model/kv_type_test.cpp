#include "model/kv_type.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(KvType, AreThoseOfLlamaServer) {
  std::set<std::string, std::less<>> names;
  for (const KvType type : kv_types()) names.emplace(name(type));
  EXPECT_EQ(names, (std::set<std::string, std::less<>>{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0",
                                                       "q5_1"}));
}

TEST(KvType, TakesWhatItsBlocksTake) {
  EXPECT_EQ(bytes_per_value(KvType::f32), 4.0);
  EXPECT_EQ(bytes_per_value(KvType::f16), 2.0);
  EXPECT_EQ(bytes_per_value(KvType::q8_0), 34.0 / 32.0);
  EXPECT_EQ(bytes_per_value(KvType::q4_0), 18.0 / 32.0);
}

TEST(KvType, KeepsItsNumberInIdentities) {
  EXPECT_EQ(static_cast<int>(KvType::f16), 0);
  EXPECT_EQ(static_cast<int>(KvType::q8_0), 1);
}

}  // namespace
}  // namespace chasqui
