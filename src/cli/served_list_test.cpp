#include "cli/served_list.h"

#include <gtest/gtest.h>

#include "cli/text_table.h"

namespace chasqui::cli {
namespace {

const std::string kBody = R"({"object":"list","data":[
  {"id":"qwen","status":{"value":"loaded","stays":true},"meta":{"size":1000}},
  {"id":"bge","status":{"value":"loaded","unloads_in_s":241.2},"memory_bytes":5000,"meta":{"size":1000}},
  {"id":"phi","status":{"value":"loaded"},"memory_bytes":7000},
  {"id":"yi","status":{"value":"loading","progress":0.404},"memory_bytes":1},
  {"id":"old","status":{"value":"draining"},"memory_bytes":1},
  {"id":"rest","status":{"value":"unloaded"}},
  {"id":"bad","status":{"value":"unloaded","failed":true,"reason":"cut"}},
  {"id":"qwen:tone","parent":"qwen"}]})";

TEST(ServedList, TellsWhatIsLoadedAndWhenItLeaves) {
  const auto lines = served_lines(kBody, false);
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 5u);
  EXPECT_EQ((*lines)[0].name, "qwen");
  EXPECT_EQ((*lines)[0].leaves, "never");
  EXPECT_EQ((*lines)[0].bytes, 1000u);
  EXPECT_EQ((*lines)[1].leaves, "in 5 min");
  EXPECT_EQ((*lines)[1].bytes, 5000u) << "what it needs rather than its file";
  EXPECT_EQ((*lines)[2].leaves, "for others");
  EXPECT_EQ((*lines)[3].state, "loading 40 %");
  EXPECT_EQ((*lines)[4].leaves, "when its requests end");
}

TEST(ServedList, AllAreThoseThatAreNotLoadedToo) {
  const auto lines = served_lines(kBody, true);
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 7u);
  EXPECT_EQ((*lines)[5].state, "unloaded");
  EXPECT_EQ((*lines)[6].state, "failed: cut");
}

TEST(ServedList, RefusesWhatIsNoList) {
  for (const char* body : {"", "[]", "{}", R"({"data":1})"}) EXPECT_FALSE(served_lines(body, false)) << body;
  EXPECT_TRUE(served_lines(R"({"data":[1,{"id":2},{"id":"x","status":3}]})", true)->empty());
}

TEST(TextTable, CellsBeginBelowEachOther) {
  EXPECT_EQ(text_table({{"A", "B", "C"}, {"long", "", "x"}}), "A     B  C\nlong     x\n");
  EXPECT_EQ(text_table({}), "");
}

}  // namespace
}  // namespace chasqui::cli
