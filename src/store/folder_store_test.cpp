#include "store/folder_store.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/fake_folder.h"
#include "store/fake_exchanges.h"

namespace chasqui::store {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kAnySize = 1 << 20;

class FolderStoreTest : public testing::Test {
 protected:
  std::unique_ptr<FolderStore> open() {
    auto opened = FolderStore::open(folder_ / "store");
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  void put(FolderStore& store, const std::string& name, std::string_view text) {
    const StoredObject object{name, fake_bytes(text)};
    const auto outcomes = store.put({&object, 1});
    EXPECT_FALSE(outcomes.front()) << outcomes.front()->message;
  }
  static std::string text_of(FolderStore& store, const std::string& name) {
    const auto got = store.get({&name, 1}, kAnySize);
    if (!got.front()) return "error " + std::string(chasqui::name(got.front().error().code));
    return {reinterpret_cast<const char*>(got.front()->data()), got.front()->size()};
  }
  unsigned mode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &status), 0) << name;
    return status.st_mode & 0777;
  }

  FakeFolder folder_;
};

TEST_F(FolderStoreTest, KeepsObjectsInFoldersForTheServersUserAlone) {
  const auto store = open();
  put(*store, "sessions/a/1", "one");
  put(*store, "sessions/a/2", "");
  put(*store, "sessions/b/1", "three");
  put(*store, "sessions/a/1", "one");  // again, the same
  EXPECT_EQ(text_of(*open(), "sessions/a/1"), "one");
  EXPECT_EQ(text_of(*store, "sessions/a/2"), "");
  EXPECT_EQ(mode("store"), 0700u);
  EXPECT_EQ(mode("store/sessions/a"), 0700u);
  EXPECT_EQ(mode("store/sessions/a/1"), 0600u);
  EXPECT_EQ(*store->list("sessions", 10), (std::vector<std::string>{"sessions/a", "sessions/b"}));
  EXPECT_EQ(*store->list("sessions/a", 2), (std::vector<std::string>{"sessions/a/1", "sessions/a/2"}));
  EXPECT_EQ(*store->list("", 10), std::vector<std::string>{"sessions"});  // not where parts are written
  EXPECT_EQ(*store->list("sessions/c", 10), std::vector<std::string>{});
  EXPECT_EQ(store->list("sessions/a", 1).error().code, ErrorCode::unavailable);
}

TEST_F(FolderStoreTest, SaysWhatIsNotThereOrTooLarge) {
  const auto store = open();
  put(*store, "a/b", "four");
  EXPECT_EQ(text_of(*store, "a/c"), "error not_found");
  EXPECT_EQ(text_of(*store, "c/c"), "error not_found");
  EXPECT_EQ(text_of(*store, "a"), "error unavailable");  // a folder
  const std::string name = "a/b";
  const auto got = store->get({&name, 1}, 3);
  EXPECT_EQ(got.front().error().code, ErrorCode::unavailable);
  EXPECT_NE(got.front().error().message.find(folder_ / "store"), std::string::npos);
  for (const std::string bad : {"", "..", "a/../b", "/a", "a//b", ".parts", "a/", "a.b"}) {
    EXPECT_EQ(text_of(*store, bad), "error invalid_request") << bad;
    const StoredObject object{bad, {}};
    EXPECT_EQ(store->put({&object, 1}).front()->code, ErrorCode::invalid_request) << bad;
    EXPECT_EQ(store->remove({&bad, 1}).front()->code, ErrorCode::invalid_request) << bad;
  }
}

TEST_F(FolderStoreTest, RemovesObjectsAndTheFoldersThatAreEmptyThen) {
  const auto store = open();
  put(*store, "sessions/a/1", "one");
  put(*store, "sessions/a/2", "two");
  put(*store, "sessions/b", "three");
  const std::vector<std::string> first{"sessions/a/1", "sessions/none", "none/none"};
  for (const auto& outcome : store->remove(first)) EXPECT_FALSE(outcome);
  EXPECT_EQ(text_of(*store, "sessions/a/2"), "two");
  const std::string second = "sessions/a/2";
  EXPECT_FALSE(store->remove({&second, 1}).front());
  EXPECT_EQ(folder_.names("store/sessions"), std::vector<std::string>{"b"});
  const std::string third = "sessions/b";
  EXPECT_FALSE(store->remove({&third, 1}).front());
  EXPECT_EQ(folder_.names("store"), std::vector<std::string>{".parts"});
}

TEST_F(FolderStoreTest, FollowsNoLinks) {
  const auto store = open();
  put(*store, "a/b", "one");
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "store/link");
  fs::create_symlink(folder_ / "store/a/b", folder_ / "store/a/c");
  EXPECT_EQ(text_of(*store, "a/c"), "error unavailable");
  EXPECT_EQ(text_of(*store, "link/b"), "error unavailable");
  const StoredObject object{"link/b", fake_bytes("two")};
  EXPECT_EQ(store->put({&object, 1}).front()->code, ErrorCode::unavailable);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  EXPECT_EQ(folder_.names("store/.parts"), std::vector<std::string>{});
}

TEST_F(FolderStoreTest, RemovesPartsOfProcessesThatDiedLongAgoAndNoOthers) {
  open();
  for (const char* name : {"old", "young"}) std::ofstream(folder_ / "store/.parts" / name) << "part";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder_ / "store/.parts/old", now - std::chrono::hours(25));
  fs::last_write_time(folder_ / "store/.parts/young", now - std::chrono::hours(23));
  open();
  EXPECT_EQ(folder_.names("store/.parts"), std::vector<std::string>{"young"});
}

TEST_F(FolderStoreTest, IsRefusedWhereOthersWriteOrNoFolderCanBe) {
  fs::create_directory(folder_ / "open");
  fs::permissions(folder_ / "open", fs::perms::all);
  std::ofstream(folder_ / "file") << "text";
  for (const char* name : {"open", "file", "file/below"}) {
    const auto opened = FolderStore::open(folder_ / name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_request);
    EXPECT_NE(opened.error().message.find(folder_ / name), std::string::npos);
  }
}

// Each as in a process of its own: they share nothing but the folder. One makes and removes the folder that the other
// puts something into.
TEST_F(FolderStoreTest, LosesNothingWhereSeveralWriteAndRemove) {
  constexpr int kRounds = 200;
  const auto work = [this](const std::string& own) {
    const auto store = open();
    const std::string name = "sessions/shared/" + own;
    for (int i = 0; i < kRounds; ++i) {
      put(*store, name, own + std::to_string(i));
      ASSERT_EQ(text_of(*store, name), own + std::to_string(i));
      ASSERT_FALSE(store->remove({&name, 1}).front());
      ASSERT_EQ(text_of(*store, name), "error not_found");
    }
    put(*store, name, own);
  };
  std::thread other(work, "a");
  work("b");
  other.join();
  EXPECT_EQ(folder_.names("store/sessions/shared"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(folder_.names("store/.parts"), std::vector<std::string>{});
}

}  // namespace
}  // namespace chasqui::store
