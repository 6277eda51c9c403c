#include "api/core/embedding_line.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

EmbeddingWait of(std::uint32_t tenant, std::vector<std::size_t> sizes, AdapterSetPtr adapters = nullptr) {
  EmbeddingWait wait;
  wait.tenant = tenant;
  wait.adapters = std::move(adapters);
  for (const std::size_t size : sizes) wait.inputs.emplace_back(size, Token{1});
  return wait;
}

std::vector<Embedded> vectors(const EmbeddingLine::Job& job) {
  std::vector<Embedded> out;
  for (const auto& input : job.inputs) out.push_back({{static_cast<float>(input.size())}, 1});
  return out;
}

TEST(EmbeddingLine, RequestsThatWaitTogetherShareAJob) {
  EmbeddingLine line;
  EmbeddingWait one = of(1, {100}), two = of(1, {200, 10}), three = of(2, {50});
  for (EmbeddingWait* const wait : {&one, &two, &three}) line.add(*wait);
  const EmbeddingLine::Job job = line.next();
  EXPECT_EQ(job.inputs.size(), 4u);
  line.give(job, vectors(job));
  for (const EmbeddingWait* const wait : {&one, &two, &three}) EXPECT_TRUE(wait->over());
  ASSERT_EQ(two.out.size(), 2u);
  EXPECT_EQ(two.out[0].values.front(), 200) << "in the order of the inputs";
  EXPECT_EQ(two.out[1].values.front(), 10);
  EXPECT_EQ(line.front(), nullptr);
  EXPECT_TRUE(line.next().inputs.empty());
}

TEST(EmbeddingLine, AJobHasABoundButForOneLongInput) {
  EmbeddingLine line;
  EmbeddingWait one = of(1, {2000, 300, 300, 200});
  line.add(one);
  EXPECT_EQ(line.next().inputs.front().size(), 2000u);
  EXPECT_EQ(line.next().inputs.size(), 1u);
  EXPECT_EQ(line.next().inputs.size(), 2u);
  EXPECT_FALSE(one.over()) << "it was taken, not computed";
}

TEST(EmbeddingLine, AShortRequestDoesNotWaitForALongOne) {
  EmbeddingLine line;
  EmbeddingWait book = of(1, std::vector<std::size_t>(100, 100)), word = of(1, {5});
  line.add(book);
  line.add(word);
  const EmbeddingLine::Job job = line.next();
  line.give(job, vectors(job));
  EXPECT_TRUE(word.over());
  EXPECT_FALSE(book.over());
}

TEST(EmbeddingLine, ProcessorTimeIsSharedByTokens) {
  EmbeddingLine line;
  EmbeddingWait one = of(1, {100, 200, 400}), two = of(2, {100});
  line.add(one);
  line.add(two);
  EmbeddingLine::Job job = line.next();
  ASSERT_EQ(job.inputs.size(), 3u);
  job.inputs.clear();  // they go to the thread that computes
  line.give(job, std::vector<Embedded>(3), {milliseconds(40), 8.0});
  EXPECT_EQ(two.cpu, milliseconds(10));
  EXPECT_EQ(one.cpu, milliseconds(30));
  EXPECT_DOUBLE_EQ(two.joules.value_or(0), 2);
  EXPECT_DOUBLE_EQ(one.joules.value_or(0), 6);
  job = line.next();
  line.give(job, vectors(job), {milliseconds(7), {}});
  EXPECT_EQ(one.cpu, milliseconds(37));
  EXPECT_EQ(one.jobs, 2);
  EXPECT_EQ(one.shared, 1);
  EXPECT_EQ(two.jobs, 1);
  EXPECT_EQ(two.shared, 1);
}

TEST(EmbeddingLine, TenantsHaveEqualParts) {
  EmbeddingLine line;
  std::vector<EmbeddingWait> crowd(9, of(1, std::vector<std::size_t>(100, 50)));
  for (EmbeddingWait& wait : crowd) line.add(wait);
  line.next();
  EmbeddingWait single = of(2, std::vector<std::size_t>(100, 50));
  line.add(single);
  std::size_t mine = 0, all = 0;
  for (int i = 0; i < 20; ++i) {
    const EmbeddingLine::Job job = line.next();
    for (const EmbeddingWait* const wait : job.of) mine += wait == &single ? 1 : 0;
    all += job.of.size();
  }
  EXPECT_EQ(mine, all / 2);
}

TEST(EmbeddingLine, AdaptersDoNotMix) {
  constexpr std::uint64_t kContents[] = {11};
  constexpr float kScales[] = {1};
  const AdapterSetPtr adapters = make_adapter_set(kScales, kContents);
  EmbeddingLine line;
  EmbeddingWait plain = of(1, {10}), adapted = of(1, {10}, adapters), again = of(1, {10}, adapters);
  for (EmbeddingWait* const wait : {&plain, &adapted, &again}) line.add(*wait);
  EXPECT_EQ(line.next().inputs.size(), 1u);
  const EmbeddingLine::Job job = line.next();
  EXPECT_EQ(job.inputs.size(), 2u);
  EXPECT_EQ(job.adapters, adapters);
}

TEST(EmbeddingLine, WhoHasLeftIsNotComputed) {
  EmbeddingLine line;
  EmbeddingWait left = of(1, {10, 10}), stays = of(1, {10});
  left.gone = [] { return true; };
  line.add(left);
  line.add(stays);
  const EmbeddingLine::Job job = line.next();
  EXPECT_EQ(job.left, std::vector<EmbeddingWait*>{&left});
  EXPECT_EQ(job.of, std::vector<EmbeddingWait*>{&stays});
  EXPECT_TRUE(left.over());
}

TEST(EmbeddingLine, AnErrorEndsTheRequestsOfTheJob) {
  EmbeddingLine line;
  EmbeddingWait one = of(1, {500, 500}), two = of(1, {10});
  line.add(one);
  line.add(two);
  const EmbeddingLine::Job job = line.next();
  line.give(job, Error{ErrorCode::model_failure, "it failed", ""});
  EXPECT_TRUE(one.over() && two.over());
  EXPECT_EQ(line.front(), nullptr) << "nor is the rest of them computed";
}

}  // namespace
}  // namespace chasqui
