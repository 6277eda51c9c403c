#include "sim/ablation.h"

#include <set>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Ablation, EveryRuleHasOneName) {
  std::set<std::string> names;
  for (const AblationRule& each : ablation_rules()) {
    names.insert(each.name);
    PolicyRules rules;
    EXPECT_TRUE(rules.*each.rule) << "a server runs with " << each.name;
  }
  EXPECT_EQ(names.size(), ablation_rules().size());
  EXPECT_EQ(sizeof(PolicyRules), names.size() * sizeof(bool)) << "a rule without a name is never left out";
}

TEST(Ablation, RulesAreFoundByName) {
  EXPECT_EQ(find_ablation_rules("all", "--ablate")->size(), ablation_rules().size());
  EXPECT_STREQ(find_ablation_rules("targets,tenants", "--ablate")->at(1).name, "tenants");
  const auto none = find_ablation_rules("targets,luck", "--ablate");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("--ablate: there is no rule 'luck'; there are classes, tenants"),
            std::string::npos);
}

// One that costs dearly wherever it is missing.
TEST(Ablation, TellsWhatARuleIsWorth) {
  const auto rules = *find_ablation_rules("dense_slots", "--ablate");
  const auto presets = *find_cost_presets("8b-desktop", "--preset");
  const auto runs = ablate({.seed = 1, .seeds = 1, .requests = 60}, rules, presets);
  double worst = 1;
  for (const AblationRun& run : runs) {
    EXPECT_EQ(run.preset, "8b-desktop");
    EXPECT_GE(run.without[5], run.with[5]) << run.load << ": passes a step";
    worst = std::min(worst, run.without[0] / run.with[0]);
  }
  EXPECT_LT(worst, 0.95) << "tokens a second";
  EXPECT_NE(ablation_text(runs).find("without dense_slots:\n  tokens_per_s: mean -"), std::string::npos);
  EXPECT_NE(ablation_json(runs).find("\"rule\":\"dense_slots\""), std::string::npos);
}

}  // namespace
}  // namespace chasqui
