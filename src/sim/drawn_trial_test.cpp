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

// Seeds that broke a promise once. With adapters (9, 42), streams of one set waited for prompts of their own set for
// ever, since the steps of the sets were counted together; a forecast overflowed (73); the watch was wrong (80, 198); a
// slot was emptied for a stream whose batch had just exchanged it, before the exchange (187); without a cache, prompts
// took the only slot from each other for ever, since what reading them again costs was taken to be nothing (977); the
// watch counted rows of those that had failed (420).
TEST(DrawnTrial, SeedsOfThePastKeepEveryPromise) {
  constexpr std::pair<const char*, std::uint64_t> kSeeds[] = {{"8b-laptop", 9},    {"70b-desktop", 42},
                                                              {"70b-laptop", 73},  {"8b-laptop", 80},
                                                              {"70b-laptop", 198}, {"1.1b-laptop", 187},
                                                              {"1.1b-laptop", 977}, {"1.1b-laptop", 420}};
  for (const auto& [preset, seed] : kSeeds) {
    const TrialsReport report = run_trials(seed, 1, *find_cost_preset(preset, "--preset"), 100);
    EXPECT_EQ(report.broken, 0u) << trials_text({report});
  }
}

// Or the check would promise more than it looks at.
TEST(DrawnTrial, EverythingThatAServerMayHaveIsDrawn) {
  const CostPreset preset = *find_cost_preset("1.1b-desktop", "--preset");
  const TrialsReport report = run_trials(1, 40, preset, 60);
  EXPECT_EQ(report.broken, 0u) << trials_text({report});
  EXPECT_GT(report.draft_tokens, 0u);
  EXPECT_GT(report.adapter_switches, 0u);
  EXPECT_GT(report.disk_reads, 0u);
  EXPECT_GT(report.cut_steps, 0u);
  EXPECT_GT(report.preemptions, 0u);
  EXPECT_LE(report.most_passed, 2 * Overtaking::kPassedMost);
  bool workers = false;
  bool sessions = false;
  bool states = false;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const DrawnTrial trial = draw_trial(seed, preset, 1);
    workers |= trial.run.workers > 1;
    sessions |= trial.run.clients.sessions;
    states |= !trial.run.scheduler.reuse.cache.cut_anywhere && trial.run.checkpoint_every > 0;
  }
  EXPECT_TRUE(workers && sessions && states);
}

TEST(DrawnTrial, TheSameSeedIsTheSameTrial) {
  const CostPreset preset = *find_cost_preset("8b-desktop", "--preset");
  EXPECT_EQ(trials_json({run_trials(3, 2, preset, 40)}), trials_json({run_trials(3, 2, preset, 40)}));
  EXPECT_NE(trials_json({run_trials(3, 2, preset, 40)}), trials_json({run_trials(9, 2, preset, 40)}));
}

}  // namespace
}  // namespace chasqui
