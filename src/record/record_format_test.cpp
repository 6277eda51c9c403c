#include "record/record_format.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "record/byte_stream.h"
#include "record/fake_recording.h"
#include "record/replay.h"

namespace chasqui {
namespace {

TEST(ByteStream, WhatWasWrittenIsRead) {
  std::string bytes;
  ByteWriter out(bytes);
  const std::vector<std::int64_t> figures = {1, std::numeric_limits<std::int64_t>::min(), -5,
                                             std::numeric_limits<std::int64_t>::max()};
  const std::vector<Token> tokens = {0, -1, 2'000'000'000};
  const std::string text = "text";
  out(std::uint64_t{UINT64_MAX}, std::int64_t{INT64_MIN}, -1, true, 0.25, kNever, text, RequestId{7}, SlotId{-1});
  out.table(figures, 2);
  out.tokens(tokens);

  ByteReader in(bytes);
  std::uint64_t large = 0;
  std::int64_t least = 0;
  int one = 0;
  bool yes = false;
  double quarter = 0;
  TimePoint never{};
  std::string same;
  RequestId id;
  SlotId slot{5};
  in(large, least, one, yes, quarter, never, same, id, slot);
  std::vector<std::int64_t> rows;
  in.table(rows, 2);
  std::vector<Token> read;
  in.tokens(read);
  EXPECT_FALSE(in.failed());
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_EQ(least, INT64_MIN);
  EXPECT_EQ(one, -1);
  EXPECT_TRUE(yes);
  EXPECT_EQ(quarter, 0.25);
  EXPECT_EQ(never, kNever);
  EXPECT_EQ(same, text);
  EXPECT_EQ(id, RequestId{7});
  EXPECT_EQ(slot, SlotId{-1});
  EXPECT_EQ(rows, figures);
  EXPECT_EQ(read, tokens);
}

TEST(ByteStream, WhatIsNotThereFails) {
  std::string bytes;
  ByteWriter out(bytes);
  out(std::uint64_t{300}, std::string("text"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ByteReader in(std::string_view(bytes).substr(0, length));
    std::uint64_t number = 0;
    std::string text;
    in(number, text);
    EXPECT_TRUE(in.failed()) << length;
  }
  ByteReader narrow(bytes);
  std::uint8_t small = 0;
  narrow(small);
  EXPECT_TRUE(narrow.failed()) << "300 does not fit";
}

TEST(RecordFile, OtherFilesAreNamed) {
  const auto error = [](const std::string& bytes) { return RecordFile::parse(bytes).error().message; };
  EXPECT_NE(error("").find("no recording"), std::string::npos);
  EXPECT_NE(error("GGUF...").find("no recording"), std::string::npos);
  EXPECT_NE(error("chasqui-record 9\n").find("another version"), std::string::npos);
  EXPECT_TRUE(RecordFile::parse(std::string(kRecordMagic)));
}

TEST(RecordFile, MutatedFilesAreRefusedOrCut) {
  FakeLoad load = fake_load(6);
  load.workload.requests = 40;
  const std::string file = recorded(load);
  const std::size_t magic = kRecordMagic.size();
  std::minstd_rand dice(6);
  std::size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = file;
    const std::size_t place = magic + dice() % (bytes.size() - magic);
    bytes[place] = static_cast<char>(static_cast<unsigned char>(bytes[place]) ^ (1u << (dice() % 8)));
    const Result<RecordFile> parsed = RecordFile::parse(bytes);
    if (!parsed) {
      EXPECT_NE(parsed.error().message.find("damaged at byte"), std::string::npos) << parsed.error().message;
      ++refused;
      continue;
    }
    EXPECT_GT(parsed->cut(), 0u) << "a changed byte was not noticed";  // a length that is longer than the file
    for (const RecordStream& stream : parsed->streams()) EXPECT_TRUE(replay(stream).agrees());
  }
  EXPECT_GT(refused, 1900u);
}

}  // namespace
}  // namespace chasqui
