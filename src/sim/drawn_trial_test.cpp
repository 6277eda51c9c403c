// Every promise of the scheduler on every kind of machine; `chasqui simulate --check` runs more of them.
#include "sim/drawn_trial.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class DrawnTrials : public testing::TestWithParam<CostPreset> {};

TEST_P(DrawnTrials, KeepEveryPromise) {
  const TrialsReport report = run_trials(1, 12, GetParam(), 80);
  EXPECT_EQ(report.broken, 0u) << trials_text({report});
  EXPECT_EQ(report.trials, 12u);
  EXPECT_GT(report.requests, 500u) << "clients ask, and are let in";
}

INSTANTIATE_TEST_SUITE_P(Presets, DrawnTrials, testing::ValuesIn(cost_presets()), [](const auto& each) {
  std::string name = each.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(DrawnTrial, TheSameSeedIsTheSameTrial) {
  const CostPreset preset = *find_cost_preset("8b-desktop", "--preset");
  EXPECT_EQ(trials_json({run_trials(3, 2, preset, 40)}), trials_json({run_trials(3, 2, preset, 40)}));
  EXPECT_NE(trials_json({run_trials(3, 2, preset, 40)}), trials_json({run_trials(9, 2, preset, 40)}));
}

}  // namespace
}  // namespace chasqui
