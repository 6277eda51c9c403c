// Answers in gzip for clients that ask for it. Level 1: its time is that of the loop, and most of the size goes. Pure
// values; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace chasqui::net {

class HttpHeaders;

// Whether a list such as `br, gzip;q=0.8` allows gzip: it is named, and not with a weight of zero.
bool allows_gzip(std::string_view accept_encoding);

// Whether a whole answer of this head and size gains by it.
bool is_worth_gzip(const HttpHeaders& headers, std::size_t bytes);

// One text, in pieces, so that the loop need not compress a long one at once. Holds 270 KB until it goes.
class GzipWriter {
 public:
  static constexpr std::size_t kPieceBytes = 32 * 1024;  // a third of a millisecond

  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // Appends what comes of `piece`, which is the next of the text, to `out`.
  void add(std::string_view piece, bool last, std::string& out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

std::string gzip(std::string_view text);

}  // namespace chasqui::net
