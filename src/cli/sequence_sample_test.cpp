#include "cli/sequence_sample.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

constexpr const char* kText = R"({"total":3,"sequences":[
  {"id":7,"model":"m","tenant":"alice","class":"interactive","state":"writing","slot":0,"prompt_tokens":12,
   "read_tokens":12,"cached_tokens":8,"generated_tokens":30,"max_tokens":100,"age_ms":512.5},
  {"id":9,"model":"m","tenant":"","class":"background","state":"waiting","prompt_tokens":500,"read_tokens":0,
   "cached_tokens":0,
   "generated_tokens":0,"max_tokens":10,"age_ms":3}],
  "tenants":[{"tenant":"alice","running":1,"waiting":0,"generated_tokens":30}],
  "models":[{"model":"m","running":1,"waiting":1,"generated_tokens":30}]})";

TEST(SequenceSample, IsReadWhole) {
  const auto sample = SequenceSample::parse(kText);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->total, 3);
  ASSERT_EQ(sample->sequences.size(), 2U);
  EXPECT_EQ(sample->sequences[0].tenant, "alice");
  EXPECT_EQ(sample->sequences[0].service_class, "interactive");
  EXPECT_EQ(sample->sequences[0].generated, 30);
  EXPECT_EQ(sample->sequences[0].age_ms, 512.5);
  EXPECT_EQ(sample->sequences[1].state, "waiting");
  ASSERT_EQ(sample->tenants.size(), 1U);
  EXPECT_EQ(sample->tenants[0].running, 1);
  ASSERT_EQ(sample->models.size(), 1U);
  EXPECT_EQ(sample->models[0].model, "m");
  EXPECT_EQ(sample->models[0].waiting, 1);
}

TEST(SequenceSample, IsNothingWhereTheTextIsSomethingElse) {
  for (const char* text : {"", "[]", "{}", R"({"sequences":[1],"tenants":[]})", R"({"error":{"message":"no"}})"}) {
    EXPECT_FALSE(SequenceSample::parse(text)) << text;
  }
}

TEST(SequenceSample, TellsWhatGrewSinceAnotherOne) {
  const auto before = SequenceSample::parse(kText);
  auto now = SequenceSample::parse(kText);
  now->sequences[0].generated = 50;
  now->sequences[1].tenant = "alice";
  now->sequences[1].id = 10;  // a new sequence
  now->sequences[1].generated = 4;
  EXPECT_EQ(now->grown(*before, now->sequences[0]), 20);
  EXPECT_EQ(now->grown(*before, now->sequences[1]), 4);
  EXPECT_EQ(now->grown(*before, now->tenants[0]), 24);
  EXPECT_EQ(now->grown(*before, now->models[0]), 24);
  now->sequences[0].model = "other";  // with a sequence of the same number
  EXPECT_EQ(now->grown(*before, now->sequences[0]), 50);
}

}  // namespace
}  // namespace chasqui::cli
