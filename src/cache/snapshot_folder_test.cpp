#include "cache/snapshot_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/fake_folder.h"
#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr LastingKey kFolderKey{5, 0};

class SnapshotFolderTest : public testing::Test {
 protected:
  std::unique_ptr<SnapshotFolder> open(const ModelIdentity& identity = fake_identity()) {
    auto opened = SnapshotFolder::open(path(), identity);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  ErrorCode refusal() {
    auto opened = SnapshotFolder::open(path(), fake_identity());
    EXPECT_FALSE(opened.has_value());
    if (opened) return ErrorCode::internal;
    EXPECT_NE(opened.error().message.find(path()), std::string::npos) << opened.error().message;
    return opened.error().code;
  }
  static void write(SnapshotFolder& folder, std::uint64_t number, TokenCount tokens = 10) {
    EXPECT_TRUE(
        folder.write(number, kFolderKey, test_prompt(tokens, number), *fake_kv(tokens, 100, number)).has_value());
  }
  static std::vector<std::uint64_t> numbers(const std::vector<FoundSnapshot>& found) {
    std::vector<std::uint64_t> numbers;
    for (const FoundSnapshot& file : found) numbers.push_back(file.number);
    return numbers;
  }
  void age(const std::string& name, int seconds) {
    const auto file = folder_ / ("above/snapshots/" + name);
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - std::chrono::seconds(seconds));
  }
  std::string path() const { return folder_ / "above/snapshots"; }

  FakeFolder folder_;
};

TEST_F(SnapshotFolderTest, IsMadeForItsUserAlone) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(SnapshotFolderTest, HasWhatWasWrittenWhenItIsOpenedAgain) {
  write(*open(), 3, 12);
  const auto again = open();
  const std::vector<FoundSnapshot> found = again->scan({});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].number, 3u);
  EXPECT_TRUE(found[0].usable);
  EXPECT_EQ(found[0].key, kFolderKey);
  EXPECT_EQ(found[0].tokens, test_prompt(12, 3));
  EXPECT_EQ(found[0].bytes, snapshot_file_bytes(12, 100));
  const auto loaded = again->read(3, {});
  ASSERT_TRUE(loaded.has_value());
  EXPECT_TRUE(same_bytes(*loaded->kv, *fake_kv(12, 100, 3)));
}

TEST_F(SnapshotFolderTest, IsEmptyForTheModelThatItIsHandedToAndOfNoUseToTheOneBefore) {
  const auto before = open();
  write(*before, 3, 12);
  const auto after = before->hand_over(ModelIdentity{});
  EXPECT_TRUE(after->scan({}).empty());
  write(*after, 3, 10);
  EXPECT_FALSE(before->write(4, kFolderKey, test_prompt(10, 4), *fake_kv(10, 100, 4)));
  EXPECT_FALSE(before->read(3, {}));
  EXPECT_TRUE(before->remove(3));
  EXPECT_TRUE(before->sync());
  EXPECT_EQ(numbers(after->scan({})), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(refusal(), ErrorCode::conflict) << "the lock is handed on";
}

TEST_F(SnapshotFolderTest, IsOneProcessAtATimes) {
  const auto first = open();
  EXPECT_EQ(refusal(), ErrorCode::conflict);
}

TEST_F(SnapshotFolderTest, IsFreeAgainWhenItIsClosed) {
  open();
  EXPECT_NE(open(), nullptr);
}

TEST_F(SnapshotFolderTest, IsRefusedWhenOthersMayLookIntoIt) {
  open();
  std::filesystem::permissions(path(), std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  EXPECT_EQ(refusal(), ErrorCode::forbidden);
}

TEST_F(SnapshotFolderTest, IsRefusedWhenItIsNoFolder) {
  std::filesystem::create_directories(folder_ / "above/elsewhere");
  std::filesystem::create_symlink("elsewhere", path());
  EXPECT_EQ(refusal(), ErrorCode::unavailable) << "a link";
  std::filesystem::remove(path());
  folder_.put("above/snapshots", {});
  EXPECT_EQ(refusal(), ErrorCode::unavailable) << "a file";
}

TEST_F(SnapshotFolderTest, TellsTheOrderOfUse) {
  auto folder = open();
  for (const std::uint64_t number : {1, 2, 3, 4}) write(*folder, number);
  age("0000000000000001.kv", 10);
  age("0000000000000002.kv", 40);
  age("0000000000000003.kv", 30);
  age("0000000000000004.kv", 20);
  EXPECT_EQ(numbers(folder->scan({})), (std::vector<std::uint64_t>{2, 3, 4, 1}));
  folder->touch(2);
  EXPECT_EQ(numbers(folder->scan({})), (std::vector<std::uint64_t>{3, 4, 1, 2}));
  EXPECT_TRUE(folder->read(4, {}).has_value());
  EXPECT_EQ(numbers(folder->scan({})), (std::vector<std::uint64_t>{3, 1, 2, 4})) << "reading is use";
}

TEST_F(SnapshotFolderTest, ForgetsWhatIsRemoved) {
  auto folder = open();
  write(*folder, 1);
  EXPECT_TRUE(folder->remove(1));
  EXPECT_TRUE(folder->remove(2));  // which was never there
  EXPECT_TRUE(folder->scan({}).empty());
  EXPECT_FALSE(folder->read(1, {}).has_value());
}

TEST_F(SnapshotFolderTest, IsRidOfWhatIsDamagedOrHalfWritten) {
  auto folder = open();
  write(*folder, 1);
  write(*folder, 2);
  folder_.put("above/snapshots/0000000000000002.kv", fake_kv(1, 500)->bytes());
  folder_.put("above/snapshots/0000000000000003.kv.part", fake_kv(1, 500)->bytes());
  EXPECT_EQ(numbers(folder->scan({})), std::vector<std::uint64_t>{1});
  EXPECT_EQ(folder_.names("above/snapshots"), (std::vector<std::string>{"0000000000000001.kv", "lock"}));
}

TEST_F(SnapshotFolderTest, LeavesAloneWhatIsNotItsOwn) {
  auto folder = open();
  const std::vector<std::string> others = {
      "1.kv",       "000000000000000g.kv",  "0000000000000001.kv2", "00000000000000AB.kv",
      "notes.part", "0000000000000001.part"};
  for (const std::string& name : others) folder_.put("above/snapshots/" + name, fake_kv(1, 10)->bytes());
  EXPECT_TRUE(folder->scan({}).empty());
  EXPECT_EQ(folder_.names("above/snapshots").size(), others.size() + 1);
}

TEST_F(SnapshotFolderTest, CountsFilesOfOtherModelsAndDoesNotUseThem) {
  write(*open(fake_identity(2)), 1);
  write(*open(fake_identity(1, 2)), 2);
  auto folder = open();
  write(*folder, 3);
  const std::vector<FoundSnapshot> found = folder->scan({});
  ASSERT_EQ(numbers(found), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_FALSE(found[0].usable);
  EXPECT_FALSE(found[1].usable);
  EXPECT_TRUE(found[2].usable);
  EXPECT_EQ(found[0].bytes, found[2].bytes);
  EXPECT_TRUE(found[0].tokens.empty());
}

TEST_F(SnapshotFolderTest, DoesNotUseWhatWouldNotFit) {
  auto folder = open();
  write(*folder, 1, 50);
  EXPECT_TRUE(folder->scan({.kv_bytes = 100, .tokens = 50})[0].usable);
  EXPECT_FALSE(folder->scan({.kv_bytes = 100, .tokens = 49})[0].usable);
  EXPECT_FALSE(folder->scan({.kv_bytes = 99, .tokens = 50})[0].usable);
}

}  // namespace
}  // namespace chasqui
