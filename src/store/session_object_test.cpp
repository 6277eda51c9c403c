#include "store/session_object.h"

#include <gtest/gtest.h>

namespace chasqui::store {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

TEST(SessionObject, NamesSortAsTheyWereWritten) {
  const std::string folder = session_folder("", "sess_1");
  EXPECT_EQ(folder, "sessions/sess_1");
  EXPECT_EQ(session_folder("model-1", "sess_1"), "model-1/sessions/sess_1");
  const std::vector<ObjectNumber> numbers{{1, 0, 0}, {1, 0, 7},  {1, 9, 3},  {1, 10, 2},
                                          {2, 0, 1}, {15, 3, 1}, {16, 0, 0}, {1ULL << 40, 1, 1}};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string name = object_name(folder, numbers[i]);
    ASSERT_EQ(number_of(name), numbers[i]);
    if (i == 0) continue;
    EXPECT_LT(object_name(folder, numbers[i - 1]), name);
  }
}

TEST(SessionObject, OtherNamesAreNone) {
  for (const char* name :
       {"", "sessions/sess_1", "sessions/sess_1/", "0000000000000001-00000000", "lock",
        "sessions/sess_1/0000000000000001-00000000-00000000x", "sessions/sess_1/000000000000000g-00000000-00000000",
        "sessions/sess_1/0000000000000001_00000000-00000000", "sessions/sess_1/0000000000000000-00000000-00000000"}) {
    EXPECT_FALSE(number_of(name)) << name;
  }
}

TEST(SessionObject, ComesBackAsItWas) {
  const auto payload = bytes_of("what a turn has added");
  const auto turn = write_object({{7, 4, 9}, payload});
  const auto read = read_object(turn);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->is_whole());
  EXPECT_EQ(read->follows, (ObjectNumber{7, 4, 9}));
  EXPECT_TRUE(std::ranges::equal(read->bytes, payload));

  const auto whole = write_object({{}, payload});
  ASSERT_TRUE(read_object(whole));
  EXPECT_TRUE(read_object(whole)->is_whole());
}

TEST(SessionObject, RefusesWhatIsNone) {
  const auto good = write_object({{7, 4, 9}, bytes_of("x")});
  for (std::size_t size = 0; size < 32; ++size) EXPECT_FALSE(read_object(std::span(good).first(size)));
  for (const std::size_t at : {0U, 8U, 12U}) {
    auto changed = good;
    changed[at] ^= std::byte{0x40};
    EXPECT_FALSE(read_object(changed)) << at;
  }
}

}  // namespace
}  // namespace chasqui::store
