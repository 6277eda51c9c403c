#include "sim/cost_preset.h"

#include <set>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

double ms_of(const StepCost& cost, int rows, int depth) {
  return (cost.pass_us + rows * (cost.row_us + depth * cost.cell_us)) / 1000;
}

// Within a quarter of what facts about libllama have: a decode step of 16 rows with 512 cells each, 109 ms; a prompt of
// 1,200 tokens, 5 s.
TEST(CostPreset, TheSmallestIsWhatWasMeasured) {
  const CostPreset preset = *find_cost_preset("0.5b-laptop", "--preset");
  EXPECT_NEAR(ms_of(preset.cost.decode, 1, 0), 30, 3);
  EXPECT_NEAR(ms_of(preset.cost.decode, 16, 0), 86, 8);
  EXPECT_NEAR(ms_of(preset.cost.decode, 16, 512), 109, 27);
  EXPECT_NEAR(3 * ms_of(preset.cost.prefill, 400, 600), 5000, 1250);
}

TEST(CostPreset, LargerModelsCostMoreAndFasterMachinesLess) {
  const std::vector<CostPreset>& all = cost_presets();
  ASSERT_EQ(all.size(), 16u);
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    names.insert(all[i].name);
    EXPECT_FALSE(all[i].source.empty());
    const double step = ms_of(all[i].cost.decode, 8, 1000);
    if (i % 4 != 0) {
      EXPECT_LT(step, ms_of(all[i - 1].cost.decode, 8, 1000)) << all[i].name;
    }
    if (i < 4) continue;
    EXPECT_GT(step, ms_of(all[i - 4].cost.decode, 8, 1000)) << all[i].name;
    EXPECT_GT(all[i].cost.copy_us, all[i - 4].cost.copy_us) << all[i].name;
  }
  EXPECT_EQ(names.size(), all.size());
}

TEST(CostPreset, AreFoundByName) {
  EXPECT_EQ(find_cost_presets("all", "--preset")->size(), cost_presets().size());
  const auto two = find_cost_presets("8b-desktop,70b-gpu", "--preset");
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[1].cell_bytes, 327'680);
  const auto none = find_cost_presets("8b-desktop,9b-desktop", "--preset");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("--preset: there is no '9b-desktop'; there are 0.5b-laptop"), std::string::npos);
}

}  // namespace
}  // namespace chasqui
