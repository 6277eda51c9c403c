// Encoded pictures on disk: found again by the same tenant alone, never damaged, bounded, and gone when they are
// erased.
#include "engine/encoding_folder.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"
#include "cache/snapshot_file.h"

namespace chasqui {
namespace {

constexpr std::uint64_t kAnn = 5;
constexpr std::uint64_t kBob = 6;
constexpr std::size_t kWidth = 4;
constexpr TokenCount kPlaces = 3;

MediaUnit unit_of(std::uint64_t content, TokenCount positions = kPlaces) {
  MediaUnit unit;
  std::memcpy(unit.identity.data(), &content, sizeof content);
  unit.positions = positions;
  return unit;
}

std::vector<float> rows_of(std::uint64_t content) {
  std::vector<float> rows(kWidth * static_cast<std::size_t>(kPlaces));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(content) + static_cast<float>(i) / 8;
  return rows;
}

const std::uint64_t kFileBytes = snapshot_file_bytes(kPlaces, rows_of(1).size() * sizeof(float));

class EncodingFolderTest : public testing::Test {
 protected:
  std::shared_ptr<EncodingFolder> open(std::uint64_t bytes_max = 1 << 20) {
    auto opened = EncodingFolder::open(path(), bytes_max);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened ? *opened : nullptr;
  }
  static void write(EncodingFolder& folder, std::uint64_t tenant, std::uint64_t content) {
    folder.write(tenant, unit_of(content), rows_of(content));
  }
  static bool has(EncodingFolder& folder, std::uint64_t tenant, std::uint64_t content) {
    const std::vector<float> rows = folder.read(tenant, unit_of(content));
    EXPECT_TRUE(rows.empty() || rows == rows_of(content));
    return !rows.empty();
  }
  std::vector<std::string> files() const {
    auto names = folder_.names("encodings");
    std::erase(names, "lock");
    return names;
  }
  // The file of this picture was used so many seconds earlier.
  void age(std::uint64_t content, int seconds) const {
    for (const std::string& name : files()) {
      if (name.find("-0" + std::to_string(content)) == std::string::npos) continue;
      const auto file = folder_ / ("encodings/" + name);
      std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - std::chrono::seconds(seconds));
    }
  }
  std::string path() const { return folder_ / "encodings"; }

  FakeFolder folder_;
};

TEST_F(EncodingFolderTest, HasWhatWasWrittenAlsoWhenItIsOpenedAgain) {
  auto folder = open();
  write(*folder, kAnn, 1);
  EXPECT_TRUE(has(*folder, kAnn, 1));
  EXPECT_FALSE(has(*folder, kAnn, 2));
  EXPECT_FALSE(has(*folder, kBob, 1)) << "what one tenant has sent is that one's alone";
  folder.reset();
  folder = open();
  EXPECT_TRUE(has(*folder, kAnn, 1));
  EXPECT_EQ(folder->bytes(), kFileBytes);
}

TEST_F(EncodingFolderTest, IsOneProcessAtATimes) {
  const auto folder = open();
  const auto second = EncodingFolder::open(path(), 1);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST_F(EncodingFolderTest, NoByteOfAFileCanBeChangedUnnoticed) {
  const auto folder = open();
  write(*folder, kAnn, 1);
  const std::string name = "encodings/" + files().at(0);
  const std::vector<std::byte> good = folder_.bytes(name);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{1};
    folder_.put(name, bad);
    EXPECT_TRUE(folder->read(kAnn, unit_of(1)).empty()) << at;
    EXPECT_TRUE(files().empty()) << "it is removed";
    write(*folder, kAnn, 1);
  }
  folder_.put(name, std::span(good).first(good.size() - 1));
  EXPECT_TRUE(folder->read(kAnn, unit_of(1)).empty());
  EXPECT_EQ(folder->bytes(), 0u);
}

TEST_F(EncodingFolderTest, AFileUnderTheNameOfAnotherIsNotTakenForIt) {
  const auto folder = open();
  write(*folder, kAnn, 1);
  const std::vector<std::byte> one = folder_.bytes("encodings/" + files().at(0));
  write(*folder, kAnn, 2);
  for (const std::string& name : files()) folder_.put("encodings/" + name, one);
  EXPECT_TRUE(has(*folder, kAnn, 1));
  EXPECT_FALSE(has(*folder, kAnn, 2));
}

TEST_F(EncodingFolderTest, AFileOfOneTenantIsNotTakenForThatOfAnother) {
  const auto folder = open();
  write(*folder, kAnn, 1);
  const std::vector<std::byte> anns = folder_.bytes("encodings/" + files().at(0));
  write(*folder, kBob, 1);
  folder_.put("encodings/" + files().at(1), anns);
  EXPECT_FALSE(has(*folder, kBob, 1));
}

TEST_F(EncodingFolderTest, AFileThatTheSystemRefusesStays) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const auto folder = open();
  write(*folder, kAnn, 1);
  const auto file = folder_ / ("encodings/" + files().at(0));
  std::filesystem::permissions(file, std::filesystem::perms::none);
  EXPECT_FALSE(has(*folder, kAnn, 1));
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  EXPECT_TRUE(has(*folder, kAnn, 1));
}

TEST_F(EncodingFolderTest, WhatWasUsedLeastRecentlyMakesRoom) {
  auto folder = open(2 * kFileBytes);
  write(*folder, kAnn, 1);
  write(*folder, kAnn, 2);
  EXPECT_TRUE(has(*folder, kAnn, 1));
  write(*folder, kBob, 3);
  EXPECT_FALSE(has(*folder, kAnn, 2));
  EXPECT_TRUE(has(*folder, kAnn, 1));
  EXPECT_TRUE(has(*folder, kBob, 3));
  EXPECT_EQ(folder->bytes(), 2 * kFileBytes);
  folder.reset();
  age(1, 10);
  folder = open(kFileBytes);
  EXPECT_EQ(folder->bytes(), kFileBytes) << "also where the limit has become smaller";
  EXPECT_FALSE(has(*folder, kAnn, 1));
  EXPECT_TRUE(has(*folder, kBob, 3));
}

TEST_F(EncodingFolderTest, WhatIsLargerThanAllRoomIsNotKept) {
  const auto folder = open(kFileBytes - 1);
  write(*folder, kAnn, 1);
  EXPECT_TRUE(files().empty());
}

TEST_F(EncodingFolderTest, ForgetsATenantAlsoOfEarlierRuns) {
  auto folder = open();
  write(*folder, kAnn, 1);
  folder.reset();
  folder = open();
  write(*folder, kAnn, 2);
  write(*folder, kBob, 1);
  const auto forgotten = folder->forget(kAnn);
  ASSERT_TRUE(forgotten.has_value());
  EXPECT_EQ(*forgotten, 2u);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_FALSE(has(*folder, kAnn, 1));
  EXPECT_TRUE(has(*folder, kBob, 1));
}

TEST_F(EncodingFolderTest, WhatCannotBeRemovedIsSaidAndTriedAgain) {
  const auto folder = open();
  write(*folder, kAnn, 1);
  const std::filesystem::path file = folder_ / ("encodings/" + files().at(0));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // nothing that unlink() removes
  const auto forgotten = folder->forget(kAnn);
  ASSERT_FALSE(forgotten.has_value());
  EXPECT_EQ(forgotten.error().code, ErrorCode::unavailable);
  std::filesystem::remove(file);
  EXPECT_TRUE(folder->forget(kAnn).has_value());
}

TEST_F(EncodingFolderTest, LeavesFilesOfOtherNamesAlone) {
  open();
  const std::string name = "encodings/" + std::string(16, '0') + "-" + std::string(32, 'g') + ".rows";
  folder_.put(name, std::vector<std::byte>(8));
  folder_.put("encodings/notes", std::vector<std::byte>(8));
  const auto folder = open();
  EXPECT_EQ(folder->bytes(), 0u);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(EncodingFolderTest, WhatAnEndInAWriteHasLeftIsRemoved) {
  auto folder = open();
  write(*folder, kAnn, 1);
  const std::string name = "encodings/" + files().at(0);
  folder.reset();
  folder_.put(name + ".part", std::vector<std::byte>(8));
  folder = open();
  EXPECT_EQ(files().size(), 1u);
  EXPECT_TRUE(has(*folder, kAnn, 1));
}

}  // namespace
}  // namespace chasqui
