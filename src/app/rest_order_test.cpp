#include "app/rest_order.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(RestOrder, IsGivenOnceWhenTheModelHasNoWork) {
  RestOrder order;
  EXPECT_FALSE(order.due(true, 0));
  EXPECT_TRUE(order.due(false, 0));
  EXPECT_FALSE(order.due(false, 0)) << "it falls asleep by itself";
}

TEST(RestOrder, IsGivenAgainAfterWorkThatWasSeen) {
  RestOrder order;
  EXPECT_TRUE(order.due(false, 0));
  EXPECT_FALSE(order.due(true, 0));
  EXPECT_TRUE(order.due(false, 0));
}

TEST(RestOrder, IsGivenAgainAfterAWakeWhoseRequestEndedUnseen) {
  RestOrder order;
  EXPECT_TRUE(order.due(false, 3));
  EXPECT_TRUE(order.due(false, 4)) << "it has slept and woken since, and would stay awake";
  EXPECT_FALSE(order.due(false, 4));
}

}  // namespace
}  // namespace chasqui
