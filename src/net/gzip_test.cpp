#include "net/gzip.h"

#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/limits.h"
#include "net/http_headers.h"

namespace chasqui::net {
namespace {

std::string unzipped(std::string_view text) {
  z_stream z{};
  EXPECT_EQ(::inflateInit2(&z, 15 + 16), Z_OK);
  std::string out(16 * 1024 * 1024, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  ::inflateEnd(&z);
  return out;
}

TEST(Gzip, IsAskedForByNameAndWeight) {
  for (const char* const list : {"gzip", "br, gzip", "GZIP ; q=0.5", "deflate,gzip;q=1"}) {
    EXPECT_TRUE(allows_gzip(list)) << list;
  }
  for (const char* const list : {"", "br", "gzip;q=0", "gzip;q=0.0", "x-gzip", "*"}) {
    EXPECT_FALSE(allows_gzip(list)) << list;
  }
}

TEST(Gzip, GivesBackEveryText) {
  std::string text;
  for (int i = 0; text.size() < 3 * GzipWriter::kPieceBytes; ++i) text += std::to_string(i * i) + ",";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, GzipWriter::kPieceBytes, text.size()}) {
    const std::string part = text.substr(0, size);
    EXPECT_EQ(unzipped(gzip(part)), part) << size;
  }
  EXPECT_LT(gzip(text).size(), text.size() / 2);
}

TEST(Gzip, IsForTextsThatAreLongAndNotCompressedYet) {
  const std::size_t enough = kSizeLimit<"compressed_bytes">;
  const HttpHeaders json = {{"Content-Type", "application/json"}};
  EXPECT_TRUE(is_worth_gzip(json, enough));
  EXPECT_FALSE(is_worth_gzip(json, enough - 1));
  EXPECT_FALSE(is_worth_gzip({{"Content-Type", "text/plain; version=0.0.4"}}, enough)) << "scrapes are to cost little";
  EXPECT_FALSE(is_worth_gzip({{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}}, enough));
  EXPECT_FALSE(is_worth_gzip({{"Content-Type", "application/json"}, {"ETag", "\"a\""}}, enough));
}

}  // namespace
}  // namespace chasqui::net
