// Messages of the batch queue: read as they were written, and nothing else.
#include "jobs/line_message.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

SharedLine some_line() {
  SharedLine line;
  line.home = "node_1";
  line.key = {"batch_x", 17};
  line.endpoint = "/v1/chat/completions";
  line.owner = 0xFEDC'BA98'7654'3210;
  line.expires = 1'700'000'000;
  line.refused_since = 5;
  line.losses = 2;
  line.body = std::string("{\"a\":\"\0\n\"}", 10);
  return line;
}

SharedResult some_result() {
  return {{"batch_x", 4'000'000'000}, LineEnd::lost, 500, "batch_req_1", R"({"error":{}})"};
}

TEST(LineMessage, ReadsWhatWasWritten) {
  const auto line = read_shared_line(write_message(some_line()));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->home, "node_1");
  EXPECT_EQ(line->key, (LineKey{"batch_x", 17}));
  EXPECT_EQ(line->endpoint, "/v1/chat/completions");
  EXPECT_EQ(line->owner, 0xFEDC'BA98'7654'3210);
  EXPECT_EQ(line->expires, 1'700'000'000);
  EXPECT_EQ(line->refused_since, 5);
  EXPECT_EQ(line->losses, 2u);
  EXPECT_EQ(line->body, some_line().body);

  const auto result = read_shared_result(write_message(some_result()));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->key, some_result().key);
  EXPECT_EQ(result->end, LineEnd::lost);
  EXPECT_EQ(result->status, 500);
  EXPECT_EQ(result->request_id, "batch_req_1");
  EXPECT_EQ(result->body, R"({"error":{}})");
}

TEST(LineMessage, IsNoneOfTheOtherKind) {
  EXPECT_FALSE(read_shared_result(write_message(some_line())));
  EXPECT_FALSE(read_shared_line(write_message(some_result())));
}

TEST(LineMessage, IsNoneWithAnyByteChangedCutOrAdded) {
  const std::string good = write_message(some_line());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(read_shared_line(changed)) << i;
    EXPECT_FALSE(read_shared_line(good.substr(0, i))) << i;
  }
  EXPECT_FALSE(read_shared_line(good + 'x'));
}

// A broker that knows the format can make the checksum good.
TEST(LineMessage, IsNoneWithValuesThatNoNodeWrites) {
  const auto line_with = [](auto change) {
    SharedLine line = some_line();
    change(line);
    return read_shared_line(write_message(line)).has_value();
  };
  EXPECT_FALSE(line_with([](SharedLine& line) { line.home = ""; }));
  EXPECT_FALSE(line_with([](SharedLine& line) { line.home = "a.b"; }));
  EXPECT_FALSE(line_with([](SharedLine& line) { line.home = std::string(65, 'a'); }));
  EXPECT_FALSE(line_with([](SharedLine& line) { line.key.batch = "../x"; }));
  EXPECT_FALSE(line_with([](SharedLine& line) { line.body = std::string(kSharedLineMost, 'x'); }));
  const auto result_with = [](auto change) {
    SharedResult result = some_result();
    change(result);
    return read_shared_result(write_message(result)).has_value();
  };
  EXPECT_FALSE(result_with([](SharedResult& result) { result.end = static_cast<LineEnd>(4); }));
  EXPECT_FALSE(result_with([](SharedResult& result) { result.end = static_cast<LineEnd>(0); }));
  EXPECT_FALSE(result_with([](SharedResult& result) { result.status = 1000; }));
  EXPECT_FALSE(result_with([](SharedResult& result) { result.status = -1; }));
  EXPECT_FALSE(result_with([](SharedResult& result) { result.request_id = "a b"; }));
}

TEST(LineMessage, SurvivesBytesOfChance) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 20'000; ++turn) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes.size() > 4) bytes.replace(0, 4, write_message(some_line()).substr(0, 4));
    EXPECT_FALSE(read_shared_line(bytes));
    EXPECT_FALSE(read_shared_result(bytes));
  }
}

TEST(LineKey, HasOneText) {
  EXPECT_EQ((LineKey{"batch_x", 17}).text(), "batch_x.17");
  EXPECT_EQ(read_line_key("batch_x.17"), (LineKey{"batch_x", 17}));
  for (const char* text : {"", "batch_x", "batch_x.", ".1", "batch_x.01", "batch_x.-1", "batch_x.1x", "batch_x.1.2",
                           "batch_x.4294967296", "b*.1"}) {
    EXPECT_FALSE(read_line_key(text)) << text;
  }
}

}  // namespace
}  // namespace chasqui
