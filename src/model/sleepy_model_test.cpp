#include "model/sleepy_model.h"

#include <gtest/gtest.h>

#include "model/core_share.h"
#include "model/loaded_model.h"

namespace chasqui {
namespace {

TEST(SleepyModel, TakesACoreFromOthersWhileItWakes) {
  const auto cores = std::make_shared<CoreShare>(4, 3);
  std::vector<std::int32_t> parts;
  const auto make = [&]() -> Result<std::unique_ptr<Model>> {
    parts.push_back(cores->part({}));
    return load_sim().make({.slots = 1, .cells = 64, .rows_max = 8});
  };
  const auto model = SleepyModel::start(make, cores);
  ASSERT_TRUE(model);
  ASSERT_TRUE((*model)->fall_asleep());
  ASSERT_TRUE((*model)->wake());
  ASSERT_TRUE((*model)->wake()) << "it is awake";
  EXPECT_EQ(parts, (std::vector<std::int32_t>{4, 3})) << "who loads it first takes one itself";
  EXPECT_EQ(cores->part({}), 4);
}

}  // namespace
}  // namespace chasqui
