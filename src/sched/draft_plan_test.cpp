#include "sched/draft_plan.h"

#include <gtest/gtest.h>

#include "sched/fake_sequences.h"

namespace chasqui {
namespace {

constexpr SpeculationConfig kModel{.draft_tokens_max = 3, .draft_model = true};
constexpr SpeculationConfig kHeads{.draft_tokens_max = 3, .draft_model = true, .heads = true};

struct Planned {
  explicit Planned(const SpeculationConfig& config) : drafts(config), model(config) {}
  // One sequence with a prompt of so many tokens.
  Sequence& begin(TokenCount prompt) {
    Sequence& sequence = sequences.add(test_prompt(prompt, 1));
    collect();
    return sequence;
  }
  void collect() {
    drafts.collect(sequences.decoding(), 100);
    for (const Sequence* each : sequences.decoding()) model.meet(*each);
  }
  void plan(TokenCount checked, Duration time = seconds(1)) {
    collect();
    drafting.clear();
    for (const Drafts::Turn& turn : drafts.turns()) turn.draft->checked = checked;
    model.plan(drafts.turns(), time, drafting);
  }
  FakeSequences sequences;
  Drafts drafts;
  DraftPlan model;
  Drafting drafting;
  BatchResult result;
};

TEST(DraftPlan, ReadsAPromptBeforeItDrafts) {
  Planned planned(kModel);
  Sequence& sequence = planned.begin(80);
  EXPECT_FALSE(planned.model.ready(sequence));
  planned.plan(0);
  EXPECT_EQ(planned.drafting.reading.size(), 64u) << "of a model that is not known";
  planned.result.drafted = true;
  planned.result.draft_reading = milliseconds(64);
  EXPECT_EQ(planned.model.drafted(planned.result), 64u);
  planned.plan(0, milliseconds(40));
  EXPECT_EQ(planned.drafting.reading.size(), 16u) << "all that is left, in the time of twenty";
  EXPECT_EQ(planned.drafting.reading.front().position, 64);
  EXPECT_EQ(planned.model.drafted(planned.result), 16u);
  EXPECT_TRUE(planned.model.ready(sequence)) << "all but the newest token";
}

TEST(DraftPlan, ComputesTheNewestTokensAndMakesAsManyAsAreChecked) {
  Planned planned(kModel);
  Sequence& sequence = planned.begin(3);
  planned.plan(0);
  planned.result.drafted = true;
  planned.model.drafted(planned.result);
  planned.plan(2);
  EXPECT_TRUE(planned.drafting.reading.empty());
  ASSERT_EQ(planned.drafting.rows.size(), 2u);
  EXPECT_EQ(planned.drafting.rows.back().position, sequence.length() - 1);
  EXPECT_DOUBLE_EQ(planned.model.seconds(2, 1, 1), 0.25) << "an eighth of a step for each, until it is known";
  planned.result.drafting = milliseconds(6);
  planned.model.drafted(planned.result);
  EXPECT_DOUBLE_EQ(planned.model.seconds(2, 1, 1), 0.006);
  FakeSequences::say(sequence, {1, 2, 3});
  planned.model.commit(sequence, 2, 2);
  EXPECT_TRUE(planned.model.ready(sequence));
  planned.model.preempted(sequence.id());
  EXPECT_FALSE(planned.model.ready(sequence)) << "its slot is gone";
}

TEST(DraftPlan, WhatFailedIsNotKnown) {
  Planned planned(kModel);
  Sequence& sequence = planned.begin(3);
  planned.plan(0);
  EXPECT_EQ(planned.model.drafted(planned.result), 0u);
  EXPECT_FALSE(planned.model.ready(sequence));
}

TEST(DraftPlan, HeadsLearnWhileTheyPayAndBeginAnew) {
  Planned planned(kHeads);
  Sequence& sequence = planned.begin(10);
  EXPECT_TRUE(planned.model.ready(sequence)) << "they have read what the model has read";
  const auto step = [&] {
    planned.model.computed();
    FakeSequences::say(sequence, {9});
    planned.model.commit(sequence, 0, 0);
  };
  const auto stop = [&] {
    while (planned.model.learns()) planned.model.computed();
  };
  planned.plan(1);
  EXPECT_TRUE(planned.drafting.reading.empty());
  step();
  EXPECT_TRUE(planned.model.ready(sequence));
  stop();
  step();
  EXPECT_FALSE(planned.model.ready(sequence)) << "there is a gap";
  planned.model.learn_enough();
  int steps = 0;
  for (; !planned.model.ready(sequence); ++steps) {
    ASSERT_LT(steps, 40);
    if (!planned.model.learns()) planned.model.learn_on();
    step();
  }
  EXPECT_EQ(steps, 17) << "the first token behind the gap, and sixteen more";
  EXPECT_DOUBLE_EQ(planned.model.seconds(1, 1, 1), 0.375) << "they always make all three";
}

TEST(DraftPlan, KnowsNothingOfASequenceThatWasShifted) {
  for (const SpeculationConfig& config : {kModel, kHeads}) {
    Planned planned(config);
    Sequence& sequence = planned.begin(10);
    planned.plan(0);
    planned.result.drafted = true;
    planned.model.drafted(planned.result);
    ASSERT_TRUE(planned.model.ready(sequence));
    planned.model.shifted(sequence.id());
    planned.collect();
    EXPECT_FALSE(planned.model.ready(sequence));
  }
}

}  // namespace
}  // namespace chasqui
