#include "model/same_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/loaded_model.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

namespace fs = std::filesystem;

// A copy of the demo model to replace.
class SameFileTest : public testing::Test {
 protected:
  SameFileTest() : path_(testing::TempDir() + "chasqui-same-" + std::to_string(::getpid()) + ".gguf") { copy(); }
  ~SameFileTest() override { fs::remove(path_); }

  void copy() const { fs::copy_file(test_model_path(), path_, fs::copy_options::overwrite_existing); }
  void change_time(std::chrono::hours by) const { fs::last_write_time(path_, fs::last_write_time(path_) + by); }

  const std::string path_;
};

TEST_F(SameFileTest, ATouchedOrCopiedFileIsTheSame) {
  auto same = SameFile::look(path_);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->check());
  change_time(std::chrono::hours(1));
  EXPECT_TRUE(same->check());
  fs::remove(path_);
  EXPECT_FALSE(same->check());
  copy();
  EXPECT_TRUE(same->check());
}

TEST_F(SameFileTest, OtherWeightsOfTheSameSizeAreNot) {
  auto same = SameFile::look(path_);
  ASSERT_TRUE(same);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);  // the end of the last tensor
  file.put('x');
  file.close();
  change_time(std::chrono::hours(1));
  const auto checked = same->check();
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find(path_), std::string::npos);
  EXPECT_NE(checked.error().message.find("POST /models/load"), std::string::npos);
}

TEST_F(SameFileTest, AFileThatIsNoneIsAnError) { EXPECT_FALSE(SameFile::look("/nowhere.gguf")); }

// What is computed with the old weights must not be kept as the new ones'.
TEST_F(SameFileTest, AFileThatWasReplacedWhileItWasLoadedHasNoIdentity) {
  auto loaded = load_llama(path_);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->identify({}, {}));
  change_time(std::chrono::hours(1));
  const auto identity = loaded->identify({}, {});
  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().message.find("was replaced while it was loaded"), std::string::npos);
}

}  // namespace
}  // namespace chasqui
