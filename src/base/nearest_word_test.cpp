#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(NearestWord, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("serve", "serve"), 0U);
  EXPECT_EQ(edit_distance("serv", "serve"), 1U);
  EXPECT_EQ(edit_distance("sevre", "serve"), 1U) << "two neighbours changed places";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestWord, TakeTheNearestWordThatIsNearEnough) {
  const std::vector<std::string> words{"serve", "chat", "bench", "top"};
  EXPECT_EQ(nearest_word("serv", words), "serve");
  EXPECT_EQ(nearest_word("cht", words), "chat");
  EXPECT_EQ(nearest_word("tpo", words), "top");
  EXPECT_EQ(nearest_word("list", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word("serve", {}), "");
}

}  // namespace
}  // namespace chasqui
