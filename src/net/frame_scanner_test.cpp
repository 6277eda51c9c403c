#include "net/frame_scanner.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

std::string framed(std::string_view body) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(body.size() >> shift & 0xff);
  return out.append(body);
}

// Feeds `bytes` in pieces and says what came out.
std::vector<std::string> scan(FrameScanner& scanner, const std::vector<std::string_view>& pieces) {
  std::vector<std::string> out;
  for (std::string_view piece : pieces) {
    for (;;) {
      piece.remove_prefix(scanner.feed(piece));
      if (scanner.state() != FrameScanner::State::complete) break;
      out.push_back(scanner.take());
    }
    if (scanner.state() == FrameScanner::State::too_large) break;
  }
  return out;
}

TEST(FrameScanner, frames_come_out_whole_wherever_the_bytes_are_cut) {
  const std::string long_body(300, 'x');
  const std::string bytes = framed("{}") + framed("") + framed("{\"a\":\"\n\"}") + framed(long_body);
  const std::vector<std::string> expected = {"{}", "", "{\"a\":\"\n\"}", long_body};
  const FrameLimits limits;
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (const std::size_t second : {first, (first + bytes.size()) / 2, bytes.size()}) {
      FrameScanner scanner(limits);
      const std::string_view all = bytes;
      EXPECT_EQ(scan(scanner, {all.substr(0, first), all.substr(first, second - first), all.substr(second)}), expected)
          << "cut at " << first << " and " << second;
      EXPECT_FALSE(scanner.inside());
    }
  }
}

TEST(FrameScanner, frames_come_out_whole_byte_by_byte) {
  const std::string bytes = framed("{\"id\":1}") + framed("{\"id\":2}");
  std::vector<std::string_view> pieces;
  for (std::size_t i = 0; i < bytes.size(); ++i) pieces.push_back(std::string_view(bytes).substr(i, 1));
  const FrameLimits limits;
  FrameScanner scanner(limits);
  EXPECT_EQ(scan(scanner, pieces), (std::vector<std::string>{"{\"id\":1}", "{\"id\":2}"}));
  EXPECT_EQ(scanner.mode(), FrameScanner::Mode::frames);
}

TEST(FrameScanner, lines_come_out_whole_wherever_the_bytes_are_cut) {
  const std::string bytes = "a\nb\r\n\nhello there\nlast\n";
  const std::vector<std::string> expected = {"a", "b", "", "hello there", "last"};
  const FrameLimits limits;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameScanner scanner(limits);
    const std::string_view all = bytes;
    EXPECT_EQ(scan(scanner, {all.substr(0, cut), all.substr(cut)}), expected) << "cut at " << cut;
    EXPECT_EQ(scanner.mode(), FrameScanner::Mode::lines);
    EXPECT_FALSE(scanner.inside());
  }
}

TEST(FrameScanner, a_short_first_line_needs_to_be_told_that_nothing_follows) {
  const FrameLimits limits;
  FrameScanner scanner(limits);
  EXPECT_TRUE(scan(scanner, {"hi\n"}).empty());
  EXPECT_TRUE(scanner.unsettled());
  scanner.settle();
  EXPECT_EQ(scan(scanner, {""}), std::vector<std::string>{"hi"});
  EXPECT_FALSE(scanner.inside());
}

TEST(FrameScanner, a_length_that_arrives_slowly_is_not_settled_without_a_line_break) {
  const FrameLimits limits;
  FrameScanner scanner(limits);
  EXPECT_TRUE(scan(scanner, {std::string_view("\2\0", 2)}).empty());
  EXPECT_FALSE(scanner.unsettled());
  scanner.settle();
  EXPECT_EQ(scan(scanner, {std::string_view("\0\0{}", 4)}), std::vector<std::string>{"{}"});
}

TEST(FrameScanner, the_end_of_the_bytes_ends_the_last_line) {
  const FrameLimits limits;
  FrameScanner scanner(limits);
  EXPECT_EQ(scan(scanner, {"one line\nno end"}), std::vector<std::string>{"one line"});
  ASSERT_TRUE(scanner.end());
  EXPECT_EQ(scan(scanner, {"\n"}), std::vector<std::string>{"no end"});

  FrameScanner frames(limits);
  EXPECT_TRUE(scan(frames, {std::string_view("\5\0\0\0{", 5)}).empty());
  EXPECT_FALSE(frames.end()) << "half a frame is nothing";
}

TEST(FrameScanner, a_hostile_length_is_refused_before_its_bytes_come) {
  FrameLimits limits;
  limits.frame_bytes = 1000;
  for (const std::uint32_t length : {1001u, 0x00ffffffu}) {
    FrameScanner scanner(limits);
    const std::string head = framed({}).replace(0, 4, reinterpret_cast<const char*>(&length), 4);
    EXPECT_TRUE(scan(scanner, {head}).empty());
    EXPECT_EQ(scanner.state(), FrameScanner::State::too_large) << length;
    EXPECT_EQ(scanner.held(), 0u);
  }
  FrameScanner scanner(limits);
  const std::string exactly(1000, ' ');
  EXPECT_EQ(scan(scanner, {framed(exactly)}), std::vector<std::string>{exactly});
  const std::uint32_t all_ones = 0xffffffff;
  scan(scanner, {std::string_view(reinterpret_cast<const char*>(&all_ones), 4)});
  EXPECT_EQ(scanner.state(), FrameScanner::State::too_large) << "after the first frame there are no lines";
}

TEST(FrameScanner, a_line_without_end_is_refused_at_its_limit) {
  FrameLimits limits;
  limits.line_bytes = 100;
  FrameScanner scanner(limits);
  const std::string line(100, 'a');
  EXPECT_EQ(scan(scanner, {line, "\n"}), std::vector<std::string>{line});
  EXPECT_TRUE(scan(scanner, {line, "a"}).empty());
  EXPECT_EQ(scanner.state(), FrameScanner::State::too_large);
}

TEST(FrameScanner, noise_is_cut_into_something_or_refused_and_never_held_beyond_the_limits) {
  FrameLimits limits;
  limits.frame_bytes = 500;
  limits.line_bytes = 300;
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    FrameScanner scanner(limits);
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = random() % 3 == 0 ? static_cast<char>(random() % 12) : static_cast<char>(random());
    std::string_view rest = bytes;
    while (!rest.empty() && scanner.state() != FrameScanner::State::too_large) {
      const std::string_view piece = rest.substr(0, 1 + random() % 9);
      scan(scanner, {piece});
      rest.remove_prefix(piece.size());
      ASSERT_LE(scanner.held(), 504u);
    }
  }
}

}  // namespace
}  // namespace chasqui::net
