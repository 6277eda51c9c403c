#include "engine/moved_answer.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

MovedAnswer moved_answer() {
  return {.stream = "talk-1",
          .body = R"({"stream":true})",
          .completion = "chatcmpl-1",
          .model = "m",
          .fingerprint = "chasqui",
          .created = 1'700'000'000,
          .seed = 7,
          .history = 40,
          .tokens = {5, 6, -2},
          .told = {.end = 900, .bytes = "data: x"}};
}

TEST(MovedAnswer, ComesBackAsItWas) {
  const MovedAnswer answer = moved_answer();
  const auto read = read_moved_answer(write_moved_answer(answer));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->stream, answer.stream);
  EXPECT_EQ(read->body, answer.body);
  EXPECT_EQ(read->completion, answer.completion);
  EXPECT_EQ(read->created, answer.created);
  EXPECT_EQ(read->seed, answer.seed);
  EXPECT_EQ(read->history, answer.history);
  EXPECT_EQ(read->tokens, answer.tokens);
  EXPECT_EQ(read->told.end, answer.told.end);
  EXPECT_EQ(read->told.bytes, answer.told.bytes);
}

TEST(MovedAnswer, RefusesWhatIsCutOrAnotherThing) {
  const std::vector<std::byte> bytes = write_moved_answer(moved_answer());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(read_moved_answer(std::span(bytes).first(size))) << size;
  }
  auto other = bytes;
  other[0] ^= std::byte{1};
  EXPECT_FALSE(read_moved_answer(other));
  other = bytes;
  other.push_back(std::byte{0});
  EXPECT_FALSE(read_moved_answer(other));
}

}  // namespace
}  // namespace chasqui
