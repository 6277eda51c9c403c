#include "cli/top_lists.h"

#include <regex>

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

SequenceSample sample_of(int sequences, int generated) {
  SequenceSample sample;
  for (int i = 0; i < sequences; ++i) {
    SequenceRow row;
    row.id = i + 1;
    row.tenant = i % 2 == 0 ? "alice" : "";
    row.service_class = "interactive";
    row.state = "writing";
    row.prompt = row.read = 12;
    row.generated = generated;
    row.most = 100;
    row.age_ms = 1500;
    sample.sequences.push_back(row);
  }
  sample.total = sequences;
  sample.tenants = {{"", sequences / 2, 0, 0}, {"alice", (sequences + 1) / 2, 3, 0}};
  return sample;
}

TEST(TopLists, SayWhatEachSequenceIsAndHowFast) {
  const auto lines = sequence_lines(sample_of(2, 40), sample_of(2, 30), 2, 10);
  ASSERT_EQ(lines.size(), 3U);
  for (const char* part : {"alice", "interactive", "writing", "12/12", "40/100", "5.0", "1.5 s"}) {
    EXPECT_NE(lines[1].find(part), std::string::npos) << part << " in " << lines[1];
  }
  EXPECT_NE(lines[2].find(" - "), std::string::npos) << "the anonymous tenant: " << lines[2];
}

TEST(TopLists, ShowTheRateWithinEightyColumns) {
  const auto lines = sequence_lines(sample_of(2, 40), sample_of(2, 30), 2, 10);
  for (const char* head : {"tokens/s", "answer", "age"})
    EXPECT_NE(lines[0].substr(0, 80).find(head), std::string::npos);
  EXPECT_NE(lines[1].substr(0, 80).find("5.0"), std::string::npos) << lines[1];
}

TEST(TopLists, SayWhatEachModelDoes) {
  SequenceSample before = sample_of(3, 30);
  SequenceSample now = sample_of(3, 40);
  for (SequenceSample* sample : {&before, &now}) {
    for (std::size_t i = 0; i < 3; ++i) {
      sample->sequences[i].id = 1;  // each model counts for itself
      sample->sequences[i].model = std::string(1, static_cast<char>('a' + i));
    }
    sample->sequences[1].generated += 20;
  }
  now.sequences[1].generated = 90;
  now.models = {{"a", 1, 0}, {"b", 1, 4}};
  const std::vector<ServedLine> models = {
      {"a", "loaded", 3'000'000'000, "never"}, {"b", "loading 40 %", 0, ""}, {"idle", "unloaded", 0, ""}};
  const auto lines = model_lines(models, now, before, 2, 10);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(std::regex_match(lines[1], std::regex(R"(  a +loaded +1 +0 +5\.0 +\S+ \S+)"))) << lines[1];
  EXPECT_TRUE(std::regex_match(lines[2], std::regex(R"(  b +loading 40 % +1 +4 +20\.0 +)"))) << lines[2];
  EXPECT_TRUE(std::regex_match(lines[3], std::regex(R"(  idle +unloaded +0 +0 +0\.0 +)"))) << lines[3];
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
  const auto sequences = sequence_lines(now, before, 2, 10);
  EXPECT_TRUE(sequences[0].ends_with("  model")) << sequences[0];
  EXPECT_TRUE(sequences[2].ends_with("  b")) << sequences[2];
}

TEST(TopLists, PutTheTenantWithMostFirst) {
  const auto lines = tenant_lines(sample_of(4, 40), sample_of(4, 30), 1, 10);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[1].starts_with("  alice")) << lines[1];
  EXPECT_NE(lines[1].find("20.0"), std::string::npos) << lines[1];
}

TEST(TopLists, CountWhatDoesNotFit) {
  SequenceSample many = sample_of(6, 1);
  EXPECT_EQ(sequence_lines(many, {}, 1, 6).size(), 7U);
  auto lines = sequence_lines(many, {}, 1, 3);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines.back(), "  … and 4 more");
  many.total = 500;  // the server lists some of them only
  lines = sequence_lines(many, {}, 1, 10);
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines.back(), "  … and 494 more");
}

TEST(TopLists, ShowNoControlCharacters) {
  SequenceSample bad = sample_of(1, 1);
  bad.sequences[0].tenant = bad.sequences[0].state = "a\x1b[2J";
  for (const std::string& line : sequence_lines(bad, {}, 1, 5)) EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace chasqui::cli
