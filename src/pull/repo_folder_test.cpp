#include "pull/repo_folder.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#ifdef __linux__
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace chasqui::pull {
namespace {

namespace fs = std::filesystem;

class RepoFolderTest : public testing::Test {
 protected:
  RepoFolderTest() {
    std::string made = (fs::temp_directory_path() / "chasqui-pull-XXXXXX").string();
    EXPECT_NE(::mkdtemp(made.data()), nullptr);
    root_ = made;
    file_ = {"q8/model-Q8_0.gguf", 4, std::string(64, 'a'), true};
  }
  ~RepoFolderTest() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) const { std::ofstream(path) << text; }
  std::string read(const fs::path& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path root_;
  HubFile file_;
};

TEST_F(RepoFolderTest, LiesAsHuggingFacesClientsHaveIt) {
  const RepoFolder folder(root_.string(), "user/repo");
  ASSERT_TRUE(folder.prepare());
  EXPECT_EQ(folder.path(), root_ / "models--user--repo");
  EXPECT_FALSE(folder.has("c0ffee", file_));
  write(folder.blob(file_), "GG");
  EXPECT_FALSE(folder.has("c0ffee", file_)) << "it is shorter than the file";
  write(folder.blob(file_), "GGUF");
  EXPECT_TRUE(folder.has("c0ffee", file_));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(folder.name("c0ffee", file_)) << i;
  const fs::path named = root_ / "models--user--repo/snapshots/c0ffee/q8/model-Q8_0.gguf";
  EXPECT_EQ(fs::read_symlink(named), fs::path("../../../blobs") / file_.oid);
  EXPECT_EQ(read(named), "GGUF");
  ASSERT_TRUE(folder.set_revision("main", "c0ffee"));
  ASSERT_TRUE(folder.set_revision("refs/pr/1", "c0ffee"));
  ASSERT_TRUE(folder.set_revision("c0ffee", "c0ffee"));
  EXPECT_EQ(read(folder.path() / "refs/main"), "c0ffee");
  EXPECT_EQ(read(folder.path() / "refs/refs/pr/1"), "c0ffee");
  EXPECT_FALSE(fs::exists(folder.path() / "refs/c0ffee"));
  EXPECT_GT(folder.free_bytes().value_or(0), 0U);
}

TEST_F(RepoFolderTest, AWrongNameIsReplaced) {
  const RepoFolder folder(root_.string(), "user/repo");
  ASSERT_TRUE(folder.prepare());
  write(folder.blob(file_), "GGUF");
  const fs::path named = folder.named("c0ffee", file_);
  fs::create_directories(named.parent_path());
  fs::create_symlink("nowhere", named);
  ASSERT_TRUE(folder.name("c0ffee", file_));
  EXPECT_EQ(read(named), "GGUF");
}

TEST_F(RepoFolderTest, ARevisionStaysWhereTheDiskIsFull) {
  const fs::path full = "/dev/full";
  if (!fs::exists(full)) GTEST_SKIP() << "nothing is always full here";
  const RepoFolder folder(root_.string(), "user/repo");
  ASSERT_TRUE(folder.prepare());
  ASSERT_TRUE(folder.set_revision("main", "c0ffee"));
  fs::create_symlink(full, folder.path() / ("refs/main." + std::to_string(::getpid())));
  EXPECT_FALSE(folder.set_revision("main", "decade"));
  EXPECT_EQ(read(folder.path() / "refs/main"), "c0ffee");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "refs"), {}), 1);
}

#ifdef __linux__
// From now on this thread makes symbolic links as on exFAT.
bool forbid_links() {
  const auto refuse = static_cast<std::uint32_t>(SECCOMP_RET_ERRNO | EPERM);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef SYS_symlink
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlink, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(RepoFolderTest, AContentIsMovedToItsNameWhereThereAreNoLinks) {
  const RepoFolder folder(root_.string(), "user/repo");
  ASSERT_TRUE(folder.prepare());
  write(folder.blob(file_), "GGUF");
  bool forbidden = false;
  bool named[2] = {};
  std::thread([&] {
    forbidden = forbid_links();
    for (bool& one : named) one = folder.name("c0ffee", file_).has_value();
  }).join();
  if (!forbidden) GTEST_SKIP() << "this system lets no process filter its system calls";
  EXPECT_TRUE(named[0] && named[1]);
  const fs::path path = folder.named("c0ffee", file_);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path)));
  EXPECT_EQ(read(path), "GGUF");
  EXPECT_FALSE(fs::exists(folder.blob(file_)));
  EXPECT_TRUE(folder.has("c0ffee", file_));
  EXPECT_FALSE(folder.has("decade", file_)) << "that one may have another content under this name";
  ASSERT_TRUE(folder.name("c0ffee", file_)) << "also where there are links by now";
  EXPECT_EQ(read(path), "GGUF");
}
#endif

TEST_F(RepoFolderTest, OneAtATimeFetchesAContent) {
  const RepoFolder folder(root_.string(), "user/repo");
  ASSERT_TRUE(folder.prepare());
  auto first = folder.lock(file_);
  ASSERT_TRUE(first && first->is_open());
  auto second = folder.lock(file_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_open());
  // Where the one who has it removes the file, a new one has a lock of its own.
  fs::remove(root_ / ".locks/models--user--repo" / (file_.oid + ".lock"));
  auto third = folder.lock(file_);
  ASSERT_TRUE(third && third->is_open());
  third->close();
  auto fourth = folder.lock(file_);
  EXPECT_TRUE(fourth && fourth->is_open());
}

TEST_F(RepoFolderTest, AFolderThatCannotBeMadeIsNamed) {
  write(root_ / "models--user--repo", "a file");
  const auto made = RepoFolder(root_.string(), "user/repo").prepare();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("models--user--repo/blobs: Not a directory"), std::string::npos)
      << made.error().message;
}

}  // namespace
}  // namespace chasqui::pull
