#include "cache/slot_files.h"

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr LastingKey kAlice{5, 7};

class SlotFilesTest : public testing::Test {
 protected:
  std::unique_ptr<SlotFiles> open(std::uint64_t bytes = 1 << 20, const ModelIdentity& identity = fake_identity()) {
    auto opened = SlotFiles::open(folder_ / "slots", identity, bytes);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  static Result<std::uint64_t> save(SlotFiles& files, const std::string& name, TokenCount tokens = 10,
                                    LastingKey key = kAlice, bool alone = true) {
    return files.save(name, {key, alone}, test_prompt(tokens, 3), *fake_kv(tokens, 100, 3));
  }
  static ErrorCode refusal(const SlotFiles& files, const std::string& name, std::uint64_t tenant = 5) {
    const auto loaded = files.restore(name, tenant, {});
    EXPECT_FALSE(loaded.has_value());
    return loaded ? ErrorCode::internal : loaded.error().code;
  }
  std::string only_file() const {
    for (const std::string& name : folder_.names("slots")) {
      if (name != "lock") return "slots/" + name;
    }
    return {};
  }

  FakeFolder folder_;
};

TEST_F(SlotFilesTest, WhatWasSavedIsThereWhenItIsOpenedAgain) {
  const auto written = save(*open(), "mine.bin");
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(*written, snapshot_file_bytes(10, 100));
  const auto loaded = open()->restore("mine.bin", 5, {});
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->head.key, kAlice);
  EXPECT_EQ(loaded->head.tokens, test_prompt(10, 3));
  EXPECT_TRUE(same_bytes(*loaded->kv, *fake_kv(10, 100, 3)));
}

TEST_F(SlotFilesTest, TheSameNameOfAnotherTenantIsAnotherFile) {
  const auto files = open();
  ASSERT_TRUE(save(*files, "notes").has_value());
  EXPECT_EQ(refusal(*files, "notes", 6), ErrorCode::not_found);
  ASSERT_TRUE(save(*files, "notes", 20, {6, 0}).has_value());
  EXPECT_EQ(files->restore("notes", 5, {})->head.tokens.size(), 10u);
  EXPECT_EQ(files->restore("notes", 6, {})->head.tokens.size(), 20u);
}

TEST_F(SlotFilesTest, AFileThatWasRenamedToAnotherTenantIsNotTheirs) {
  const auto files = open();
  ASSERT_TRUE(save(*files, "notes").has_value());
  std::filesystem::rename(folder_ / only_file(), folder_ / "slots/0000000000000006-notes");
  EXPECT_EQ(refusal(*files, "notes", 6), ErrorCode::conflict);
}

TEST_F(SlotFilesTest, RefusesWhatIsDamagedOrOfAnotherModel) {
  ASSERT_TRUE(save(*open(), "notes").has_value());
  EXPECT_EQ(refusal(*open(1 << 20, fake_identity(2)), "notes"), ErrorCode::conflict);
  std::vector<std::byte> bytes = folder_.bytes(only_file());
  bytes.back() ^= std::byte{1};
  folder_.put(only_file(), bytes);
  EXPECT_EQ(refusal(*open(), "notes"), ErrorCode::invalid_request);
  EXPECT_EQ(refusal(*open(), "others"), ErrorCode::not_found);
}

TEST_F(SlotFilesTest, StaysUnderItsLimitAndLetsFilesBeOverwritten) {
  const std::uint64_t each = snapshot_file_bytes(10, 100);
  {
    const auto files = open(2 * each);
    ASSERT_TRUE(save(*files, "one").has_value());
    ASSERT_TRUE(save(*files, "two").has_value());
    const auto third = save(*files, "three");
    ASSERT_FALSE(third.has_value());
    EXPECT_EQ(third.error().code, ErrorCode::too_large);
    EXPECT_EQ(third.error().field, "filename");
    EXPECT_TRUE(save(*files, "two").has_value());
  }
  const auto smaller = open(each - 1);
  EXPECT_FALSE(save(*smaller, "one").has_value());
  EXPECT_TRUE(smaller->restore("one", 5, {}).has_value()) << "what could not be written has changed nothing";
}

TEST_F(SlotFilesTest, LeavesOtherTenantsTheirRoomAlsoWhenItIsOpenedAgain) {
  const std::uint64_t each = snapshot_file_bytes(10, 100);
  const LastingKey bob{6, 7};
  {
    const auto files = open(8 * each);
    ASSERT_TRUE(save(*files, "one", 10, kAlice, false).has_value());
    ASSERT_TRUE(save(*files, "two", 10, kAlice, false).has_value());
    const auto third = save(*files, "three", 10, kAlice, false);
    ASSERT_FALSE(third.has_value());
    EXPECT_EQ(third.error().code, ErrorCode::too_large);
    EXPECT_EQ(third.error().field, "filename");
    EXPECT_NE(third.error().message.find("may have " + std::to_string(2 * each)), std::string::npos);
    EXPECT_TRUE(save(*files, "two", 10, kAlice, false).has_value());
  }
  const auto files = open(8 * each);
  EXPECT_FALSE(save(*files, "three", 10, kAlice, false).has_value());
  EXPECT_TRUE(save(*files, "one", 10, bob, false).has_value());
  EXPECT_TRUE(save(*files, "two", 10, bob, false).has_value());
  EXPECT_FALSE(save(*files, "three", 10, bob, false).has_value());
}

TEST_F(SlotFilesTest, FilesOfATenantThatWasAloneMayBeOverwrittenByOnesAsLarge) {
  const std::uint64_t each = snapshot_file_bytes(10, 100);
  const auto files = open(4 * each);
  for (const char* const name : {"one", "two", "three"}) ASSERT_TRUE(save(*files, name).has_value());
  EXPECT_TRUE(save(*files, "one", 10, kAlice, false).has_value());
  EXPECT_FALSE(save(*files, "one", 11, kAlice, false).has_value());
  EXPECT_FALSE(save(*files, "four", 10, kAlice, false).has_value());
  EXPECT_TRUE(save(*files, "four").has_value()) << "it has all while there are no others";
}

TEST_F(SlotFilesTest, RemovesWhatAnEndInTheMiddleOfAWriteHasLeft) {
  open();
  folder_.put("slots/0000000000000005-x.part", fake_kv(1, 50)->bytes());
  open();
  EXPECT_EQ(folder_.names("slots"), std::vector<std::string>{"lock"});
}

TEST(SlotFileNames, AreNamesAndNothingElse) {
  for (const std::string_view good : {"a", "slot 0.bin", "my-session_3.kv", "résumé", "日本", "a.b.c"}) {
    EXPECT_TRUE(check_slot_file_name(good).has_value()) << good;
  }
  const std::string longest(128, 'x');
  EXPECT_TRUE(check_slot_file_name(longest).has_value());
  using namespace std::string_view_literals;
  for (const std::string_view bad :
       {""sv,     "."sv,    ".."sv,   "a/b"sv,        "../a"sv, "/etc/passwd"sv, "a\\b"sv,    "C:x"sv,
        "a\0b"sv, "a\nb"sv, "\x7f"sv, "a\xC2\x85z"sv, "\xff"sv, "a..b"sv,        ".hidden"sv, " a"sv,
        "a "sv,   "a."sv,   "a*"sv,   "a?"sv,         "a|b"sv,  "<a>"sv,         "\"a\""sv,   "x.part"sv}) {
    const auto checked = check_slot_file_name(bad);
    ASSERT_FALSE(checked.has_value()) << bad;
    EXPECT_EQ(checked.error().field, "filename");
    EXPECT_EQ(checked.error().code, ErrorCode::invalid_request);
  }
  EXPECT_FALSE(check_slot_file_name(longest + "x").has_value());
}

}  // namespace
}  // namespace chasqui
