#include "api/body/tool_call_names.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(ToolCallNames, AreThoseOfTheLastCallWithAnId) {
  ToolCallNames names;
  names.add("c1", "first");
  names.add("c2", "other");
  names.add("c1", "second");
  EXPECT_EQ(names.of("c1"), "second");
  EXPECT_EQ(names.of("c2"), "other");
  EXPECT_EQ(names.of("c3"), "");
}

}  // namespace
}  // namespace chasqui
