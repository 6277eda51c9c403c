#include "api/body/media_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace fs = std::filesystem;

class MediaFolder : public testing::Test {
 protected:
  MediaFolder() {
    std::string pattern = (fs::temp_directory_path() / "chasqui-media-XXXXXX").string();
    outer_ = ::mkdtemp(pattern.data());
    fs::create_directories(fs::path(folder()) / "inner");
    write("a.png", "one");
    write("inner/b.png", "two");
    write("../secret.png", "three");
    fs::create_symlink("../secret.png", fs::path(folder()) / "way_out.png");
    fs::create_symlink("inner/b.png", fs::path(folder()) / "inside.png");
  }
  ~MediaFolder() override { fs::remove_all(outer_); }
  std::string folder() const { return (outer_ / "media").string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(fs::path(folder()) / name) << text;
  }
  Result<std::string> read(const std::string& name) const { return read_from_media_folder(folder(), name, "url"); }

 private:
  fs::path outer_;
};

TEST_F(MediaFolder, FilesInItAreRead) {
  EXPECT_EQ(*read("a.png"), "one");
  EXPECT_EQ(*read("inner/b.png"), "two");
  EXPECT_EQ(*read("inner/../a.png"), "one");
  EXPECT_EQ(*read(folder() + "/a.png"), "one");
  EXPECT_EQ(*read("inside.png"), "two");
}

TEST_F(MediaFolder, NothingElseIsAndTheErrorDoesNotTellWhatIsThere) {
  const auto missing = read("missing.png");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(missing.error().field, "url");
  for (const std::string name :
       {"../secret.png", "way_out.png", "inner", "", ".", "/etc/passwd", "inner/../../secret.png", "/dev/zero"}) {
    const auto other = read(name);
    ASSERT_FALSE(other) << name;
    EXPECT_EQ(other.error().message, missing.error().message) << name;
  }
  EXPECT_FALSE(read(std::string("a.png\0b", 7)));
}

TEST_F(MediaFolder, AFileThatIsTooLargeIsRefused) {
  write("large.png", "");
  fs::resize_file(fs::path(folder()) / "large.png", kSizeLimit<"media_bytes"> + 1);
  const auto large = read("large.png");
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("at most"), std::string::npos);
}

}  // namespace
}  // namespace chasqui
