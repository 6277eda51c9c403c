// Lines of a file, of any size and with any end.
#include "jobs/line_reader.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct Line {
  std::uint32_t number;
  std::string text;
  bool too_long;
  bool operator==(const Line&) const = default;
};

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    std::string pattern = testing::TempDir() + "lines-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    folder_ = *JobFolder::open(path_);
  }
  ~LineReaderTest() override { std::filesystem::remove_all(path_); }

  std::vector<Line> lines(const std::string& text, std::size_t line_max = 100, LinePlace from = {}) {
    EXPECT_TRUE(folder_->put("input", text));
    const auto file = folder_->open_file("input");
    LineReader reader(*file, line_max, from);
    std::vector<Line> out;
    for (;;) {
      const auto line = reader.next();
      EXPECT_TRUE(line);
      if (!*line) break;
      out.push_back({(*line)->place.number, std::string((*line)->text), (*line)->too_long});
    }
    return out;
  }

  std::string path_;
  std::shared_ptr<JobFolder> folder_;
};

TEST_F(LineReaderTest, BlankLinesCountAndAreSkipped) {
  const std::vector<Line> expected{{1, "a", false}, {3, "b", false}, {5, "c", false}};
  EXPECT_EQ(lines("a\n\nb\r\n  \t\nc"), expected);
  EXPECT_EQ(lines("a\n\nb\n\r\nc\n\n"), expected);
  EXPECT_TRUE(lines("").empty());
  EXPECT_TRUE(lines("\n\n\n").empty());
}

TEST_F(LineReaderTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  EXPECT_EQ(lines("\xEF\xBB\xBF{}\n"), (std::vector<Line>{{1, "{}", false}}));
}

TEST_F(LineReaderTest, ALineOverTheLimitIsSaidAndNotHeld) {
  const std::string fits(100, 'x');
  const std::vector<Line> expected{{1, fits, false}, {2, "", true}, {3, fits, false}, {4, "", true}};
  EXPECT_EQ(lines(fits + "\r\n" + fits + "y\n" + fits + "\n" + std::string(3'000'000, 'z')), expected);
}

TEST_F(LineReaderTest, LinesLongerThanAPieceAreWhole) {
  const std::string large(700'000, 'l');
  const std::vector<Line> expected{{1, "a", false}, {2, large, false}, {3, large, false}, {4, "b", false}};
  EXPECT_EQ(lines("a\n" + large + "\n" + large + "\nb", 1 << 20), expected);
}

TEST_F(LineReaderTest, ReadingGoesOnFromAnyLine) {
  EXPECT_EQ(lines("a\nbb\nc\n", 100, {2, 2}), (std::vector<Line>{{2, "bb", false}, {3, "c", false}}));
}

}  // namespace
}  // namespace chasqui
