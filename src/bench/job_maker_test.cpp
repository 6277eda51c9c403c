#include "bench/job_maker.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

LoadSpec spec(std::string_view text) { return *parse_load(text, 1); }

auto words_of(const std::string& text) { return 1 + std::count(text.begin(), text.end(), ' '); }

TEST(JobMaker, MakesDistinctPromptsThatTheSeedRepeats) {
  JobMaker a(spec("prompt-words=5-9"), 1), b(spec("prompt-words=5-9"), 1), c(spec("prompt-words=5-9"), 2);
  std::set<std::string> prompts;
  for (int i = 0; i < 500; ++i) {
    const Job job = a.next();
    EXPECT_EQ(job.prompt, b.next().prompt);
    EXPECT_NE(job.prompt, c.next().prompt);
    EXPECT_GE(words_of(job.prompt), 5);
    EXPECT_LE(words_of(job.prompt), 9);
    prompts.insert(job.prompt);
  }
  EXPECT_EQ(prompts.size(), 500U);
}

TEST(JobMaker, SharesAPrefix) {
  JobMaker jobs(spec("prompt-words=30,shared-prefix-words=20"), 1);
  const std::string a = jobs.next().prompt, b = jobs.next().prompt;
  EXPECT_EQ(words_of(a), 30);
  EXPECT_NE(a, b);
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  EXPECT_GE(std::count(a.begin(), end, ' '), 20);
}

TEST(JobMaker, DealsLengthsInExactShares) {
  JobMaker jobs(spec("max-tokens=12*6/40*2/96"), 3);
  std::map<std::int32_t, int> counts;
  std::vector<std::int32_t> order;
  for (int i = 0; i < 18; ++i) {
    order.push_back(jobs.next().max_tokens);
    ++counts[order.back()];
  }
  EXPECT_EQ(counts, (std::map<std::int32_t, int>{{12, 12}, {40, 4}, {96, 2}}));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(JobMaker, LetsSomeClientsLeave) {
  JobMaker always(spec("abandon=1,max-tokens=8"), 1), never(spec("max-tokens=8"), 1), some(spec("abandon=0.3"), 1);
  int left = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto after = always.next().abandon_after;
    ASSERT_TRUE(after.has_value());
    EXPECT_GE(*after, 0);
    EXPECT_LT(*after, 8);
    EXPECT_FALSE(never.next().abandon_after.has_value());
    left += some.next().abandon_after ? 1 : 0;
  }
  EXPECT_NEAR(left, 300, 60);
}

TEST(JobMaker, FollowsATrace) {
  JobMaker jobs(spec(""), 1);
  const Job words = jobs.from_trace({0, "", 17, 5, "background", "k"});
  EXPECT_EQ(words_of(words.prompt), 17);
  EXPECT_EQ(words.max_tokens, 5);
  EXPECT_EQ(words.priority, "background");
  EXPECT_EQ(words.key, "k");
  EXPECT_EQ(jobs.from_trace({0, "as it was", 0, 5, "", ""}).prompt, "as it was");
}

}  // namespace
}  // namespace chasqui::bench
