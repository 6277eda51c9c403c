#include "base/freed_memory.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(FreedMemory, IsToldOfALargeBodyOnce) {
  take_large_body();
  EXPECT_FALSE(take_large_body());
  note_large_body();
  note_large_body();
  EXPECT_TRUE(take_large_body());
  EXPECT_FALSE(take_large_body());
  give_back_freed_memory();
}

}  // namespace
}  // namespace chasqui
