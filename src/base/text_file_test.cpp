#include "base/text_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace chasqui {
namespace {

struct TextFile : testing::Test {
  ~TextFile() override { std::filesystem::remove(path); }
  std::string path = std::filesystem::temp_directory_path() / ("chasqui-text-" + std::to_string(::getpid()));
};

TEST_F(TextFile, IsReadWhole) {
  std::ofstream(path) << "four";
  EXPECT_EQ(read_text_file(path, 5), "four");
  EXPECT_EQ(read_text_file(path, 4), "four");
}

TEST_F(TextFile, OneWithMoreGivesOneByteMore) {
  std::ofstream(path) << "four and more";
  EXPECT_EQ(read_text_file(path, 4), "four ");
  EXPECT_EQ(read_text_file("/dev/zero", 1000)->size(), 1001U);
}

TEST_F(TextFile, OneThatIsMissingOrAFolderIsNone) {
  EXPECT_EQ(read_text_file(path, 10), std::nullopt);
  EXPECT_EQ(read_text_file("/", 10), std::nullopt);
}

}  // namespace
}  // namespace chasqui
