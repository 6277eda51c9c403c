// Pages of a list: every item is on one of them, whatever the pages' size.
#include "api/core/list_page.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct Item {
  std::string id;
  std::string text;
};

class ListPageTest : public testing::Test {
 protected:
  explicit ListPageTest(std::size_t bytes = 1) {
    for (int i = 0; i < 5; ++i) items_.push_back({"id" + std::to_string(i), std::string(bytes, 'x')});
  }
  std::string page(const PageWish& wish) const {
    std::vector<const Item*> listed;
    for (const Item& item : items_) listed.push_back(&item);
    const auto write = [](JsonWriter& json, const Item& item) { json.string(item.id + item.text); };
    const auto out = write_page(std::move(listed), wish, write);
    return out ? *out : out.error().message;
  }

  std::vector<Item> items_;
};

class LargeItemsTest : public ListPageTest {
 protected:
  LargeItemsTest() : ListPageTest(kPageBytes / 2) {}
};

TEST_F(ListPageTest, TurnsBothWays) {
  EXPECT_EQ(page({.limit = 2}),
            R"({"object":"list","data":["id4x","id3x"],"first_id":"id4","last_id":"id3","has_more":true})");
  EXPECT_EQ(page({.limit = 2, .newest_first = false, .after = "id2"}),
            R"({"object":"list","data":["id3x","id4x"],"first_id":"id3","last_id":"id4","has_more":false})");
  EXPECT_EQ(page({.limit = 2, .after = "id0"}),
            R"({"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false})");
  EXPECT_EQ(page({.limit = 2, .after = "id9"}), "after must be the id of one in this list");
}

TEST_F(LargeItemsTest, EndAPageBeforeItsLimit) {
  const std::string first = page({.limit = 5, .newest_first = false});
  EXPECT_LT(first.size(), 2 * kPageBytes);
  EXPECT_TRUE(first.ends_with(R"("last_id":"id1","has_more":true})")) << first.substr(first.size() - 80);
  const std::string next = page({.limit = 5, .newest_first = false, .after = "id3"});
  EXPECT_TRUE(next.ends_with(R"("last_id":"id4","has_more":false})")) << next.substr(next.size() - 80);
}

}  // namespace
}  // namespace chasqui
