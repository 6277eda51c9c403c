#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Rfc3339, IsAMomentInUtc) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(1'700'000'000), "2023-11-14T22:13:20Z");
}

}  // namespace
}  // namespace chasqui
