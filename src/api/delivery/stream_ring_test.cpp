#include "api/delivery/stream_ring.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

std::string all_of(const StreamRing& ring) {
  std::string out;
  ring.copy(ring.begin(), 1 << 20, out);
  return out;
}

TEST(StreamRing, KeepsEverythingUntilItIsFull) {
  StreamRing ring(8);
  ring.append("abc");
  ring.append("defgh");
  EXPECT_EQ(ring.begin(), 0u);
  EXPECT_EQ(all_of(ring), "abcdefgh");
  ring.append("ij");
  EXPECT_EQ(ring.begin(), 2u);
  EXPECT_EQ(all_of(ring), "cdefghij");
}

TEST(StreamRing, OfMoreThanFitsTheEndIsKept) {
  StreamRing ring(4);
  ring.append("a");
  ring.append("0123456789");
  EXPECT_EQ(ring.end(), 11u);
  EXPECT_EQ(ring.begin(), 7u);
  EXPECT_EQ(all_of(ring), "6789");
}

TEST(StreamRing, GoesOnWithAnotherOne) {
  for (std::size_t said = 0; said < 40; ++said) {
    StreamRing first(16);
    StreamRing whole(16);
    for (std::size_t i = 0; i < said; ++i) {
      first.append(std::string(1, static_cast<char>('a' + i % 26)));
      whole.append(std::string(1, static_cast<char>('a' + i % 26)));
    }
    StreamRing second(16);
    second.go_on(first.end(), all_of(first));
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(second.begin(), whole.begin());
      EXPECT_EQ(second.end(), whole.end());
      ASSERT_EQ(all_of(second), all_of(whole)) << said << ' ' << i;
      second.append("xy");
      whole.append("xy");
    }
    second.shrink(5);
    whole.shrink(5);
    EXPECT_EQ(all_of(second), all_of(whole)) << said;
  }
}

TEST(StreamRing, ThatShrinksKeepsTheLastBytes) {
  for (std::size_t said = 0; said < 40; ++said) {
    for (std::size_t capacity = 1; capacity < 20; ++capacity) {
      StreamRing ring(16);
      std::string whole;
      const auto say = [&](std::size_t bytes) {
        for (; bytes > 0; --bytes) {
          whole += static_cast<char>('a' + whole.size() % 26);
          ring.append(whole.substr(whole.size() - 1));
        }
      };
      say(said);
      ring.shrink(capacity);
      const std::size_t most = std::min<std::size_t>(capacity, 16);
      for (int i = 0; i < 40; ++i, say(1)) {
        ASSERT_EQ(ring.end(), whole.size());
        ASSERT_EQ(all_of(ring), whole.substr(whole.size() - std::min(most, whole.size())));
      }
    }
  }
}

TEST(StreamRing, HasTheSameBytesAsTheWholeStream) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    StreamRing ring(1 + random() % 40);
    std::string whole;
    for (int i = 0; i < 30; ++i) {
      std::string piece(random() % 60, 'x');
      for (char& c : piece) c = static_cast<char>('a' + random() % 26);
      ring.append(piece);
      whole += piece;
      ASSERT_EQ(ring.end(), whole.size());
      const std::uint64_t from = ring.begin() + random() % (ring.end() - ring.begin() + 1);
      const std::size_t max = random() % 50;
      std::string out;
      ring.copy(from, max, out);
      ASSERT_EQ(out, whole.substr(from, max));
    }
  }
}

TEST(StreamIds, AnIdIsTheOffsetBehindItsEvent) {
  std::string whole;
  for (int i = 0; i < 300; ++i) {
    const std::size_t start = whole.size();
    append_with_ids("event: delta\ndata: {\"n\":" + std::to_string(i) + "}\n\n: ping\n\n", start, whole);
    const std::size_t id = whole.find("\nid: ", start);
    ASSERT_NE(id, std::string::npos);
    const std::size_t behind = whole.find("\n\n", start) + 2;
    EXPECT_EQ(std::stoull(whole.substr(id + 5)), behind);
    EXPECT_EQ(whole.substr(behind), ": ping\n\n") << "comments have none";
  }
  EXPECT_GT(whole.size(), 10000u) << "ids of two to five digits";
}

}  // namespace
}  // namespace chasqui
