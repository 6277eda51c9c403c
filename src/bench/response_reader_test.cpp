#include "bench/response_reader.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

std::string read(ResponseReader& reader, std::string_view text, std::size_t piece) {
  std::string body;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    std::string_view bytes = text.substr(at, piece);
    while (!bytes.empty() && !reader.done() && !reader.failed()) body += reader.take(bytes);
  }
  return body;
}

TEST(ResponseReader, TakesOffTheChunkedCoding) {
  const std::string_view text =
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nb;x=y\r\n and so on,\r\n0\r\nT: x\r\n\r\n";
  for (const std::size_t piece : {1U, 2U, 5U, 1000U}) {
    ResponseReader reader;
    EXPECT_EQ(read(reader, text, piece), "hello and so on,") << piece;
    EXPECT_TRUE(reader.done());
    EXPECT_TRUE(reader.keeps_alive());
    EXPECT_EQ(reader.status(), 200);
  }
}

TEST(ResponseReader, ReadsByLength) {
  for (const std::size_t piece : {1U, 1000U}) {
    ResponseReader reader;
    EXPECT_EQ(read(reader,
                   "HTTP/1.1 503 Busy\r\nRetry-After:  2 \r\nretry-after-ms: 1500\r\nContent-Length: 3\r\n"
                   "Connection: close\r\n\r\nabc",
                   piece),
              "abc");
    EXPECT_TRUE(reader.done());
    EXPECT_FALSE(reader.keeps_alive());
    EXPECT_EQ(reader.status(), 503);
    EXPECT_EQ(reader.retry_after(), "2");
    EXPECT_EQ(reader.retry_after_ms(), "1500");
  }
}

TEST(ResponseReader, ReadsToTheEndWithoutALength) {
  ResponseReader reader;
  EXPECT_EQ(read(reader, "HTTP/1.0 200 OK\r\n\r\nabc", 1), "abc");
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.close());
  EXPECT_FALSE(reader.keeps_alive());
}

TEST(ResponseReader, PassesOverContinue) {
  ResponseReader reader;
  EXPECT_EQ(read(reader, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 3), "x");
  EXPECT_EQ(reader.status(), 200);
}

TEST(ResponseReader, ClosingEarlyIsNoEnd) {
  ResponseReader reader;
  read(reader, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 100);
  EXPECT_FALSE(reader.close());
}

TEST(ResponseReader, RefusesWhatIsNoResponse) {
  const std::string long_head = "HTTP/1.1 200 OK\r\nx: " + std::string(ResponseReader::kHeadMax, 'x');
  const std::string_view cases[] = {"SSH-2.0-x\r\n", "HTTP/1.1 abc\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", long_head};
  for (const std::string_view text : cases) {
    ResponseReader reader;
    read(reader, text, 1000);
    EXPECT_TRUE(reader.failed()) << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace chasqui::bench
