#include "net/gzip.h"

#include <algorithm>
#include <array>

#include <zlib.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/limits.h"
#include "net/http_headers.h"

namespace chasqui::net {
namespace {

constexpr int kFastest = 1;
constexpr int kGzipWindow = 15 + 16;  // of zlib: the largest window, in gzip's frame
constexpr int kMemory = 8;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

bool allows_gzip(std::string_view list) {
  while (!list.empty()) {
    std::string item;
    const std::size_t comma = list.find(',');
    for (const char c : list.substr(0, comma)) {
      if (!is_blank(c)) item += in_small_letters(c);
    }
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (item == "gzip") return true;
    if (item.starts_with("gzip;q=")) return item.find_first_of("123456789") != std::string::npos;
  }
  return false;
}

bool is_worth_gzip(const HttpHeaders& headers, std::size_t bytes) {
  if (bytes < kSizeLimit<"compressed_bytes"> || headers.has("Content-Encoding") || headers.has("ETag")) return false;
  return headers.get("Content-Type")
      .value_or("")
      .starts_with("application/json");  // not metrics: scrapes are to cost little
}

struct GzipWriter::Stream {
  z_stream z{};
};

GzipWriter::GzipWriter() : stream_(std::make_unique<Stream>()) {
  const int begun = ::deflateInit2(&stream_->z, kFastest, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  CHECK(begun == Z_OK, "zlib takes these settings");
}

GzipWriter::~GzipWriter() { ::deflateEnd(&stream_->z); }

void GzipWriter::add(std::string_view piece, bool last, std::string& out) {
  z_stream& z = stream_->z;
  std::array<char, 16 * 1024> room;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));  // zlib reads it only
  z.avail_in = static_cast<uInt>(piece.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    ::deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    out.append(room.data(), room.size() - z.avail_out);
  } while (z.avail_out == 0);
}

std::string gzip(std::string_view text) {
  std::string out;
  GzipWriter writer;
  do {
    const std::string_view piece = text.substr(0, GzipWriter::kPieceBytes);
    text.remove_prefix(piece.size());
    writer.add(piece, text.empty(), out);
  } while (!text.empty());
  return out;
}

}  // namespace chasqui::net
